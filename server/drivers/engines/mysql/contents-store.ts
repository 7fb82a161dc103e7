/** Statements about the content and size of databases. */
import { type Admin, id, rowsOf } from './admin-store.ts';
import type { Users } from './mysql-store.ts';

/** A quoted name of a tenant's table or view, which can be any text. */
function foreign(name: unknown): string {
  return `\`${String(name).replaceAll('`', '``')}\``;
}

/** Bytes of its files, by the server's own figures. */
export async function fileBytes(admin: Admin, database: string): Promise<number> {
  // Opens all tables: the server has no figures for a table that was not opened yet.
  const [others] = await rowsOf(
    admin,
    `SELECT SUM(IF(ENGINE = 'InnoDB', 0, DATA_LENGTH + INDEX_LENGTH)) AS bytes
     FROM information_schema.TABLES WHERE TABLE_SCHEMA = ?`,
    [database],
  );
  const [files] = await rowsOf(
    admin,
    `SELECT SUM(bytes) AS bytes FROM (${admin.dialect.files}) f WHERE LEFT(name, ?) = ?`,
    [database.length + 1, `${database}/`],
  );
  return Number(others?.bytes ?? 0) + Number(files?.bytes ?? 0);
}

/** Unused bytes within its files. */
export async function freeBytes(admin: Admin, database: string): Promise<number> {
  const [row] = await rowsOf(
    admin,
    'SELECT SUM(DATA_FREE) AS bytes FROM information_schema.TABLES WHERE TABLE_SCHEMA = ?',
    [database],
  );
  return Number(row?.bytes ?? 0);
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

export async function viewsOf(admin: Admin, database: string): Promise<string[]> {
  const rows = await rowsOf(
    admin,
    'SELECT TABLE_NAME AS name FROM information_schema.VIEWS WHERE TABLE_SCHEMA = ? ORDER BY TABLE_NAME',
    [database],
  );
  return rows.map(({ name }) => String(name));
}

/** Removes views, routines and triggers, which cannot be moved; tables remain. */
export async function dropPrograms(admin: Admin, database: string): Promise<void> {
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

/** Rows of each table of a database. */
export async function rowCounts(admin: Admin, database: string): Promise<Map<string, string>> {
  const counts = new Map<string, string>();
  for (const table of await tablesOf(admin, database)) {
    const [row] = await rowsOf(admin, `SELECT COUNT(*) AS n FROM ${id(database)}.${foreign(table)}`);
    counts.set(table, String(row?.['n']));
  }
  return counts;
}
