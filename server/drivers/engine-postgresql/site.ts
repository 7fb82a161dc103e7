import type { Endpoint, Readiness } from '../../databases/engine.ts';
import type { EngineServer } from '../managed-server/engine-server.ts';
import type { ManagedEngineOptions } from '../managed-server/server-engine.ts';
import type { PostgresqlClients } from './client-commands.ts';
import type { PostgresqlLinks } from './postgresql-links.ts';
import type { findPrograms } from './postgresql-programs.ts';
import type { Guest } from './postgresql-store.ts';

export interface PostgresqlOptions extends ManagedEngineOptions {
  /** Set by tests. */
  readonly find?: typeof findPrograms;
}

/** Versions. */
export interface Upgrade {
  readonly from: string;
  readonly to: string;
}

/** Where the databases are: on a server that we look after, or on one of the operator's. */
export interface PostgresqlSite {
  readonly server: EngineServer;
  readonly links: PostgresqlLinks;
  readonly clients: PostgresqlClients;
  /** What we are there; null: it is all ours. Known once the server is up. */
  guest(): Guest | null;
  /**
   * Notes whether anybody may log in to that database over the network; true: that is new, and in force once
   * the server reads its settings again. Undefined: who may log in there is not ours to say.
   */
  readonly shutOut?: (database: string, isOut: boolean) => boolean;
  /** The endpoint of databases; without their names. */
  endpoint(): Omit<Endpoint, 'uri'>;
  readiness(): Promise<Readiness>;
  /** See PostgresqlEngine. */
  upgrade(): Promise<Upgrade | null>;
}
