/** How psql and pg_dump are called. */
import { join } from 'node:path';
import { type ClientCommand, type Clients, SOCKET_LINK } from '../managed-server/client-programs.ts';
import type { RemotePlace } from '../managed-server/external-place.ts';
import type { PostgresqlPrograms } from './postgresql-programs.ts';

export interface ClientWork {
  readonly program: 'psql' | 'pg_dump';
  readonly args: readonly string[];
  readonly user: string;
  readonly password: string;
  readonly database: string;
  readonly options: string;
}

export type PostgresqlClients = Clients<ClientWork>;

/** By its socket, which has the port in its name; or over the network. */
type At = { readonly port: number } | RemotePlace;

const CA_FILE = 'ca.pem';

export function clientCommand(programs: PostgresqlPrograms, at: At, work: ClientWork): ClientCommand {
  const { bin, env, readOnly } = programs;
  const { place, files } = 'host' in at ? remote(at) : local();
  const connection = {
    ...place,
    PGPORT: String(at.port),
    PGUSER: work.user,
    PGPASSWORD: work.password,
    PGDATABASE: work.database,
    PGOPTIONS: work.options,
    PGCONNECT_TIMEOUT: '10',
  };
  const command = join(bin, work.program);
  return { command, args: work.args, env: { ...env, ...connection }, readOnly, files };
}

/** By its working directory, wherever it sees that. */
function local() {
  return { place: { PGHOST: `/proc/self/cwd/${SOCKET_LINK}` }, files: {} };
}

function remote({ host, ca }: RemotePlace) {
  if (ca === null) return { place: { PGHOST: host, PGSSLMODE: 'disable' }, files: {} };
  const place = { PGHOST: host, PGSSLMODE: 'verify-full', PGSSLROOTCERT: `/proc/self/cwd/${CA_FILE}` };
  return { place, files: { [CA_FILE]: ca } };
}
