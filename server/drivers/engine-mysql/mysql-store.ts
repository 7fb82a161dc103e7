/** Every statement that the administrator sends. Names and hashes are ours, never a user's text. */
import type { Connection, RowDataPacket } from 'mysql2/promise';
import type { Access, EngineLimits } from '../../databases/engine.ts';
import { type RunningStatement, SLOW_MS, SLOW_TEXT } from '../managed-server/slow-statements.ts';

export const ADMIN = 'cloudlet';
/** May read everything, and change nothing. */
export const DUMPER = 'cloudlet_dump';

const NAME = /^[a-z][a-z0-9_]{1,62}$/;
/** What lets a database grow. */
const GROWTH =
  'INSERT, UPDATE, CREATE, ALTER, INDEX, CREATE VIEW, CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER';
const NO_SUCH_THREAD = 1094;

/** The users of one database. Those besides the tenant's exist on the socket only, where no tenant comes. */
export interface Users {
  readonly database: string;
  /** The tenant's. */
  readonly user: string;
  /** By which we run statements of the tenant that may write; what it makes is its own. */
  readonly writer: string;
  /** The same for those that may not. */
  readonly reader: string;
}

export interface UseOf {
  readonly connections: number;
  readonly statements: number;
  readonly rowsReturned: number;
  readonly rowsWritten: number;
}

export interface Session {
  readonly id: number;
  readonly user: string;
  /** When it was ended. */
  readonly at: string;
}

/** A name as SQL. Throws for what we never made. */
function id(name: string): string {
  if (!NAME.test(name)) throw new Error('not a name of ours');
  return `\`${name}\``;
}

/** The same in GRANT, where `_` stands for any character. */
function granted(name: string): string {
  return `${id(name).replaceAll('_', '\\_')}.*`;
}

function hashText(hash: string): string {
  if (!/^\*[0-9A-F]{40}$/.test(hash)) throw new Error('not a hash of ours');
  return `'${hash}'`;
}

const local = (user: string) => `${id(user)}@localhost`;
const anywhere = (user: string) => `${id(user)}@'%'`;

async function run(admin: Connection, statements: readonly string[]): Promise<void> {
  for (const statement of statements) await admin.query(statement);
}

async function rowsOf(admin: Connection, sql: string, values: unknown[] = []): Promise<RowDataPacket[]> {
  const [rows] = await admin.query<RowDataPacket[]>(sql, values);
  return rows;
}

/** Of tables, views and such: of tenants' making, so any text. */
function foreign(name: unknown): string {
  return `\`${String(name).replaceAll('`', '``')}\``;
}

/** What all databases share; done again at each start. */
export async function setUpServer(admin: Connection, dumperHash: string): Promise<void> {
  await run(admin, [
    `CREATE USER IF NOT EXISTS ${local(DUMPER)}`,
    `ALTER USER ${local(DUMPER)} IDENTIFIED BY PASSWORD ${hashText(dumperHash)}`,
    `GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, LOCK TABLES ON *.* TO ${local(DUMPER)}`,
  ]);
}

export async function makeDatabase(admin: Connection, name: string): Promise<void> {
  await admin.query(`CREATE DATABASE IF NOT EXISTS ${id(name)} CHARACTER SET utf8mb4`);
}

export async function makeUsers(
  admin: Connection,
  { database, user, writer, reader }: Users,
  hashes: { readonly user: string; readonly writer: string; readonly reader: string },
): Promise<void> {
  const [tenant, ofWriter, ofReader] = [anywhere(user), local(writer), local(reader)];
  const accounts = [
    [tenant, hashes.user],
    [ofWriter, hashes.writer],
    [ofReader, hashes.reader],
  ] as const;
  await run(admin, [
    ...accounts.map(([account]) => `CREATE USER IF NOT EXISTS ${account}`),
    ...accounts.map(([account, hash]) => `ALTER USER ${account} IDENTIFIED BY PASSWORD ${hashText(hash)}`),
    `GRANT ALL PRIVILEGES ON ${granted(database)} TO ${tenant}`,
    `GRANT ALL PRIVILEGES ON ${granted(database)} TO ${ofWriter}`,
    `GRANT SELECT, SHOW VIEW ON ${granted(database)} TO ${ofReader}`,
  ]);
}

