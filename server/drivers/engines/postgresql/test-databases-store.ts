/**
 * Databases that tenants create on their account's server, for tests and as shadows. They are
 * recognized by their owners, whatever their names: ours belong to the administrator.
 */
import type { ClientBase } from 'pg';
import type { TestDatabase } from '../../../databases/engine.ts';
import { randomName } from '../../../platform/ids.ts';
import { MOST_TEST_DATABASES } from '../shared/test-databases.ts';
import { ADMIN, DUMPER, foreign, id, ownedBy, type Roles } from './postgresql-store.ts';

const THEIRS = `FROM pg_database d JOIN pg_roles r ON r.oid = d.datdba WHERE r.rolname <> '${ADMIN}'`;
/** NAMEDATALEN - 1, less the suffix of a copy. */
const MOST_NAME_BYTES = 63 - '_copy9'.length;
const COPIES = 9;
const OUR_ROLE = '^[duq]_[a-z0-9]{16}$';
/** The character that drivers read for bytes that are not UTF-8. */
const UNREADABLE = '\uFFFD';
const LACKS_IT = `NOT rolcreatedb AND rolcreaterole AND rolname ~ '${OUR_ROLE}'`;

export async function testDatabases(client: ClientBase): Promise<TestDatabase[]> {
  const { rows } = await client.query(
    `SELECT d.datname AS name, pg_database_size(d.oid) AS bytes,
       CASE WHEN r.rolname ~ $1 THEN 'd_' || substr(r.rolname, 3) END AS owner ${THEIRS} ORDER BY d.oid`,
    [OUR_ROLE],
  );
  return rows.map(({ name, bytes, owner }) => ({ name, sizeBytes: Number(bytes), madeBy: owner }));
}

/**
 * Revokes the right to create more from all roles while there are `most`, and restores it to ours
 * afterwards. PostgreSQL has no such limit, and until version 15 a role that may create roles can
 * grant the right again, which is checked each second. Bytes are limited by the size of the server.
 */
export async function boundTestDatabases(client: ClientBase, most: number): Promise<void> {
  // Runs each second: planned once per connection.
  const { rows } = await client.query({
    name: 'bound of databases for tests',
    text: `SELECT isfull FROM pg_roles, (SELECT count(*) >= $1 AS isfull ${THEIRS}) AS has
       WHERE NOT rolsuper AND (isfull AND rolcreatedb OR NOT isfull AND ${LACKS_IT}) LIMIT 1`,
    values: [most],
  });
  const [row] = rows;
  if (row === undefined) return;
  const change = row.isfull
    ? forEach('rolname FROM pg_roles WHERE NOT rolsuper AND rolcreatedb', 'ALTER ROLE %I NOCREATEDB')
    : forEach(`rolname FROM pg_roles WHERE ${LACKS_IT}`, 'ALTER ROLE %I CREATEDB');
  await client.query(['BEGIN', "SET LOCAL lock_timeout = '200ms'", change, 'COMMIT'].join(';'));
}

/** Makes new sessions read-only in test databases of these roles too. */
export async function setTestsReadOnly(client: ClientBase, of: Roles, isReadOnly: boolean): Promise<void> {
  const how = isReadOnly ? 'SET default_transaction_read_only = on' : 'RESET default_transaction_read_only';
  await client.query(forEach(`datname ${ownedSql(of)}`, `ALTER DATABASE %I ${how}`));
}

/** Removes the databases of these roles. */
export async function dropOwned(client: ClientBase, of: Roles): Promise<void> {
  await client.query(forEach(`datname ${ownedSql(of)}`, 'ALTER DATABASE %I IS_TEMPLATE false'));
  await renameUnreadable(client, of);
  for (const name of await ownedBy(client, of))
    await client.query(`DROP DATABASE IF EXISTS ${foreign(name)} WITH (FORCE)`);
}

/**
 * Renames databases whose name is not UTF-8, as from a session with another encoding, so that drivers can
 * send it.
 */
async function renameUnreadable(client: ClientBase, of: Roles): Promise<void> {
  const { rows } = await client.query<{ oid: number; datname: string }>(
    `SELECT d.oid, datname ${ownedSql(of)}`,
  );
  for (const { oid, datname } of rows) {
    if (!datname.includes(UNREADABLE)) continue;
    await client.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datid = $1', [oid]);
    const renamed = `ALTER DATABASE %I RENAME TO t_${randomName(16)}`;
    await client.query(forEach(`datname FROM pg_database WHERE oid = ${Number(oid)}`, renamed));
  }
}

/** Databases that the roles own. */
function ownedSql(of: Roles): string {
  const roles = Object.values(of).map((role) => id(role).replaceAll('"', "'"));
  return `FROM pg_database d JOIN pg_roles r ON r.oid = d.datdba WHERE r.rolname IN (${roles.join(', ')})`;
}

/**
 * A statement for each name from `SELECT <names>`, run inside the server: a tenant's name may not
 * be UTF-8, so drivers cannot send it.
 */
function forEach(names: string, statement: string): string {
  return `DO $cloudlet$ DECLARE it name; BEGIN FOR it IN SELECT ${names} LOOP
    EXECUTE format('${statement}', it); END LOOP; END $cloudlet$`;
}

/** Its owner may have revoked the privilege from PUBLIC. */
export async function grantToDumper(client: ClientBase, name: string): Promise<void> {
  await client.query(`GRANT CONNECT ON DATABASE ${foreign(name)} TO ${id(DUMPER)}`);
}

/**
 * The name for a database being loaded: its own, or that of a copy if another database of the
 * account has it. Null: these roles have it already, or the name is invalid.
 */
export async function freeName(client: ClientBase, name: string, of: Roles): Promise<string | null> {
  if (name === '' || name.includes('\0') || Buffer.byteLength(name) > MOST_NAME_BYTES) return null;
  if ((await ownedBy(client, of)).includes(name)) return null;
  const { rows } = await client.query('SELECT datname FROM pg_database');
  const taken = new Set(rows.map(({ datname }) => String(datname)));
  const { length } = await testDatabases(client);
  if (length >= MOST_TEST_DATABASES) throw new Error(`there are ${length} test databases on the server`);
  const copies = Array.from({ length: COPIES }, (_, i) => `${name}_copy${i === 0 ? '' : i + 1}`);
  return [name, ...copies].find((one) => !taken.has(one)) ?? null;
}

/** Gives a loaded database to its owner, under its name. */
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
