/** SQL that finds out which features used by dumps a server has. */
import type { Connection as Driver, RowDataPacket } from 'mysql2';
import { type Admin, rowsOf } from './admin-store.ts';

/** Full names: from 10.10 on, MariaDB has some collations for several character sets. */
export async function collationsOf(admin: Admin): Promise<ReadonlySet<string>> {
  const [full] = await rowsOf(
    admin,
    `SELECT 1 FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'information_schema'
     AND TABLE_NAME = 'COLLATION_CHARACTER_SET_APPLICABILITY' AND COLUMN_NAME = 'FULL_COLLATION_NAME'`,
  );
  const column = full === undefined ? 'COLLATION_NAME' : 'FULL_COLLATION_NAME';
  const rows = await rowsOf(
    admin,
    `SELECT ${column} AS name FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY`,
  );
  return new Set(rows.map(({ name }) => String(name)));
}

/** The storage engine forced for all tables; null: statements choose it. */
export async function enforcedEngine(admin: Admin): Promise<string | null> {
  const [row] = await rowsOf(admin, "SHOW GLOBAL VARIABLES LIKE 'enforce_storage_engine'");
  const name = String(row?.Value ?? '');
  return name === '' ? null : name;
}

/** Names of the databases in which the user of this connection has any right. */
export async function reachableDatabases(driver: Driver): Promise<ReadonlySet<string>> {
  const [rows] = await driver
    .promise()
    .query<RowDataPacket[]>('SELECT SCHEMA_NAME AS name FROM information_schema.SCHEMATA');
  return new Set(rows.map(({ name }) => String(name)));
}

/** The given functions that MariaDB does not have; none: MySQL, or one that does not say. */
export async function absentFunctions(admin: Admin, names: readonly string[]): Promise<ReadonlySet<string>> {
  if (!(await listsFunctions(admin))) return new Set();
  const rows = await rowsOf(admin, 'SELECT LOWER(`FUNCTION`) AS name FROM information_schema.SQL_FUNCTIONS');
  const present = new Set(rows.map(({ name }) => String(name)));
  return new Set(names.filter((name) => !present.has(name)));
}

/** Whether MariaDB has the built-in function; false: MySQL, or one that does not say. */
export async function hasFunction(admin: Admin, name: string): Promise<boolean> {
  if (!(await listsFunctions(admin))) return false;
  const found = await rowsOf(admin, 'SELECT 1 FROM information_schema.SQL_FUNCTIONS WHERE `FUNCTION` = ?', [
    name,
  ]);
  return found.length > 0;
}

async function listsFunctions(admin: Admin): Promise<boolean> {
  const where = "TABLE_SCHEMA = 'information_schema' AND TABLE_NAME = 'SQL_FUNCTIONS'";
  return (await rowsOf(admin, `SELECT 1 FROM information_schema.TABLES WHERE ${where}`)).length > 0;
}
