/** The part of the composition root that makes the engines of databases. */
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Clock } from './clock.ts';
import type { Config } from './config.ts';
import type { EngineDatabase } from './databases/engine.ts';
import { exchangeHrana, type HranaCall } from './drivers/engine-sqlite/hrana-exchange.ts';
import { SqliteEngine } from './drivers/engine-sqlite/sqlite-engine.ts';
import { whyNoOtherUsers } from './system/other-users.ts';

export interface EnginesOptions {
  readonly config: Pick<Config, 'dataDir' | 'databaseUidBase' | 'databaseProcesses' | 'databaseIdleSeconds'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Of the data origin; known once it listens. */
  readonly dataUrl: () => string;
}

/** As many as there are machines. */
const UIDS = 2 ** 20;

/** Nothing runs until a database is used. */
export function buildEngines({ config, clock, log, dataUrl }: EnginesOptions) {
  const users = { first: config.databaseUidBase, count: UIDS };
  const sqlite = new SqliteEngine({
    clock,
    log,
    folder: join(config.dataDir, 'databases', 'sqlite'),
    users: whyNoOtherUsers(users, config.dataDir) === null ? users : null,
    maxChildren: config.databaseProcesses,
    idleMs: config.databaseIdleSeconds * 1000,
    address: dataUrl,
  });
  const exchange = (database: EngineDatabase, call: HranaCall) => exchangeHrana(sqlite, database, call);
  return { sqlite, exchange };
}
