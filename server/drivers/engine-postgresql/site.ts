import type { Endpoint, Readiness } from '../../databases/engine.ts';
import type { EngineServer } from '../managed-server/engine-server.ts';
import type { PostgresqlClients } from './client-commands.ts';
import type { PostgresqlLinks } from './postgresql-links.ts';
import type { Guest } from './postgresql-store.ts';

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
  /** Of databases; without their names. */
  endpoint(): Omit<Endpoint, 'uri'>;
  readiness(): Promise<Readiness>;
  /** See PostgresqlEngine. */
  upgrade(): Promise<Upgrade | null>;
}
