/** What a server of the operator's is, whether it will do, and what cannot be had of it. */
import type { ClientBase } from 'pg';
import { AppError } from '../../platform/errors.ts';
import { type ServerAddress, serverAddress } from '../managed-server/server-url.ts';

export interface ServerFacts {
  /** `16.4`. */
  readonly version: string;
  readonly major: number;
  readonly isSuperuser: boolean;
  readonly mayMakeDatabases: boolean;
  readonly mayMakeRoles: boolean;
  readonly isStandby: boolean;
  readonly encoding: string;
  /** That PostgreSQL trusts. */
  readonly extensions: readonly string[];
  /** What is not as on a server of our own, for humans. */
  readonly limits: readonly string[];
}

const PORT = 5432;
const OLDEST = 15;
/** Wrong password; no such user, or none that may come from here; no such database. */
const REFUSED = ['28P01', '28000'];
const NO_DATABASE = '3D000';

/** By the settings; null: there is none. */
export function externalPostgresql({
  postgresqlUrl,
}: {
  readonly postgresqlUrl: string;
}): ServerAddress | null {
  return postgresqlUrl === '' ? null : serverAddress('CLOUDLET_POSTGRESQL_URL', postgresqlUrl, PORT);
}

export async function serverFacts(client: ClientBase): Promise<ServerFacts> {
  const { rows } = await client.query(
    `SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int AS number,
       current_setting('server_encoding') AS encoding, current_setting('data_checksums') AS checksums,
       pg_is_in_recovery() AS standby, rolsuper, rolcreatedb, rolcreaterole,
       ARRAY(SELECT DISTINCT name::text FROM pg_available_extension_versions WHERE trusted ORDER BY 1)
         AS extensions,
       ARRAY(SELECT datname::text FROM pg_database WHERE datallowconn AND datname !~ '^[dt]_[a-z0-9]{16}$'
         AND has_database_privilege('public', oid, 'CONNECT') ORDER BY 1) AS open
     FROM pg_roles WHERE rolname = current_user`,
  );
  const [row] = rows;
  return {
    version: String(row.version).split(' ')[0] as string,
    major: Math.floor(row.number / 10_000),
    isSuperuser: row.rolsuper,
    mayMakeDatabases: row.rolsuper || row.rolcreatedb,
    mayMakeRoles: row.rolsuper || row.rolcreaterole,
    isStandby: row.standby,
    encoding: row.encoding,
    extensions: row.extensions,
    limits: [
      'its memory, disk and temporary files are not bounded by Cloudlet',
      ...(row.checksums === 'on' ? [] : ['its data have no checksums']),
      ...(row.open.length === 0
        ? []
        : [`users of databases can also connect to ${row.open.join(', ')}, until they are sent away`]),
    ],
  };
}

/** Null: it will do. */
export function unmetNeed(facts: ServerFacts, { setting, user }: ServerAddress): AppError | null {
  const { version, major, mayMakeDatabases, mayMakeRoles, isStandby, encoding } = facts;
  const refuse = (what: string, hint: string) => new AppError('engine_unavailable', what, { hint });
  if (major < OLDEST) {
    const fix = `upgrade it, or name another one in ${setting}`;
    return refuse(`The operator's PostgreSQL is ${version}, older than ${OLDEST}`, fix);
  }
  if (isStandby)
    return refuse(
      "The operator's PostgreSQL is a standby, which takes no writes",
      `name its primary in ${setting}`,
    );
  if (encoding !== 'UTF8')
    return refuse(
      `The operator's PostgreSQL has the encoding ${encoding}`,
      'make it anew with --encoding=UTF8',
    );
  const missing = [...(mayMakeDatabases ? [] : ['CREATEDB']), ...(mayMakeRoles ? [] : ['CREATEROLE'])];
  if (missing.length === 0) return null;
  return refuse(
    `The user in ${setting} lacks ${missing.join(' and ')} on the operator's PostgreSQL`,
    `have an administrator run there: ALTER ROLE "${user.replaceAll('"', '""')}" ${missing.join(' ')}`,
  );
}

/** Says nothing that the server or the network did not: never the password. */
export function whyNotReached(error: unknown, { setting, host, port }: ServerAddress): AppError {
  if (error instanceof AppError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  const refuse = (what: string, hint: string) =>
    new AppError('engine_unavailable', what, { hint, retryAfterSeconds: 5, cause: error });
  const where = `The operator's PostgreSQL at ${host}:${port}`;
  if (REFUSED.includes(String(code))) {
    const fix = `correct user and password in ${setting}, let that user in (pg_hba.conf), and restart Cloudlet`;
    return refuse(`${where} refuses the user in ${setting}`, fix);
  }
  if (code === NO_DATABASE) return refuse(`${where} has no database of that name`, `correct ${setting}`);
  return refuse(
    `${where} cannot be reached: ${message || code}`,
    `start it, or correct ${setting}; a certificate of one's own is named by sslrootcert=PATH in it`,
  );
}
