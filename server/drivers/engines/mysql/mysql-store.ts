/** Every statement that the administrator sends. Names and passwords are ours, never a user's text. */
import type { Access, EngineLimits } from '../../../databases/engine.ts';
import { AppError } from '../../../platform/errors.ts';
import { type Admin, databaseOf, id, ofOurs, rowsOf, run } from './admin-store.ts';
import type { Dialect } from './dialects.ts';
import { endSessions } from './sessions-store.ts';
import { TEST_DATABASES } from './test-databases-store.ts';

export const ADMIN = 'cloudlet';
/** May read everything, and change nothing. */
export const DUMPER = 'cloudlet_dump';

/** Privileges with which a database can grow. */
const GROWTH =
  'INSERT, UPDATE, CREATE, ALTER, INDEX, CREATE VIEW, CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER';
/** Errors if one of these is missing: on a database, table, column, routine; and of a read-only server. */
export const NO_GROWTH = ['1044', '1142', '1143', '1370', '1290'];
const NO_SUCH_GRANT = 1141;

/** The users of one database. On our own server only the tenant's can log in over TCP. */
export interface Users {
  readonly database: string;
  /** The tenant's. */
  readonly user: string;
  /** Role for the tenant's writing statements; what it creates belongs to the tenant. */
  readonly writer: string;
  /** Role for the tenant's reading statements. */
  readonly reader: string;
  /** On the operator's server: for dumps, may only read and call no function. */
  readonly dumper: string;
}

export function usersOf(database: string): Users {
  const rest = database.replace(/^d_/, '');
  return { database, user: `u_${rest}`, writer: `w_${rest}`, reader: `r_${rest}`, dumper: `b_${rest}` };
}

/** A name in GRANT, where `_` is a wildcard. */
function granted(name: string): string {
  return `${id(name).replaceAll('_', '\\_')}.*`;
}

function identified({ dialect }: Admin, password: string): string {
  if (!/^[\w-]+$/.test(password)) throw new Error('not a password that Cloudlet generated');
  return dialect.identified(password);
}

const ours = ({ dialect }: Admin, user: string) => `${id(user)}@'${dialect.ourHost}'`;
const anywhere = (user: string) => `${id(user)}@'%'`;

/** Sets up the users that all databases share; repeated at each start. */
export async function setUpServer(admin: Admin, dumperPassword: string): Promise<void> {
  const { mark } = admin.dialect;
  // On an operator's server, only the administrator can read everything.
  if (mark !== null) return run(admin, [`CREATE USER IF NOT EXISTS ${marker(mark)} ACCOUNT LOCK`]);
  const dumper = ours(admin, DUMPER);
  await run(admin, [
    `CREATE USER IF NOT EXISTS ${dumper}`,
    `ALTER USER ${dumper} ${identified(admin, dumperPassword)}`,
    `GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, LOCK TABLES ON *.* TO ${dumper}`,
  ]);
}

const marker = (mark: string) => `${id(mark)}@localhost`;

/** Throws if it belongs to another cloud. */
export async function makeDatabase(admin: Admin, name: string): Promise<void> {
  await markDatabase(admin, name);
  await admin.query(`CREATE DATABASE IF NOT EXISTS ${id(name)} CHARACTER SET utf8mb4`);
}

/** Databases without comments are marked by a grant to an impossible user. */
async function markDatabase(admin: Admin, name: string): Promise<void> {
  const { mark } = admin.dialect;
  if (mark === null) return;
  const marks = await rowsOf(admin, "SELECT User FROM mysql.db WHERE Db = ? AND User LIKE 'c\\_%'", [
    name.replaceAll('_', '\\_'),
  ]);
  if (marks.some(({ User }) => User !== mark)) {
    throw new AppError('engine_unavailable', `The database ${name} on that server belongs to another cloud`, {
      hint: 'load a dump into a new database instead',
    });
  }
  await admin.query(`GRANT SHOW VIEW ON ${granted(name)} TO ${marker(mark)}`);
}

