/** Provides recovery with its target and the means for drills. */
import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import { DrillProcesses } from '../drivers/drill-process/drill-ground.ts';
import { PostgresqlSnapshots } from '../drivers/metadata-postgresql/postgresql-snapshots.ts';
import { SqliteSnapshots } from '../drivers/metadata-sqlite/sqlite-snapshots.ts';
import type { Clock } from '../platform/clock.ts';
import { programFile } from '../platform/program-files.ts';
import { type RecoveryDeps, recoveryPart } from '../recovery/part.ts';
import type { Snapshots } from '../recovery/points/sources.ts';
import { RecoveryStore } from '../recovery/store.ts';
import { eventStatements } from '../webhooks/events-store.ts';
import type { DrillMeans } from './drill-cloud.ts';
import type { Foundations } from './foundations.ts';
import { openTargets } from './recovery-target.ts';

/** Runs in its own process. */
const DRILL_PROGRAM = programFile('cloud/drill-main');

type Given = Omit<RecoveryDeps, 'base' | 'places' | 'ground' | 'announce'> & {
  readonly base: Foundations;
};

export function buildRecovery(given: Given) {
  const { config, clock, base } = given;
  const { dataDir } = config;
  return recoveryPart({
    ...given,
    announce: eventStatements,
    places: {
      ...openTargets(config, clock, new RecoveryStore(base.metadata)),
      snapshots: snapshotsOf(config, clock, base),
    },
    ground: (owner) =>
      new DrillProcesses({
        entry: DRILL_PROGRAM,
        means: (): DrillMeans => ({ config, reserveBytes: base.diskSpace.headroomBytes() }),
        directory: config.drillDirectory || join(dataDir, 'drill'),
        owner,
        withinMs: config.drillMinutes * 60_000,
      }),
  });
}

function snapshotsOf(
  { dataDir: directory, metadataUrl: url }: Config,
  clock: Clock,
  { assertSpace }: Pick<Foundations, 'assertSpace'>,
): Snapshots {
  const work = join(directory, 'recovery-work');
  return url === ''
    ? new SqliteSnapshots({ directory, work, assertSpace })
    : new PostgresqlSnapshots({ url, work, assertSpace, clock });
}
