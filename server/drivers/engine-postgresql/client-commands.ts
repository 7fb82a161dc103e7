/** How psql and pg_dump are called. */
import { join } from 'node:path';
import { type ClientCommand, type ClientPrograms, SOCKET_LINK } from '../managed-server/client-programs.ts';
import type { PostgresqlPrograms } from './postgresql-programs.ts';

export interface ClientWork {
  readonly program: 'psql' | 'pg_dump';
  readonly args: readonly string[];
  readonly user: string;
  readonly password: string;
  readonly database: string;
  readonly options: string;
}

export type PostgresqlClients = ClientPrograms<ClientWork>;

/** `port`: in the name of the server's socket. */
export function clientCommand(programs: PostgresqlPrograms, port: number, work: ClientWork): ClientCommand {
  const { bin, env, readOnly } = programs;
  const connection = {
    // By its working directory, wherever it sees that.
    PGHOST: `/proc/self/cwd/${SOCKET_LINK}`,
    PGPORT: String(port),
    PGUSER: work.user,
    PGPASSWORD: work.password,
    PGDATABASE: work.database,
    PGOPTIONS: work.options,
    PGCONNECT_TIMEOUT: '10',
  };
  return { command: join(bin, work.program), args: work.args, env: { ...env, ...connection }, readOnly };
}