export async function makeUsers(
  admin: Admin,
  { database, user, writer, reader }: Users,
  passwords: { readonly user: string; readonly writer: string; readonly reader: string },
): Promise<void> {
  const [tenant, ofWriter, ofReader] = [anywhere(user), ours(admin, writer), ours(admin, reader)];
  const accounts = [
    [tenant, passwords.user],
    [ofWriter, passwords.writer],
    [ofReader, passwords.reader],
  ] as const;
  await run(admin, [
    ...accounts.map(([account]) => `CREATE USER IF NOT EXISTS ${account}`),
    ...accounts.map(([account, password]) => `ALTER USER ${account} ${identified(admin, password)}`),
    ...[tenant, ofWriter].flatMap((account) => everything(admin, database, account)),
    `GRANT SELECT, SHOW VIEW ON ${granted(database)} TO ${ofReader}`,
  ]);
}

/** All privileges, except EVENT on an operator's server, where events would ignore the limits. */
function everything({ dialect }: Admin, database: string, account: string): string[] {
  const all = `GRANT ALL PRIVILEGES ON ${granted(database)} TO ${account}`;
  if (dialect.mark !== null) return [all, `REVOKE EVENT ON ${granted(database)} FROM ${account}`];
  const forTests = TEST_DATABASES.map((names) => `GRANT ALL PRIVILEGES ON \`${names}\`.* TO ${account}`);
  return [all, ...forTests];
}

/** Revokes the rights to grow. Those on databases for tests may not have been granted yet. */
function noGrowth({ dialect }: Admin, database: string, account: string): string[] {
  const own = `REVOKE ${GROWTH} ON ${granted(database)} FROM ${account}`;
  if (dialect.mark !== null) return [own];
  const forTests = TEST_DATABASES.flatMap((names) => [
    `GRANT SELECT ON \`${names}\`.* TO ${account}`,
    `REVOKE ${GROWTH} ON \`${names}\`.* FROM ${account}`,
  ]);
  return [own, ...forTests];
}

/** On the operator's server, where no user of ours may read all databases. Idempotent. */
export async function makeDumper(admin: Admin, database: string, password: string): Promise<void> {
  const dumper = ours(admin, usersOf(database).dumper);
  await run(admin, [
    `CREATE USER IF NOT EXISTS ${dumper}`,
    `ALTER USER ${dumper} ${identified(admin, password)}`,
    `GRANT SELECT, SHOW VIEW, TRIGGER, LOCK TABLES ON ${granted(database)} TO ${dumper}`,
  ]);
}

/** A user of Cloudlet's with all rights on that database. */
export async function makeLoader(admin: Admin, database: string, password: string): Promise<void> {
  const loader = ours(admin, database);
  await run(admin, [
    `CREATE USER ${loader} ${identified(admin, password)}`,
    ...everything(admin, database, loader),
  ]);
}

export async function dropLoader(admin: Admin, database: string): Promise<void> {
  await admin.query(`DROP USER IF EXISTS ${ours(admin, database)}`);
  await endSessions(admin, [database]);
}

export async function setPassword(admin: Admin, user: string, password: string): Promise<void> {
  await admin.query(`ALTER USER ${anywhere(user)} ${identified(admin, password)}`);
}

/** The server's hash of the password of a tenant's user. MariaDB only. */
export async function verifierOf(admin: Admin, user: string): Promise<string> {
  const sql =
    "SELECT JSON_VALUE(Priv, '$.authentication_string') AS hash FROM mysql.global_priv WHERE User = ?";
  const [row] = await rowsOf(admin, sql, [user]);
  return String(row?.hash);
}

export async function setVerifier(admin: Admin, user: string, hash: string): Promise<void> {
  if (!/^\*[0-9A-F]{40}$/.test(hash)) throw new Error('not a hash of a password');
  await admin.query(`ALTER USER ${anywhere(user)} IDENTIFIED BY PASSWORD '${hash}'`);
}

/** Sets the password of one of our users. */
export async function setOurPassword(admin: Admin, user: string, password: string): Promise<void> {
  await admin.query(`ALTER USER ${ours(admin, user)} ${identified(admin, password)}`);
}

