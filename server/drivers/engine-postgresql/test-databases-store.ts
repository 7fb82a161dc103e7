/**
 * Databases that tenants make for themselves on the server of their account, for tests and as shadows. They
 * are known by their owners, whatever their names are: ours belong to the administrator.
 */
import type { ClientBase } from 'pg';
import type { TestDatabase } from '../../databases/engine.ts';
import { ADMIN, foreign, type Roles } from './postgresql-store.ts';

const THEIRS = `FROM pg_database d JOIN pg_roles r ON r.oid = d.datdba WHERE r.rolname <> '${ADMIN}'`;
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
  const { rows } = await client.query(
    `SELECT rolname AS name, NOT rolcreatedb AS may FROM pg_roles,
       (SELECT count(*) >= $1 AS isfull ${THEIRS}) AS has
     WHERE NOT rolsuper AND (isfull AND rolcreatedb OR NOT isfull AND NOT rolcreatedb AND rolcreaterole AND rolname ~ $2)`,
    [most, OUR_ROLE],
  );
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

async function ownedBy(client: ClientBase, { group, user, local }: Roles): Promise<string[]> {
  const { rows } = await client.query(
    'SELECT d.datname FROM pg_database d JOIN pg_roles r ON r.oid = d.datdba WHERE r.rolname = ANY($1) ORDER BY d.oid',
    [[group, user, local]],
  );
  return rows.map(({ datname }) => String(datname));
}
