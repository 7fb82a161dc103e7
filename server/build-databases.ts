/** The part of the composition root that makes databases: engines, and what is kept of each database. */
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from './config/config.ts';
import { assembleDatabases } from './databases/assemble.ts';
import type { DatabaseBilling } from './databases/database-billing.ts';
import { meterDatabases } from './databases/database-series.ts';
import type { Engine } from './databases/engine.ts';
import { watchEngines } from './databases/engine-watch.ts';
import { KeptDumpFiles } from './drivers/kept-dump-files.ts';
import type { Metadata } from './metadata/metadata.ts';
import type { Alarms } from './platform/alarms.ts';
import type { Clock } from './platform/clock.ts';
import type { Jobs } from './platform/jobs.ts';
import type { Meters } from './platform/prometheus.ts';
import type { Sealer } from './platform/sealer.ts';
import { eventStatements } from './webhooks/events.ts';

export interface DatabasesOptions {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Logger;
  readonly base: {
    readonly metadata: Metadata;
    readonly keys: Sealer;
    readonly assertRoom: (bytes: number) => void;
    readonly alarms: Alarms;
  };
  readonly meters: Meters;
  readonly billing: DatabaseBilling;
  readonly engines: readonly Engine[];
}

export type DatabaseParts = Awaited<ReturnType<typeof buildDatabases>>;

const HOUR_MS = 3_600_000;

/** Makes the parts, and frees the names of creations that the last run was cut off in. */
export async function buildDatabases(options: DatabasesOptions) {
  const { config, clock, log, base, billing, engines, meters } = options;
  const { metadata, keys: sealer, assertRoom, alarms } = base;
  const directory = join(config.dataDir, 'databases', 'kept');
  const parts = assembleDatabases({
    metadata,
    clock,
    sealer,
    billing,
    engines,
    kept: await KeptDumpFiles.open({ directory, assertRoom }),
    limits: {
      connections: config.databaseConnections,
      statementMs: config.databaseStatementSeconds * 1000,
    },
    assertRoom,
    maxSizeMb: config.databaseSizeMb,
    keepMs: config.databaseKeepHours * HOUR_MS,
    announce: eventStatements,
    pointDumpMs: config.recoveryDumpMinutes * 60_000,
    pointSilenceMs: config.recoverySilenceSeconds * 1000,
    orphanGraceMs: config.sweepGraceSeconds * 1000,
    report: (id, what, error) => log.error({ id, err: error }, what),
  });
  meterDatabases(meters, parts.sampler);
  await parts.supervisor.recover();
  const watch = () => watchEngines({ engines: parts.engines, alarms, counts: () => parts.store.counts() });
  return { ...parts, watch };
}

const CHECK_MS = 15_000;
const SWEEP_MS = 60_000;
const SAMPLE_MS = 5000;

/** Begins to bring engines in line with the rows; only a server does. */
export function startDatabases({ supervisor, sampler, watch }: DatabaseParts, jobs: Jobs): void {
  void supervisor.check();
  jobs.every('look after databases', CHECK_MS, () => supervisor.check());
  jobs.every('measure databases', SAMPLE_MS, () => sampler.tick());
  jobs.every('watch the engines of databases', CHECK_MS, watch);
  jobs.every('sweep databases', SWEEP_MS, () => supervisor.sweepOrphans());
}

/** Ends loads and copies under way, then the engines. */
export async function closeDatabases({ turns, engines }: DatabaseParts): Promise<void> {
  await turns.close();
  for (const engine of engines.all()) await engine.close();
}