/** The statement with which our server's administrator changes its own password. */
export function administratorPassword({ identified }: Dialect, password: string): string {
  return `ALTER USER ${ADMIN}@localhost ${identified(password)}`;
}

export async function limitUsers(
  admin: Admin,
  { user, writer, reader }: Users,
  { connections, statementMs }: EngineLimits,
): Promise<void> {
  const limited = admin.dialect.limited(statementMs);
  await run(admin, [
    `ALTER USER ${anywhere(user)} WITH MAX_USER_CONNECTIONS ${connections} ${limited}`,
    // Users of Cloudlet's have no connection limit.
    ...[writer, reader].map(
      (name) => `ALTER USER ${ours(admin, name)} WITH MAX_USER_CONNECTIONS 0 ${limited}`,
    ),
  ]);
}

export async function setConnections(admin: Admin, user: string, connections: number): Promise<void> {
  await admin.query(`ALTER USER ${anywhere(user)} WITH MAX_USER_CONNECTIONS ${Math.trunc(connections)}`);
}

/** The access, from the users' privileges; null: no such database. */
export async function accessOf(admin: Admin, { database, user }: Users): Promise<Access | null> {
  const rows = await rowsOf(
    admin,
    `SELECT d.Insert_priv AS may, u.locked FROM (${admin.dialect.users}) u JOIN mysql.db d ON d.User = u.user
     WHERE u.user = ? AND d.Db = ?`,
    [user, database.replaceAll('_', '\\_')],
  );
  const [row] = rows;
  if (row === undefined) return null;
  if (Number(row.locked) !== 0) return 'none';
  return row.may === 'Y' ? 'full' : 'read_only';
}

/** A session keeps its initial rights: end sessions afterwards. */
export async function setAccess(admin: Admin, users: Users, access: Access): Promise<void> {
  const { database, user, writer } = users;
  const change = (account: string) =>
    access === 'read_only' ? noGrowth(admin, database, account) : everything(admin, database, account);
  await run(admin, [
    ...[anywhere(user), ours(admin, writer)].flatMap(change),
    `ALTER USER ${anywhere(user)} ACCOUNT ${access === 'none' ? 'LOCK' : 'UNLOCK'}`,
  ]);
}

/**
 * Databases that are missing while their users exist: the privilege to drop tables allows dropping
 * the database.
 */
export async function droppedByTenants(admin: Admin): Promise<string[]> {
  const rows = await rowsOf(
    admin,
    `SELECT user FROM (${admin.dialect.users}) u WHERE user REGEXP '^u_'
       AND CONCAT('d_', SUBSTRING(user, 3)) NOT IN (SELECT SCHEMA_NAME FROM information_schema.SCHEMATA)`,
  );
  const found = rows.map(({ user }) => ({ user: String(user) }));
  return (await ofOurs(admin, found)).map(({ user }) => databaseOf(user));
}

/** The users of the database stay. */
export async function dropDatabase(admin: Admin, name: string): Promise<void> {
  const { mark } = admin.dialect;
  await admin.query(`DROP DATABASE IF EXISTS ${id(name)}`);
  if (mark === null) return;
  try {
    await admin.query(`REVOKE ALL PRIVILEGES ON ${granted(name)} FROM ${marker(mark)}`);
  } catch (error) {
    if ((error as { errno?: number }).errno !== NO_SUCH_GRANT) throw error;
  }
}

export async function dropUsers(admin: Admin, { user, ...others }: Users): Promise<void> {
  const mine = [others.writer, others.reader, others.dumper];
  await admin.query(
    `DROP USER IF EXISTS ${anywhere(user)}, ${mine.map((name) => ours(admin, name)).join(', ')}`,
  );
  // Sessions survive their user.
  await endSessions(admin, [user, ...mine]);
}

/** Restricts writing to the administrator. */
export async function holdWrites(admin: Admin, isHeld: boolean): Promise<void> {
  await admin.query(`SET GLOBAL read_only = ${isHeld ? 1 : 0}`);
}
