/** How the administrator asks a server, and which names there are ours. */
import type { Connection, RowDataPacket } from 'mysql2/promise';
import type { Dialect } from './dialects.ts';

/** The administrator's connection, and how that server is asked. */
export type Admin = Pick<Connection, 'query'> & { readonly dialect: Dialect };

const NAME = /^[a-z][a-z0-9_]{1,62}$/;

/** A name as SQL. Throws for what we never made. */
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

/** Names of all that we made, whole or not. */
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

/** The rows about users of ours. */
export async function ofOurs<Row extends { readonly user: string }>(
  admin: Admin,
  rows: readonly Row[],
): Promise<readonly Row[]> {
  if (admin.dialect.mark === null || rows.length === 0) return rows;
  const mine = new Set(await databases(admin));
  return rows.filter(({ user }) => mine.has(databaseOf(user)));
}

/** The database that a user of ours belongs to. */
export function databaseOf(user: string): string {
  return user.replace(/^[uwr]_/, 'd_');
}
