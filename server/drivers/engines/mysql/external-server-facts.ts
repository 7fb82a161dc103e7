/** Facts about the operator's server: whether it can be used, and its limits. */
import { isIP } from 'node:net';
import type { AppError } from '../../../platform/errors.ts';
import { type ServerAddress, serverAddress } from '../../managed-server/links/server-url.ts';
import { compareVersions } from '../../managed-server/programs/unpacked-programs.ts';
import { type ExternalFacts, type RefusalCodes, unmet } from '../../managed-server/sql-server.ts';
import { type Admin, rowsOf } from './admin-store.ts';

export interface ServerFacts extends ExternalFacts {
  readonly kind: 'mariadb' | 'mysql';
  /** Version number without its suffix. */
  readonly number: string;
  readonly isReadOnly: boolean;
  /** Each table has its own file: otherwise sizes of databases are unknown. */
  readonly hasFiles: boolean;
  /** Database names in GRANT are literal, not patterns. */
  readonly hasPlainGrants: boolean;
  /** Whether the server counts each user's statements. */
  readonly countsUse: boolean;
  /** `GRANT …` that the user in the setting still needs. */
  readonly missing: readonly string[];
}

const PORT = 3306;
const OLDEST = { mariadb: '10.6', mysql: '8.0.21' } as const;
const TITLES = { mariadb: 'MariaDB', mysql: 'MySQL' } as const;
/** Wrong password or user; its host; no rights over that database. */
export const REFUSALS: RefusalCodes = {
  user: ['ER_ACCESS_DENIED_ERROR', 'ER_HOST_NOT_PRIVILEGED', 'ER_DBACCESS_DENIED_ERROR'],
  database: 'ER_BAD_DB_ERROR',
  accessRules: 'CREATE USER with this host',
};
const NO_RIGHT = [
  'ER_TABLEACCESS_DENIED_ERROR',
  'ER_SPECIFIC_ACCESS_DENIED_ERROR',
  'ER_DBACCESS_DENIED_ERROR',
];
const VARIABLES = [
  'version',
  'read_only',
  'innodb_file_per_table',
  'partial_revokes',
  'userstat',
  'performance_schema',
];

/** Operator's server in the settings; null: none. */
export function externalMysql({ mysqlUrl }: { readonly mysqlUrl: string }): ServerAddress | null {
  return mysqlUrl === '' ? null : serverAddress('CLOUDLET_MYSQL_URL', mysqlUrl, PORT);
}

export async function serverFacts(admin: Admin): Promise<ServerFacts> {
  const settings = await rowsOf(admin, 'SHOW GLOBAL VARIABLES WHERE Variable_name IN (?)', [VARIABLES]);
  const all = new Map(settings.map((row) => [String(row.Variable_name), String(row.Value)]));
  const version = all.get('version') ?? '';
  const kind = /MariaDB/i.test(version) ? 'mariadb' : 'mysql';
  const isOn = (name: string, otherwise = 'OFF') => ['ON', '1'].includes(all.get(name) ?? otherwise);
  const countsUse = kind === 'mysql' || isOn('userstat');
  const missing = await missingGrants(admin, kind);
  const open = missing.length === 0 ? await openDatabases(admin) : [];
  return {
    version,
    kind,
    number: /^\d+(?:\.\d+)*/.exec(version)?.[0] ?? '0',
    isReadOnly: !['OFF', '0'].includes(all.get('read_only') ?? 'OFF'),
    hasFiles: isOn('innodb_file_per_table', 'ON'),
    hasPlainGrants: isOn('partial_revokes'),
    countsUse,
    missing,
    limits: [
      'Cloudlet does not limit its memory, disk, temporary files and storage engines',
      ...(kind === 'mysql' ? ['Cloudlet was only tested with MariaDB, never with MySQL'] : []),
      ...(countsUse ? [] : ['statements of a database are not counted (userstat is off)']),
      ...(open.length === 0 ? [] : [`users of databases can also use ${open.join(', ')}`]),
    ],
  };
}

/** Databases in which every user has privileges. */
async function openDatabases(admin: Admin): Promise<string[]> {
  const rows = await rowsOf(
    admin,
    "SELECT DISTINCT Db FROM mysql.db WHERE User IN ('', 'PUBLIC') ORDER BY Db",
  );
  return rows.map(({ Db }) => String(Db).replaceAll('\\', ''));
}