/** One of our own that may do everything in that database, on the socket. */
export async function makeLoader(admin: Connection, database: string, hash: string): Promise<void> {
  await run(admin, [
    `CREATE USER ${local(database)} IDENTIFIED BY PASSWORD ${hashText(hash)}`,
    `GRANT ALL PRIVILEGES ON ${granted(database)} TO ${local(database)}`,
  ]);
}

export async function dropLoader(admin: Connection, database: string): Promise<void> {
  await admin.query(`DROP USER IF EXISTS ${local(database)}`);
  await endSessions(admin, [database]);
}

export async function setPassword(admin: Connection, user: string, hash: string): Promise<void> {
  await admin.query(`ALTER USER ${anywhere(user)} IDENTIFIED BY PASSWORD ${hashText(hash)}`);
}

/** Of one of our own users. */
export async function setLocalPassword(admin: Connection, user: string, hash: string): Promise<void> {
  await admin.query(`ALTER USER ${local(user)} IDENTIFIED BY PASSWORD ${hashText(hash)}`);
}

export async function limitUsers(
  admin: Connection,
  { user, writer, reader }: Users,
  { connections, statementMs }: EngineLimits,
): Promise<void> {
  const time = (statementMs / 1000).toFixed(3);
  await run(admin, [
    `ALTER USER ${anywhere(user)} WITH MAX_USER_CONNECTIONS ${connections} MAX_STATEMENT_TIME ${time}`,
    ...[writer, reader].map((name) => `ALTER USER ${local(name)} WITH MAX_STATEMENT_TIME ${time}`),
  ]);
}

/** Access there is, by what the users may do; null: there is no such database. */
export async function accessOf(admin: Connection, { database, user }: Users): Promise<Access | null> {
  const rows = await rowsOf(
    admin,
    `SELECT d.Insert_priv AS may, JSON_VALUE(g.Priv, '$.account_locked') AS locked
     FROM mysql.global_priv g JOIN mysql.db d ON d.User = g.User
     WHERE g.User = ? AND d.Db = ?`,
    [user, database.replaceAll('_', '\\_')],
  );
  const [row] = rows;
  if (row === undefined) return null;
  if (row.locked !== null && Number(row.locked) !== 0) return 'none';
  return row.may === 'Y' ? 'full' : 'read_only';
}

/** A session keeps the rights it began with: end them after it. */
export async function setAccess(admin: Connection, users: Users, access: Access): Promise<void> {
  const { database, user, writer } = users;
  const change = (account: string) =>
    access === 'read_only'
      ? `REVOKE ${GROWTH} ON ${granted(database)} FROM ${account}`
      : `GRANT ALL PRIVILEGES ON ${granted(database)} TO ${account}`;
  await run(admin, [
    ...[anywhere(user), local(writer)].map(change),
    `ALTER USER ${anywhere(user)} ACCOUNT ${access === 'none' ? 'LOCK' : 'UNLOCK'}`,
  ]);
}

/** Ends all sessions of these users. */
export async function endSessions(admin: Connection, users: readonly string[]): Promise<void> {
  const rows = await rowsOf(admin, 'SELECT ID FROM information_schema.PROCESSLIST WHERE USER IN (?)', [
    users,
  ]);
  for (const { ID } of rows) await kill(admin, Number(ID));
}

export async function kill(admin: Connection, session: number): Promise<void> {
  await killHard(admin, 'CONNECTION', session);
}

/** The session goes on. */
export async function killQuery(admin: Connection, session: number): Promise<void> {
  await killHard(admin, 'QUERY', session);
}

async function killHard(admin: Connection, what: 'CONNECTION' | 'QUERY', session: number): Promise<void> {
  try {
    await admin.query(`KILL HARD ${what} ${Math.trunc(session)}`);
  } catch (error) {
    if ((error as { errno?: number }).errno !== NO_SUCH_THREAD) throw error;
  }
}

/** Names of all that we made, whole or not. */
export async function databases(admin: Connection): Promise<string[]> {
  const made = await rowsOf(
    admin,
    `SELECT SCHEMA_NAME AS name FROM information_schema.SCHEMATA
     UNION SELECT CONCAT('d_', SUBSTRING(User, 3)) FROM mysql.global_priv WHERE User LIKE 'u\\_%'
     UNION SELECT User FROM mysql.global_priv WHERE User LIKE 't\\_%'`,
  );
  return made.map(({ name }) => String(name)).filter((name) => /^[dt]_/.test(name));
}

export async function dropDatabase(admin: Connection, name: string): Promise<void> {
  await admin.query(`DROP DATABASE IF EXISTS ${id(name)}`);
}

