/** Facts about the operator's server: whether it can be used, and its limits. */
import type { ClientBase } from 'pg';
import type { AppError } from '../../../platform/errors.ts';
import { type ServerAddress, serverAddress } from '../../managed-server/links/server-url.ts';
import { type ExternalFacts, type RefusalCodes, unmet } from '../../managed-server/sql-server.ts';

export interface ServerFacts extends ExternalFacts {
  readonly major: number;
  readonly isSuperuser: boolean;
  readonly mayMakeDatabases: boolean;
  readonly mayMakeRoles: boolean;
  readonly isStandby: boolean;
  readonly encoding: string;
  /** Extensions that PostgreSQL trusts. */
  readonly extensions: readonly string[];
}

const PORT = 5432;
const OLDEST = 15;
/** Wrong password; unknown user or host; unknown database. */
export const REFUSALS: RefusalCodes = {
  user: ['28P01', '28000'],
  database: '3D000',
  accessRules: 'pg_hba.conf',
};

/** Operator's server in the settings; null: none. */
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
      'Cloudlet does not limit its memory, disk and temporary files',
      ...(row.checksums === 'on' ? [] : ['its data directory has no checksums']),
      ...(row.open.length === 0
        ? []
        : [`users of databases can also connect to ${row.open.join(', ')}, until Cloudlet ends the session`]),
    ],
  };
}

/** Null: it is sufficient. */
export function unmetNeed(facts: ServerFacts, { setting, user }: ServerAddress): AppError | null {
  const { version, major, mayMakeDatabases, mayMakeRoles, isStandby, encoding } = facts;
  if (major < OLDEST) {
    const fix = `upgrade it, or name another one in ${setting}`;
    return unmet(`The operator's PostgreSQL is ${version}, older than ${OLDEST}`, fix);
  }
  if (isStandby)
    return unmet(
      "The operator's PostgreSQL is a standby, which is read-only",
      `name its primary in ${setting}`,
    );
  if (encoding !== 'UTF8')
    return unmet(
      `The operator's PostgreSQL has the encoding ${encoding}`,
      'create it again with initdb --encoding=UTF8',
    );
  const missing = [...(mayMakeDatabases ? [] : ['CREATEDB']), ...(mayMakeRoles ? [] : ['CREATEROLE'])];
  if (missing.length === 0) return null;
  return unmet(
    `The user in ${setting} lacks ${missing.join(' and ')} on the operator's PostgreSQL`,
    `have an administrator run on that server: ALTER ROLE "${user.replaceAll('"', '""')}" ${missing.join(' ')}`,
  );
}
