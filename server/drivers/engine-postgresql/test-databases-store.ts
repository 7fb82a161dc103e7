/**
 * Databases that tenants make for themselves on the server of their account, for tests and as shadows. They
 * are known by their owners, whatever their names are: ours belong to the administrator.
 */
import type { ClientBase } from 'pg';
import type { TestDatabase } from '../../databases/engine.ts';
import { MOST_TEST_DATABASES } from '../managed-server/sql-engine.ts';
import { ADMIN, DUMPER, foreign, id, ownedBy, type Roles } from './postgresql-store.ts';

const THEIRS = `FROM pg_database d JOIN pg_roles r ON r.oid = d.datdba WHERE r.rolname <> '${ADMIN}'`;
/** NAMEDATALEN - 1, less what a copy adds. */
const MOST_NAME_BYTES = 63 - '_copy9'.length;
const COPIES = 9;
const OUR_ROLE = '^[duq]_[a-z0-9]{16}$';

export async function testDatabases(client: ClientBase): Promise<TestDatabase[]> {
  const { rows } = await client.query(
    `SELECT d.datname AS name, pg_database_size(d.oid) AS bytes,
       CASE WHEN r.rolname ~ $1 THEN 'd_' || substr(r.rolname, 3) END AS owner ${THEIRS} ORDER BY d.oid`,
    [OUR_ROLE],
  );
  return rows.map(({ name, bytes, owner }) => ({ name, sizeBytes: Number(bytes), madeBy: owner }));
}

/**
 * Takes the right to make more from all roles while there are `most`, and gives it back to those of ours.
 * PostgreSQL has no such limit, and until version 15 whoever makes roles may give them the right again:
 * that is looked for each second. Bytes are bounded by the size of the server.
 */
export async function boundTestDatabases(client: ClientBase, most: number): Promise<void> {
  // Asked each second: planned once for a connection.
  const { rows } = await client.query({
    name: 'bound of databases for tests',
    text: `SELECT rolname AS name, NOT rolcreatedb AS may FROM pg_roles,
         (SELECT count(*) >= $1 AS isfull ${THEIRS}) AS has
       WHERE NOT rolsuper AND (isfull AND rolcreatedb OR NOT isfull AND NOT rolcreatedb AND rolcreaterole AND rolname ~ $2)`,
    values: [most, OUR_ROLE],
  });
  if (rows.length === 0) return;
  const changes = rows.map(({ name, may }) => `ALTER ROLE ${foreign(name)} ${may ? '' : 'NO'}CREATEDB`);
  await client.query(['BEGIN', "SET LOCAL lock_timeout = '200ms'", ...changes, 'COMMIT'].join(';'));
}

/** Has new sessions in the databases of these roles read only, as those in their own. */
export async function setTestsReadOnly(client: ClientBase, of: Roles, isReadOnly: boolean): Promise<void> {
  const how = isReadOnly ? 'SET default_transaction_read_only = on' : 'RESET default_transaction_read_only';
  for (const name of await ownedBy(client, of)) await client.query(`ALTER DATABASE ${foreign(name)} ${how}`);
}

/** Removes the databases of these roles. */
export async function dropOwned(client: ClientBase, of: Roles): Promise<void> {
  for (const name of await ownedBy(client, of)) {
    await client.query(`ALTER DATABASE ${foreign(name)} IS_TEMPLATE false`);
    await client.query(`DROP DATABASE IF EXISTS ${foreign(name)} WITH (FORCE)`);
  }
}

/** Its owner may have taken that from everybody. */
export async function grantToDumper(client: ClientBase, name: string): Promise<void> {
  await client.query(`GRANT CONNECT ON DATABASE ${foreign(name)} TO ${id(DUMPER)}`);
}

/**
 * The name for a database that is loaded: its own, or that of a copy where another database of the account
 * has it. Null: these roles have it already, or the name is none.
 */
export async function freeName(client: ClientBase, name: string, of: Roles): Promise<string | null> {
  if (name === '' || name.includes('\0') || Buffer.byteLength(name) > MOST_NAME_BYTES) return null;
  if ((await ownedBy(client, of)).includes(name)) return null;
  const { rows } = await client.query('SELECT datname FROM pg_database');
  const taken = new Set(rows.map(({ datname }) => String(datname)));
  const { length } = await testDatabases(client);
  if (length >= MOST_TEST_DATABASES) throw new Error(`there are ${length} for tests on the server`);
  const copies = Array.from({ length: COPIES }, (_, i) => `${name}_copy${i === 0 ? '' : i + 1}`);
  return [name, ...copies].find((one) => !taken.has(one)) ?? null;
}

/** Gives a database that was loaded to its owner, under its name. */
export async function handOver(
  client: ClientBase,
  { fresh, target, owner }: { readonly fresh: string; readonly target: string; readonly owner: string },
): Promise<void> {
  // One message is one transaction.
  await client.query(
    [
      `ALTER DATABASE ${id(fresh)} OWNER TO ${id(owner)}`,
      `ALTER DATABASE ${id(fresh)} RENAME TO ${foreign(target)}`,
    ].join(';'),
  );
}
