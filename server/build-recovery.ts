/** The part of the composition root that makes recovery points. */
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Clock } from './clock.ts';
import type { Config } from './config.ts';
import { SqliteSnapshots } from './drivers/metadata-sqlite/sqlite-snapshots.ts';
import { DirectoryDataFiles } from './drivers/recovery-directory/data-files.ts';
import { DirectoryTarget } from './drivers/recovery-directory/directory-target.ts';
import { Changes } from './metadata/change.ts';
import type { Metadata } from './metadata/metadata.ts';
import { cloudSources } from './recovery/cloud-sources.ts';
import { Points } from './recovery/points.ts';
import { RecoveryKeys } from './recovery/recovery-keys.ts';
import type { Source } from './recovery/sources.ts';
import { RecoveryStore } from './recovery/store.ts';
import type { Secrets } from './system/secrets.ts';
import { VERSION } from './version.ts';

export interface RecoveryDeps {
  readonly config: Pick<Config, 'dataDir' | 'recoveryTarget'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly base: {
    readonly metadata: Metadata;
    readonly secrets: Secrets;
    readonly assertRoom: (bytes: number) => void;
  };
  /** What the domains put into a point. */
  readonly sources: readonly Source[];
}

/** Whether a recovery point needs what nobody refers to any more. */
export function recoveryHold({ metadata }: { readonly metadata: Metadata }, clock: Clock) {
  const store = new RecoveryStore(metadata);
  return () => store.isHeld(clock.now());
}

export function buildRecovery({ config, clock, log, base, sources }: RecoveryDeps) {
  const { metadata, secrets, assertRoom } = base;
  const { dataDir: directory } = config;
  const store = new RecoveryStore(metadata);
  const changes = new Changes({ metadata });
  const target = new DirectoryTarget(config.recoveryTarget || join(directory, 'recovery'));
  const keys = new RecoveryKeys({ secrets, target, store, changes, clock });
  const points = new Points({
    store,
    changes,
    clock,
    snapshots: new SqliteSnapshots({ directory, work: join(directory, 'recovery-work'), assertRoom }),
    sources: cloudSources(new DirectoryDataFiles(directory), sources),
    repository: () => keys.open(),
    place: target.place,
    version: VERSION,
    estimateBytes: () => store.sumOfBlobs(),
    report: (id, err) => log.error({ id, err }, 'a recovery point, or a part of it, could not be made'),
  });
  return { points, keys, routes: { points, keys } };
}