async function missingGrants(admin: Admin, kind: ServerFacts['kind']): Promise<string[]> {
  const [who] = await rowsOf(admin, 'SELECT CURRENT_USER() AS name');
  // `maker@%`, in the format of these tables and of GRANT.
  const [, user = '', host = ''] = /^(.*)@([^@]*)$/.exec(String(who?.name)) ?? [];
  const grantee = `'${user}'@'${host}'`;
  const rights = await rowsOf(
    admin,
    'SELECT PRIVILEGE_TYPE AS name, IS_GRANTABLE AS grantable FROM information_schema.USER_PRIVILEGES WHERE GRANTEE = ?',
    [grantee],
  );
  const global = new Set(rights.map(({ name }) => String(name)));
  const isChief = global.has('SUPER') && rights.some(({ grantable }) => grantable === 'YES');
  const killer = kind === 'mariadb' ? 'CONNECTION ADMIN' : 'CONNECTION_ADMIN';
  const needed = isChief ? [] : ['CREATE USER', 'PROCESS', killer].filter((name) => !global.has(name));
  const patterns = await rowsOf(
    admin,
    `SELECT TABLE_SCHEMA AS name FROM information_schema.SCHEMA_PRIVILEGES
     WHERE GRANTEE = ? AND IS_GRANTABLE = 'YES' AND PRIVILEGE_TYPE = 'CREATE'`,
    [grantee],
  );
  const over = new Set(patterns.map(({ name }) => String(name)));
  const ours = isChief ? [] : ['d\\_%', 't\\_%'].filter((name) => !over.has(name));
  return [
    ...(needed.length === 0 ? [] : [`GRANT ${needed.join(', ')} ON *.* TO ${grantee}`]),
    ...ours.map((name) => `GRANT ALL PRIVILEGES ON \`${name}\`.* TO ${grantee} WITH GRANT OPTION`),
    ...(await missingReads(admin, kind)).map((what) => `GRANT ${what} TO ${grantee}`),
  ];
}

/** Rights over tables may come from roles and patterns, so they are tested. */
async function missingReads(admin: Admin, kind: ServerFacts['kind']): Promise<string[]> {
  const tries =
    kind === 'mariadb'
      ? [
          ['SELECT ON mysql.*', 'SELECT 1 FROM mysql.global_priv, mysql.db LIMIT 1'],
          ['UPDATE ON mysql.proc', 'UPDATE mysql.proc SET definer = definer WHERE FALSE'],
        ]
      : [
          ['SELECT ON mysql.*', 'SELECT 1 FROM mysql.user, mysql.db LIMIT 1'],
          ['SELECT ON performance_schema.*', 'SELECT 1 FROM performance_schema.threads LIMIT 1'],
        ];
  const missing: string[] = [];
  for (const [what = '', statement = ''] of tries) {
    await admin.query(statement).catch((error) => {
      if (!NO_RIGHT.includes(error.code)) throw error;
      missing.push(what);
    });
  }
  return missing;
}

/** Null: it is sufficient. */
export function unmetNeed(facts: ServerFacts, { setting }: ServerAddress): AppError | null {
  const { kind, number, version, isReadOnly, hasFiles, hasPlainGrants, missing } = facts;
  const title = TITLES[kind];
  const oldest = OLDEST[kind];
  const fixed = (setting: string) => `have an administrator run on that server: ${setting}`;
  if (compareVersions(number, oldest) < 0)
    return unmet(
      `The operator's ${title} is ${version}, older than ${oldest}`,
      `upgrade it, or name another one in ${setting}`,
    );
  if (isReadOnly)
    return unmet(
      `The operator's ${title} is read-only (read_only = ON), like a replica`,
      `name its primary in ${setting}, or ${fixed('SET GLOBAL read_only = OFF')}`,
    );
  if (!hasFiles)
    return unmet(
      `The operator's ${title} keeps all tables in one file, so the size of a database is not known`,
      fixed('SET GLOBAL innodb_file_per_table = ON'),
    );
  if (hasPlainGrants)
    return unmet(
      `The operator's ${title} has partial_revokes on, so rights over databases by a pattern cannot be given`,
      fixed('SET PERSIST partial_revokes = OFF'),
    );
  if (missing.length === 0) return null;
  return unmet(
    `The user in ${setting} lacks rights on the operator's ${title}`,
    fixed(missing.map((grant) => `${grant};`).join(' ')),
  );
}

/** Null: its certificate can be verified, or need not be. */
export function unverifiable({ setting, host, tls }: ServerAddress): AppError | null {
  if (!tls || isIP(host) === 0) return null;
  return unmet(
    `The certificate of the operator's MySQL server at ${host} cannot be verified: the driver verifies host names only`,
    `name the host in ${setting} as its certificate does, or add ?sslmode=disable on a network that you trust`,
  );
}
