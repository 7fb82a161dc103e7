import type { Endpoint, Readiness } from '../../databases/engine.ts';
import type { EngineServer } from '../managed-server/engine-server.ts';
import type { Admin } from './admin-store.ts';
import type { MysqlClients } from './client-commands.ts';
import type { MysqlLinks } from './mysql-links.ts';

/** Where the databases are: on a server that we look after, or on one of the operator's. */
export interface MysqlSite {
  readonly server: EngineServer;
  readonly links: MysqlLinks;
  readonly clients: MysqlClients;
  /** Who dumps databases. */
  readonly dumper: () => { readonly user: string; readonly password: string };
  /** Bytes of the files of a database; 0: the tenant dropped it. */
  readonly fileBytes: (admin: Admin, database: string) => Promise<number>;
  /** The databases' endpoint, without their names. */
  endpoint(): Omit<Endpoint, 'uri'>;
  readiness(): Promise<Readiness>;
}
