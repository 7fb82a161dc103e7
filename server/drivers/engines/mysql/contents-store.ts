/**
 * Statements about the content and size of databases. The administrator never asks for more about a view than
 * its name and type: the server would open it, and could run a function of the tenant with our rights.
 */
import type { Connection as Driver, RowDataPacket } from 'mysql2';
import { type Admin, id, rowsOf } from './admin-store.ts';
import type { Users } from './mysql-store.ts';

/** A quoted name of a tenant's table or view, which can be any text. */
function foreign(name: unknown): string {
  return `\`${String(name).replaceAll('`', '``')}\``;
}

/** Bytes of the files of InnoDB, by the server's own figures, for tables that were opened before. */
export async function innodbBytes(admin: Admin, database: string): Promise<number> {
  const [files] = await rowsOf(
    admin,
    `SELECT SUM(bytes) AS bytes FROM (${admin.dialect.files}) f WHERE LEFT(name, ?) = ?`,
    [database.length + 1, `${database}/`],
  );
  return Number(files?.bytes ?? 0);
}

export interface TableBytes {
  /** Bytes of tables of other engines than InnoDB. */
  readonly others: number;
  /** Unused bytes within the files. */
  readonly free: number;
}

/**
 * Opens the tables, on a connection of a user who can call no function of the tenant: a view that took the
 * place of a table may do so when it is opened.
 */
export async function bytesOf(
  driver: Driver,
  { database, tables }: { readonly database: string; readonly tables: readonly string[] },
): Promise<TableBytes> {
  if (tables.length === 0) return { others: 0, free: 0 };
  const [rows] = await driver.promise().query<RowDataPacket[]>(
    `SELECT SUM(IF(ENGINE = 'InnoDB', 0, DATA_LENGTH + INDEX_LENGTH)) AS others, SUM(DATA_FREE) AS free
     FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME IN (?)`,
    [database, tables],
  );
  return { others: Number(rows[0]?.others ?? 0), free: Number(rows[0]?.free ?? 0) };
}

/**
 * Makes the tenant the definer of routines created by our writer, because other users could not
 * view them.
 */
export async function giveRoutines(admin: Admin, { database, user, writer }: Users): Promise<void> {
  if (!admin.dialect.hasProc) return;
  await admin.query('UPDATE mysql.proc SET definer = ? WHERE db = ? AND definer = ?', [
    `${user}@%`,
    database,
    `${writer}@${admin.dialect.ourHost}`,
  ]);
}

/** Removes views, routines and triggers, which cannot be moved; tables remain. */
export async function dropPrograms(admin: Admin, database: string): Promise<void> {
  const of = id(database);
  const routines = await rowsOf(
    admin,
    `SELECT ROUTINE_TYPE AS type, ROUTINE_NAME AS name FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = ?
     UNION ALL SELECT 'TRIGGER', TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = ?
     UNION ALL SELECT 'EVENT', EVENT_NAME FROM information_schema.EVENTS WHERE EVENT_SCHEMA = ?
     UNION ALL SELECT 'VIEW', TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_TYPE = 'VIEW'`,
    [database, database, database, database],
  );
  for (const { type, name } of routines) {
    const drop = `DROP ${type} IF EXISTS ${of}.${foreign(name)}`;
    if (!String(type).startsWith('PACKAGE')) await admin.query(drop);
    else await inModeOfOracle(admin, drop);
  }
}

/** MariaDB has packages in that mode only. */
async function inModeOfOracle(admin: Admin, statement: string): Promise<void> {
  await admin.query("SET SESSION sql_mode = 'ORACLE'");
  await admin.query(statement);
  await admin.query('SET SESSION sql_mode = DEFAULT');
}

/** Whether the database has no table, view, routine or event. */
export async function isEmpty(admin: Admin, database: string): Promise<boolean> {
  const rows = await rowsOf(
    admin,
    `SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = ?
     UNION ALL SELECT 1 FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = ?
     UNION ALL SELECT 1 FROM information_schema.EVENTS WHERE EVENT_SCHEMA = ? LIMIT 1`,
    [database, database, database],
  );
  return rows.length === 0;
}

export interface Names {
  readonly tables: readonly string[];
  readonly views: readonly string[];
}

/** Names of its tables, with sequences, and of its views. */
export async function namesOf(admin: Admin, database: string): Promise<Names> {
  const rows = await rowsOf(
    admin,
    `SELECT TABLE_NAME AS name, TABLE_TYPE = 'VIEW' AS isview FROM information_schema.TABLES
     WHERE TABLE_SCHEMA = ? ORDER BY TABLE_NAME`,
    [database],
  );
  const named = (isView: boolean) =>
    rows.filter(({ isview }) => (Number(isview) === 1) === isView).map(({ name }) => String(name));
  return { tables: named(false), views: named(true) };
}

/** Names of its tables, without views. */
export async function tablesOf(admin: Admin, database: string): Promise<string[]> {
  const rows = await rowsOf(
    admin,
    "SELECT TABLE_NAME AS name FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_TYPE <> 'VIEW'",
    [database],
  );
  return rows.map(({ name }) => String(name));
}

/**
 * Replaces the tables of `name` listed in `replaced` by those of `fresh`, all or none; the old ones
 * are in `old` afterwards. Idempotent.
 */
export async function swapTables(
  admin: Admin,
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

/** Defaults of moved tables name the database of a sequence, which was `fresh`. Idempotent. */
export async function mendDefaults(
  admin: Admin,
  { name, fresh }: { readonly name: string; readonly fresh: string },
): Promise<void> {
  const tables = await tablesOf(admin, name);
  if (tables.length === 0) return;
  const rows = await rowsOf(
    admin,
    `SELECT TABLE_NAME AS tab, COLUMN_NAME AS col, COLUMN_DEFAULT AS def FROM information_schema.COLUMNS
     WHERE TABLE_SCHEMA = ? AND TABLE_NAME IN (?) AND LOCATE(?, COLUMN_DEFAULT) > 0`,
    [name, tables, `${id(fresh)}.`],
  );
  for (const { tab, col, def } of rows) {
    const mended = String(def).replaceAll(`${id(fresh)}.`, `${id(name)}.`);
    await admin.query(
      `ALTER TABLE ${id(name)}.${foreign(tab)} ALTER COLUMN ${foreign(col)} SET DEFAULT (${mended})`,
    );
  }
}

/** Rows of each table of a database. */
export async function rowCounts(admin: Admin, database: string): Promise<Map<string, string>> {
  const counts = new Map<string, string>();
  for (const table of await tablesOf(admin, database)) {
    const [row] = await rowsOf(admin, `SELECT COUNT(*) AS n FROM ${id(database)}.${foreign(table)}`);
    counts.set(table, String(row?.n));
  }
  return counts;
}
