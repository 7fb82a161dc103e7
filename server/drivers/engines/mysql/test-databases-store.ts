/**
 * Databases that tenants create on their account's server, for tests and as shadows. They are
 * recognized by name, because MariaDB stores no owner: all users of the account share them.
 */
import type { TestDatabase } from '../../../databases/engine.ts';
import { isTestName, MOST_TEST_DATABASES } from '../shared/test-databases.ts';
import { type Admin, rowsOf, run } from './admin-store.ts';

/** Characters of a name of MySQL. */
const MOST_NAME = 64;
/** Patterns of names, as GRANT and LIKE have them. */
export const TEST_DATABASES = ['test%', '%\\_test%', '%\\_shadow%'];
const THEIRS = `(${TEST_DATABASES.map((names) => `SCHEMA_NAME LIKE '${names}'`).join(' OR ')})`;

/** A name chosen by a tenant, as SQL. */
export function foreign(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``;
}

/** Creates a test database for a load. False: the name exists, or is not a test database's. */
export async function makeTest(admin: Admin, name: string): Promise<boolean> {
  if (!isTestName(name) || name.length > MOST_NAME) return false;
  const there = await testDatabases(admin);
  if (there.length >= MOST_TEST_DATABASES || there.some((one) => one.name === name)) return false;
  await admin.query(`CREATE DATABASE ${foreign(name)} CHARACTER SET utf8mb4`);
  return true;
}

/** For one created by makeTest(). */
export async function dropTest(admin: Admin, name: string): Promise<void> {
  await admin.query(`DROP DATABASE IF EXISTS ${foreign(name)}`);
}

export async function testBytes(admin: Admin, name: string): Promise<number> {
  return (await testDatabases(admin)).find((one) => one.name === name)?.sizeBytes ?? 0;
}

export async function testDatabases(admin: Admin): Promise<TestDatabase[]> {
  const rows = await rowsOf(
    admin,
    // File names encode the characters that files cannot have.
    `SELECT SCHEMA_NAME AS name, COALESCE(SUM(f.bytes), 0) AS bytes
     FROM information_schema.SCHEMATA s LEFT JOIN (${admin.dialect.files}) f
       ON LEFT(f.name, LOCATE('/', f.name) - 1) = CONVERT(CAST(CONVERT(s.SCHEMA_NAME USING filename) AS BINARY) USING utf8mb4)
     WHERE ${THEIRS} GROUP BY 1 ORDER BY 1`,
  );
  return rows.map(({ name, bytes }) => ({ name: String(name), sizeBytes: Number(bytes), madeBy: null }));
}

/**
 * Revokes the right to create more, or tables in them, from all users while there are `most`, and
 * restores it afterwards: MariaDB has no such limit.
 */
export async function boundTestDatabases(admin: Admin, most: number): Promise<void> {
  const rows = await rowsOf(
    admin,
    `SELECT User AS user, Host AS host, Db AS names, Create_priv = 'N' AS may FROM mysql.db,
       (SELECT COUNT(*) >= ? AS isfull FROM information_schema.SCHEMATA WHERE ${THEIRS}) AS has
     WHERE Db IN (?) AND (isfull AND Create_priv = 'Y' OR NOT isfull AND Create_priv = 'N' AND Insert_priv = 'Y')`,
    [most, TEST_DATABASES],
  );
  const change = ({ user, host, names, may }: (typeof rows)[number]) =>
    `${Number(may) === 1 ? 'GRANT' : 'REVOKE'} CREATE ON \`${names}\`.* ${Number(may) === 1 ? 'TO' : 'FROM'} \`${user}\`@'${host}'`;
  await run(admin, rows.map(change));
}
