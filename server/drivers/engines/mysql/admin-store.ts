/** How the administrator queries a server, and the names that we created there. */
import type { Connection, RowDataPacket } from 'mysql2/promise';
import type { Dialect } from './dialects.ts';

/** The administrator's connection and the server's dialect. */
export type Admin = Pick<Connection, 'query'> & { readonly dialect: Dialect };

const NAME = /^[a-z][a-z0-9_]{1,62}$/;

/** A quoted name. Throws for names that we never create. */
export function id(name: string): string {
  if (!NAME.test(name)) throw new Error('not a name that Cloudlet generates');
  return `\`${name}\``;
}

export async function run(admin: Admin, statements: readonly string[]): Promise<void> {
  for (const statement of statements) await admin.query(statement);
}

export async function rowsOf(admin: Admin, sql: string, values: unknown[] = []): Promise<RowDataPacket[]> {
  const [rows] = await admin.query<RowDataPacket[]>(sql, values);
  return rows;
}

/** Names of all databases that we created, complete or not. */
export async function databases(admin: Admin): Promise<string[]> {
  const { mark, users } = admin.dialect;
  const made =
    mark === null
      ? await rowsOf(
          admin,
          `SELECT SCHEMA_NAME AS name FROM information_schema.SCHEMATA
           UNION SELECT CONCAT('d_', SUBSTRING(user, 3)) FROM (${users}) u WHERE user LIKE 'u\\_%'
           UNION SELECT user FROM (${users}) u WHERE user LIKE 't\\_%'`,
        )
      : await rowsOf(admin, 'SELECT REPLACE(Db, ?, ?) AS name FROM mysql.db WHERE User = ?', [
          '\\_',
          '_',
          mark,
        ]);
  return made.map(({ name }) => String(name)).filter((name) => /^[dt]_/.test(name));
}

/** Rows about our users. */
export async function ofOurs<Row extends { readonly user: string }>(
  admin: Admin,
  rows: readonly Row[],
): Promise<readonly Row[]> {
  if (admin.dialect.mark === null || rows.length === 0) return rows;
  const mine = new Set(await databases(admin));
  return rows.filter(({ user }) => mine.has(databaseOf(user)));
}

/** The database that one of our users belongs to. */
export function databaseOf(user: string): string {
  return user.replace(/^[uwr]_/, 'd_');
}