export async function dropUsers(admin: Connection, { user, writer, reader }: Users): Promise<void> {
  await admin.query(`DROP USER IF EXISTS ${anywhere(user)}, ${local(writer)}, ${local(reader)}`);
  // They live on without their user.
  await endSessions(admin, [user, writer, reader]);
}

/** Bytes within its files that nothing is in. */
export async function freeBytes(admin: Connection, database: string): Promise<number> {
  const [row] = await rowsOf(
    admin,
    'SELECT SUM(DATA_FREE) AS bytes FROM information_schema.TABLES WHERE TABLE_SCHEMA = ?',
    [database],
  );
  return Number(row?.bytes ?? 0);
}

export async function useOf(admin: Connection, users: readonly string[]): Promise<UseOf> {
  const [row] = await rowsOf(
    admin,
    `SELECT SUM(CONCURRENT_CONNECTIONS) AS connections,
       SUM(SELECT_COMMANDS + UPDATE_COMMANDS + OTHER_COMMANDS) AS statements, SUM(ROWS_SENT) AS sent,
       SUM(ROWS_INSERTED + ROWS_UPDATED + ROWS_DELETED) AS written
     FROM information_schema.USER_STATISTICS WHERE USER IN (?)`,
    [users],
  );
  return {
    connections: Number(row?.connections ?? 0),
    statements: Number(row?.statements ?? 0),
    rowsReturned: Number(row?.sent ?? 0),
    rowsWritten: Number(row?.written ?? 0),
  };
}

/** How much each user did so far: another text when it was used. Runs that go on are told by their own. */
export async function activity(admin: Connection): Promise<Map<string, string>> {
  const rows = await rowsOf(
    admin,
    `SELECT USER, CONCAT(TOTAL_CONNECTIONS, ' ', SELECT_COMMANDS + UPDATE_COMMANDS + OTHER_COMMANDS) AS done
     FROM information_schema.USER_STATISTICS WHERE USER REGEXP '^[uwr]_'`,
  );
  const under = await rowsOf(
    admin,
    "SELECT USER, MAX(QUERY_ID) AS last FROM information_schema.PROCESSLIST WHERE USER REGEXP '^[uwr]_' GROUP BY USER",
  );
  const last = new Map(under.map((row) => [String(row.USER), String(row.last)]));
  return new Map(rows.map((row) => [String(row.USER), `${row.done} ${last.get(String(row.USER))}`]));
}

/**
 * Ends tenants' sessions whose statement runs for longer than its user may: who has a limit may lift it for
 * a session. A second later, so that the proper end comes first.
 */
export async function endRunaways(admin: Connection): Promise<Session[]> {
  const rows = await rowsOf(
    admin,
    `SELECT p.ID, p.USER, DATE_FORMAT(UTC_TIMESTAMP(), '%Y-%m-%d %H:%i:%s') AS at
     FROM information_schema.PROCESSLIST p JOIN mysql.global_priv g ON g.User = p.USER
     WHERE p.USER REGEXP '^[uwr]_' AND p.COMMAND IN ('Query', 'Execute')
       AND JSON_VALUE(g.Priv, '$.max_statement_time') > 0
       AND p.TIME_MS > 1000 * JSON_VALUE(g.Priv, '$.max_statement_time') + 1000`,
  );
  const found = rows.map(({ ID, USER, at }) => ({ id: Number(ID), user: String(USER), at: String(at) }));
  for (const session of found) await kill(admin, session.id);
  return found;
}

/** Tenants' statements that run for long; `database` is what its user belongs to. */
export async function slowStatements(admin: Connection): Promise<RunningStatement[]> {
  const rows = await rowsOf(
    admin,
    `SELECT CONCAT(ID, ' ', QUERY_ID) AS tag, USER, DATE_FORMAT(UTC_TIMESTAMP(), '%Y-%m-%d %H:%i:%s') AS at,
       TIME_MS, LEFT(INFO, ?) AS text
     FROM information_schema.PROCESSLIST
     WHERE USER REGEXP '^[uwr]_' AND COMMAND IN ('Query', 'Execute') AND TIME_MS > ?`,
    [SLOW_TEXT, SLOW_MS],
  );
  return rows.map(({ tag, USER, at, TIME_MS, text }) => ({
    key: String(tag),
    database: databaseOf(String(USER)),
    at: String(at),
    ms: Number(TIME_MS),
    text: String(text ?? ''),
  }));
}

