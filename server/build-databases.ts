/** The part of the composition root that makes databases: engines, and what is kept of each database. */
import type { Logger } from 'pino';
import type { Sealer } from './accounts/sealer.ts';
import type { Clock } from './clock.ts';
import type { Config } from './config.ts';
import { AccountStops } from './databases/account-stops.ts';
import { DatabaseAnswers } from './databases/database-answer.ts';
import type { DatabaseBilling } from './databases/database-billing.ts';
import { DatabaseSecrets } from './databases/database-secrets.ts';
import { Databases } from './databases/databases.ts';
import { Dumps } from './databases/dumps.ts';
import type { Engine } from './databases/engine.ts';
import { Engines } from './databases/engines.ts';
import { Lifecycle } from './databases/lifecycle.ts';
import { Queries } from './databases/queries.ts';
import type { DatabaseRow } from './databases/store.ts';
import { DatabaseStore } from './databases/store.ts';
import { Changes } from './metadata/change.ts';
import type { Metadata } from './metadata/metadata.ts';
import type { Jobs } from './system/jobs.ts';

export interface DatabasesOptions {
  readonly config: Pick<Config, 'databaseSizeMb' | 'databaseConnections' | 'databaseStatementSeconds'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly base: { readonly metadata: Metadata; readonly keys: Sealer };
  readonly billing: DatabaseBilling;
  readonly engines: readonly Engine[];
}

export type DatabaseParts = ReturnType<typeof buildDatabases>;

/** Makes the parts; nothing runs until startDatabases(). */
export function buildDatabases({ config, clock, log, base, billing, engines: list }: DatabasesOptions) {
  const { metadata } = base;
  const store = new DatabaseStore(metadata);
  const changes = new Changes({ metadata });
  const engines = new Engines(list);
  const secrets = new DatabaseSecrets({ sealer: base.keys });
  const limits = {
    connections: config.databaseConnections,
    statementMs: config.databaseStatementSeconds * 1000,
  };
  const report = (id: string, what: string, error: unknown) => log.error({ id, err: error }, what);
  const lifecycle = new Lifecycle({
    store,
    changes,
    engines,
    secrets,
    clock,
    billing,
    limits,
    report,
  });
  const inEngine = (row: DatabaseRow) => lifecycle.inEngine(row);
  const answers = new DatabaseAnswers({ engines, billing, inEngine });
  const maxSizeMb = config.databaseSizeMb;
  const databases = new Databases({
    store,
    changes,
    engines,
    lifecycle,
    secrets,
    answers,
    billing,
    clock,
    maxSizeMb,
  });
  const queries = new Queries({ databases, engines, lifecycle, clock });
  const dumps = new Dumps({ databases, engines, lifecycle });
  const accountStops = new AccountStops({
    store,
    lifecycle,
    billing,
    alone: (id, work) => lifecycle.alone(id, work),
    settleSoon: (id) => void lifecycle.settle(id),
    report,
  });
  return {
    engines,
    lifecycle,
    accountStops,
    routes: { databases, engines, limits, maxSizeMb, queries, dumps },
  };
}

const CHECK_MS = 15_000;

/** Begins to bring engines in line with the rows; only a server does. */
export function startDatabases({ lifecycle }: DatabaseParts, jobs: Jobs): void {
  void lifecycle.check();
  jobs.every('look after databases', CHECK_MS, () => lifecycle.check());
}

export async function closeDatabases({ lifecycle, engines }: DatabaseParts): Promise<void> {
  lifecycle.close();
  for (const engine of engines.all()) await engine.close();
}