export interface RunningThread {
  /** Of the session. */
  readonly id: number;
  readonly user: string;
  /** Of this statement alone. */
  readonly key: string;
  /** Of the operating system, as the server sees it. */
  readonly thread: number;
  readonly at: string;
}

/** Statements of tenants and of loads that run now, also those that are being ended. */
export async function runningThreads(admin: Connection): Promise<RunningThread[]> {
  const rows = await rowsOf(
    admin,
    `SELECT ID, USER, QUERY_ID, TID, DATE_FORMAT(UTC_TIMESTAMP(), '%Y-%m-%d %H:%i:%s') AS at
     FROM information_schema.PROCESSLIST
     WHERE USER REGEXP '^[tuwr]_' AND COMMAND IN ('Query', 'Execute', 'Killed')`,
  );
  return rows.map(({ ID, USER, QUERY_ID, TID, at }) => ({
    id: Number(ID),
    user: String(USER),
    key: `${ID} ${QUERY_ID}`,
    thread: Number(TID),
    at: String(at),
  }));
}

/** The database that a user of ours belongs to. */
export function databaseOf(user: string): string {
  return user.replace(/^[uwr]_/, 'd_');
}

/** Whether nobody but the administrator writes. */
export async function holdWrites(admin: Connection, isHeld: boolean): Promise<void> {
  await admin.query(`SET GLOBAL read_only = ${isHeld ? 1 : 0}`);
}

/** What was made by our own writer belongs to the tenant, who could not look at it otherwise. */
export async function giveRoutines(admin: Connection, { database, user, writer }: Users): Promise<void> {
  await admin.query('UPDATE mysql.proc SET definer = ? WHERE db = ? AND definer = ?', [
    `${user}@%`,
    database,
    `${writer}@localhost`,
  ]);
}

export async function viewsOf(admin: Connection, database: string): Promise<string[]> {
  const rows = await rowsOf(
    admin,
    'SELECT TABLE_NAME AS name FROM information_schema.VIEWS WHERE TABLE_SCHEMA = ? ORDER BY TABLE_NAME',
    [database],
  );
  return rows.map(({ name }) => String(name));
}

/** Removes views, routines and triggers, which cannot be moved; tables stay. */
export async function dropPrograms(admin: Connection, database: string): Promise<void> {
  const of = id(database);
  const routines = await rowsOf(
    admin,
    `SELECT ROUTINE_TYPE AS type, ROUTINE_NAME AS name FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = ?
     UNION ALL SELECT 'TRIGGER', TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = ?
     UNION ALL SELECT 'EVENT', EVENT_NAME FROM information_schema.EVENTS WHERE EVENT_SCHEMA = ?
     UNION ALL SELECT 'VIEW', TABLE_NAME FROM information_schema.VIEWS WHERE TABLE_SCHEMA = ?`,
    [database, database, database, database],
  );
  for (const { type, name } of routines) await admin.query(`DROP ${type} IF EXISTS ${of}.${foreign(name)}`);
}

/** Names of its tables; views are none. */
export async function tablesOf(admin: Connection, database: string): Promise<string[]> {
  const rows = await rowsOf(
    admin,
    "SELECT TABLE_NAME AS name FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_TYPE <> 'VIEW'",
    [database],
  );
  return rows.map(({ name }) => String(name));
}

/**
 * Puts tables of `fresh` in the place of those of `name` that are to be `replaced`, which are in `old` from
 * then on: all or none. Done again, it changes nothing.
 */
export async function swapTables(
  admin: Connection,
  swap: {
    readonly name: string;
    readonly fresh: string;
    readonly old: string;
    readonly replaced: readonly string[];
  },
): Promise<void> {
  const { name, fresh, old, replaced } = swap;
  const gone = new Set(await tablesOf(admin, old));
  const move = (tables: readonly string[], from: string, to: string) =>
    tables.map((table) => `${id(from)}.${foreign(table)} TO ${id(to)}.${foreign(table)}`);
  const there = new Set(await tablesOf(admin, name));
  const leaving = replaced.filter((table) => there.has(table) && !gone.has(table));
  const moves = [...move(leaving, name, old), ...move(await tablesOf(admin, fresh), fresh, name)];
  await admin.query('SET foreign_key_checks = 0');
  if (moves.length > 0) await admin.query(`RENAME TABLE ${moves.join(', ')}`);
  await admin.query('SET foreign_key_checks = 1');
}
