/** Every statement that the administrator sends. Names and verifiers are ours, never a user's text. */
import type { ClientBase } from 'pg';
import type { EngineLimits } from '../../../databases/engine.ts';
import { AppError } from '../../../platform/errors.ts';

export const ADMIN = 'cloudlet';
/** May read everything, whatever the row policies, and change nothing. */
export const DUMPER = 'cloudlet_dump';
/** Has no rights; its members are the roles with which we act on behalf of a tenant, on the socket only. */
export const LOCAL = 'cloudlet_local';

/** Maximum connections of Cloudlet to a tenant's database, besides the tenant's own. */
const OURS = 5;
/** Connections of tenants to the database `postgres`. */
const MAINTENANCE_CONNECTIONS = 20;
/** How long a tenant's transaction may delay a change of its database, ms, and how often. */
const HELD_MS = 500;
const HELD_TRIES = 20;
export const LOCK_NOT_AVAILABLE = '55P03';
/** An internal error: our statements can cause no other. */
const CONCURRENTLY_UPDATED = 'XX000';
const HAS_DEPENDENTS = '2BP01';
const RELEASE = 'RESET default_transaction_read_only';
/** Size of an empty database, used where the size may not be read. */
const EMPTY = `(CASE WHEN has_database_privilege('template1', 'CONNECT') THEN pg_database_size('template1') ELSE 7500000 END)`;
const NAME = /^[a-z][a-z0-9_]{1,62}$/;

/** The roles of one database. */
export interface Roles {
  /** Owns all objects, cannot log in; has the database's name, as `samerole` requires. */
  readonly group: string;
  /** The tenant's. */
  readonly user: string;
  /** Role for the tenant's statements and dumps that Cloudlet runs. */
  readonly local: string;
}

export function rolesOf(database: string): Roles {
  const rest = database.replace(/^d_/, '');
  return { group: database, user: `u_${rest}`, local: `q_${rest}` };
}

/** Our part of a shared server. */
export interface Guest {
  /** Comment of the databases that are ours. */
  readonly mark: string;
  /** The administrator, who must be a member of roles to change them; null: it may do everything. */
  readonly member: string | null;
}

interface Verifiers {
  readonly user: string;
  readonly local: string;
}

export interface SizeState {
  readonly bytes: number;
  readonly connections: number;
  readonly statements: number;
  readonly rowsWritten: number;
  readonly isReadOnly: boolean;
  readonly canLogIn: boolean;
}

/** A quoted name. Throws for names that we never create. */
export function id(name: string): string {
  if (!NAME.test(name)) throw new Error('not a name that Cloudlet generates');
  return `"${name}"`;
}

/** A quoted name that others created. */
export function foreign(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** A verifier as SQL. */
export function text(value: string): string {
  if (!/^[A-Za-z0-9$:+/= -]*$/.test(value)) throw new Error('not a text that Cloudlet generated');
  return `'${value}'`;
}

/** Sets up the roles that all databases share; repeated at each start. */
export async function setUpServer(client: ClientBase, dumperVerifier: string): Promise<void> {
  const roles = await existing(client, [DUMPER, LOCAL]);
  const make = [DUMPER, LOCAL].filter((name) => !roles.has(name)).map((name) => `CREATE ROLE ${id(name)}`);
  const statements = [
    ...make,
    `ALTER ROLE ${id(LOCAL)} NOLOGIN`,
    ...rightsOfDumper(dumperVerifier),
    'REVOKE ALL ON DATABASE postgres FROM PUBLIC',
    // Frameworks connect there to create their test databases.
    'GRANT CONNECT ON DATABASE postgres TO PUBLIC',
    `ALTER DATABASE postgres CONNECTION LIMIT ${MAINTENANCE_CONNECTIONS}`,
    'REVOKE ALL ON DATABASE template1 FROM PUBLIC',
    // Before version 16 CREATEROLE allows taking any role, and these give access to the host.
    `DELETE FROM pg_authid WHERE rolname IN ('pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files')`,
  ];
  await client.query(statements.join(';'));
  await holdWrites(client, false);
}

/** Restores privileges that the tenant may have revoked from the dump role. */
export async function putBackDumper(client: ClientBase, name: string, verifier: string): Promise<void> {
  const make = `DO $$ BEGIN CREATE ROLE ${id(DUMPER)}; EXCEPTION WHEN duplicate_object THEN END $$`;
  const connect = `GRANT CONNECT ON DATABASE ${id(name)} TO ${id(DUMPER)}`;
  await untilAlone(() => client.query([make, ...rightsOfDumper(verifier), connect].join(';')));
}

/** Repeats a role change after a conflict with the tenant or with our periodic check. */
async function untilAlone(change: () => Promise<unknown>): Promise<void> {
  for (let tries = 1; ; tries++) {
    const failure = await change().then(
      () => null,
      (error: { readonly code?: unknown }) => error,
    );
    if (failure === null) return;
    if (failure.code !== CONCURRENTLY_UPDATED || tries === HELD_TRIES) throw failure;
  }
}

function rightsOfDumper(verifier: string): string[] {
  const name = id(DUMPER);
  return [
    `ALTER ROLE ${name} LOGIN NOSUPERUSER INHERIT BYPASSRLS CONNECTION LIMIT -1 VALID UNTIL 'infinity' PASSWORD ${text(verifier)}`,
    `ALTER ROLE ${name} RESET ALL`,
    // Large objects, too.
    `ALTER ROLE ${name} SET lo_compat_privileges = on`,
    `ALTER ROLE ${name} SET pg_stat_statements.track = none`,
    `GRANT pg_read_all_data TO ${name}`,
  ];
}

/** The names among these that roles have. */
export async function existing(client: ClientBase, names: readonly string[]): Promise<Set<string>> {
  const { rows } = await client.query<{ rolname: string }>(
    'SELECT rolname FROM pg_roles WHERE rolname = ANY($1)',
    [names],
  );
  return new Set(rows.map(({ rolname }) => rolname));
}

export async function setPassword(client: ClientBase, role: string, verifier: string): Promise<void> {
  await client.query(`ALTER ROLE ${id(role)} PASSWORD ${text(verifier)}`);
}

/** The server's verifier of the password of a role. */
export async function verifierOf(client: ClientBase, role: string): Promise<string> {
  const { rows } = await client.query('SELECT rolpassword FROM pg_authid WHERE rolname = $1', [role]);
  return String(rows[0]?.rolpassword);
}

/** Creates an empty database with these roles. */
export async function makeDatabase(
  client: ClientBase,
  name: string,
  { roles, guest }: { readonly roles: Roles; readonly guest: Guest | null },
): Promise<void> {
  const { group, user, local } = roles;
  if (!(await isThere(client, name, guest))) await client.query(`CREATE DATABASE ${id(name)}`);
  const statements = [
    `REVOKE ALL ON DATABASE ${id(name)} FROM PUBLIC`,
    `GRANT CONNECT, TEMPORARY, CREATE ON DATABASE ${id(name)} TO ${id(group)}${guest === null ? ' WITH GRANT OPTION' : ''}`,
    guest === null
      ? `GRANT CONNECT ON DATABASE ${id(name)} TO ${id(DUMPER)}`
      : `COMMENT ON DATABASE ${id(name)} IS ${text(guest.mark)}`,
    // Both roles share objects, and either can be dropped.
    ...[user, local].map((role) => `ALTER ROLE ${id(role)} IN DATABASE ${id(name)} SET role TO ${id(group)}`),
  ];
  await client.query(statements.join(';'));
}

/** Whether the database exists. Throws if it belongs to another cloud. */
export async function isThere(client: ClientBase, name: string, guest: Guest | null): Promise<boolean> {
  const { rows } = await client.query(
    "SELECT shobj_description(oid, 'pg_database') AS comment FROM pg_database WHERE datname = $1",
    [name],
  );
  const comment = rows[0]?.comment ?? null;
  // A half-created database has none yet.
  if (guest !== null && comment !== null && comment !== guest.mark) {
    throw new AppError('engine_unavailable', `The database ${name} on that server belongs to another cloud`, {
      hint: 'load a dump into a new database instead',
    });
  }
  return rows.length > 0;
}

/** For a connection to that database. */
export async function giveSchema(client: ClientBase, group: string): Promise<void> {
  await client.query(`ALTER SCHEMA public OWNER TO ${id(group)}`);
}

export async function limitDatabase(client: ClientBase, name: string, limits: EngineLimits): Promise<void> {
  const { connections, statementMs } = limits;
  const alter = `ALTER DATABASE ${id(name)}`;
  await client.query(
    `${alter} CONNECTION LIMIT ${connections + OURS}; ${alter} SET statement_timeout = ${statementMs}`,
  );
}

export async function setReadOnly(client: ClientBase, name: string, isReadOnly: boolean): Promise<void> {
  const how = isReadOnly ? 'SET default_transaction_read_only = on' : 'RESET default_transaction_read_only';
  await client.query(`ALTER DATABASE ${id(name)} ${how}`);
}

/** `connections`: the limit; 0: it may not log in. */
export async function setLogin(client: ClientBase, role: string, connections: number): Promise<void> {
  const how = connections > 0 ? `LOGIN CONNECTION LIMIT ${connections}` : 'NOLOGIN';
  await client.query(`ALTER ROLE ${id(role)} ${how}`);
}

/**
 * Runs `work` on catalogue rows that a tenant can change, too. If a transaction locks them, for
 * example by a change of the password, it is not awaited: sessions of the role are ended then, and
 * those that changed roles or databases, of any role.
 */
export async function pastTenant(client: ClientBase, role: string, work: () => Promise<void>): Promise<void> {
  await client.query(`SET lock_timeout = ${HELD_MS}`);
  try {
    for (let tries = 1; ; tries++) {
      try {
        return await untilAlone(work);
      } catch (error) {
        const isHeld = (error as { code?: unknown }).code === LOCK_NOT_AVAILABLE;
        if (!isHeld || tries === HELD_TRIES) throw error;
        await endHolders(client, role);
      }
    }
  } finally {
    await client.query('RESET lock_timeout').catch(() => {});
  }
}

async function endHolders(client: ClientBase, role: string): Promise<void> {
  await client.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE usename <> current_user AND pg_has_role(usesysid, 'USAGE') AND (usename = $1 OR pid IN (
       SELECT pid FROM pg_locks WHERE database = 0 AND (locktype = 'object' OR mode = 'RowExclusiveLock')))`,
    [role],
  );
}

/** Ends all sessions of a role or a database; returns their number. */
export async function endSessions(
  client: ClientBase,
  of: { readonly role: string } | { readonly database: string },
): Promise<number> {
  const [column, name] = 'role' in of ? ['usename', of.role] : ['datname', of.database];
  const { rowCount } = await client.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${column} = $1 AND pid <> pg_backend_pid()
       AND pg_has_role(usesysid, 'USAGE')`,
    [name],
  );
  return rowCount ?? 0;
}

export async function sizeState(client: ClientBase, { group, user }: Roles): Promise<SizeState | null> {
  const { rows } = await client.query(
    // The bytes of an empty database are not the tenant's.
    `SELECT greatest(0, pg_database_size(d.oid) - ${EMPTY}) AS bytes, s.numbackends, s.xact_commit + s.xact_rollback AS statements,
       s.tup_inserted + s.tup_updated + s.tup_deleted AS written, r.rolcanlogin,
       EXISTS (SELECT FROM pg_db_role_setting WHERE setdatabase = d.oid AND setrole = 0
         AND 'default_transaction_read_only=on' = ANY(setconfig)) AS readonly
     FROM pg_database d JOIN pg_stat_database s ON s.datid = d.oid, pg_roles r
     WHERE d.datname = $1 AND r.rolname = $2`,
    [group, user],
  );
  const [row] = rows;
  if (row === undefined) return null;
  return {
    bytes: Number(row.bytes),
    connections: row.numbackends,
    statements: Number(row.statements),
    rowsWritten: Number(row.written),
    isReadOnly: row.readonly,
    canLogIn: row.rolcanlogin,
  };
}

export async function databaseBytes(client: ClientBase, name: string): Promise<number> {
  const { rows } = await client.query(`SELECT greatest(0, pg_database_size($1::name) - ${EMPTY}) AS bytes`, [
    name,
  ]);
  return Number(rows[0]?.bytes ?? 0);
}

/**
 * Names of all databases that we created, complete or not: a tenant's own may have such a name, but
 * has another owner.
 */
export async function databases(client: ClientBase, guest: Guest | null): Promise<string[]> {
  const { rows } = await client.query(
    `SELECT datname FROM pg_database WHERE datname ~ '^[dt]_'
       AND CASE WHEN $1::text IS NULL THEN pg_get_userbyid(datdba) = '${ADMIN}'
         ELSE shobj_description(oid, 'pg_database') = $1 END`,
    [guest?.mark ?? null],
  );
  return rows.map(({ datname }) => String(datname));
}

/** Gathers statistics of the connection's database. */
export async function analyse(client: ClientBase): Promise<void> {
  await client.query('SET statement_timeout = 0');
  await client.query('ANALYZE');
}

export async function dropDatabase(client: ClientBase, name: string): Promise<void> {
  await client.query(`DROP DATABASE IF EXISTS ${id(name)} WITH (FORCE)`);
}

/** Replaces `name` by `fresh`; the former is named `old` afterwards. Waits for their sessions to end. */
export async function swapDatabases(
  client: ClientBase,
  { name, fresh, old }: { readonly name: string; readonly fresh: string; readonly old: string },
): Promise<void> {
  // One message is one transaction.
  await client.query(
    [
      `ALTER DATABASE ${id(name)} RENAME TO ${id(old)}`,
      `ALTER DATABASE ${id(fresh)} RENAME TO ${id(name)}`,
    ].join(';'),
  );
}

/** Whether transactions are read-only by default, in all databases. */
export async function holdWrites(client: ClientBase, isHeld: boolean): Promise<void> {
  await client.query(`ALTER SYSTEM ${isHeld ? 'SET default_transaction_read_only = on' : RELEASE}`);
  await reload(client);
}

/** Makes the server reload its settings and its login rules. */
export async function reload(client: ClientBase): Promise<void> {
  await client.query('SELECT pg_reload_conf()');
}

/** The roles of a database, with their passwords. */
export async function makeRoles(
  client: ClientBase,
  { group, user, local }: Roles,
  { verifiers, guest }: { readonly verifiers: Verifiers; readonly guest: Guest | null },
): Promise<void> {
  const there = await existing(client, [group, user, local]);
  const make = [group, user, local]
    .filter((name) => !there.has(name))
    .map((name) => `CREATE ROLE ${id(name)}`);
  const statements = [
    ...make,
    `ALTER ROLE ${id(user)} LOGIN PASSWORD ${text(verifiers.user)}`,
    `ALTER ROLE ${id(local)} LOGIN PASSWORD ${text(verifiers.local)}`,
    `GRANT ${id(group)} TO ${id(user)}, ${id(local)}`,
    ...(guest === null ? ownRights({ group, user, local }) : []),
    ...(guest?.member
      ? [`GRANT ${[group, user, local].map(id).join(', ')} TO ${foreign(guest.member)}`]
      : []),
  ];
  await untilAlone(() => client.query(statements.join(';')));
}

/** On an account's own server: roles, test databases, and all sessions, which may be ended. */
function ownRights({ group, user, local }: Roles): string[] {
  return [
    `GRANT ${id(LOCAL)} TO ${id(local)}`,
    ...[group, user, local].map((role) => `ALTER ROLE ${id(role)} CREATEDB CREATEROLE`),
    `GRANT pg_read_all_stats, pg_signal_backend TO ${id(group)}`,
  ];
}

/**
 * SQL to put before a dump of the connection's database: creates the missing roles that its row policies
 * name, without which it could not be loaded. They cannot log in. Empty: none are missing.
 */
export async function rolesNeeded(client: ClientBase): Promise<string> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT DISTINCT quote_ident(r.rolname) AS name
     FROM pg_policy p, unnest(p.polroles) AS o JOIN pg_roles r ON r.oid = o
     WHERE r.rolname !~ '^(pg_|cloudlet)' AND r.rolname !~ '^[duq]_[a-z0-9]{16}$' ORDER BY 1`,
  );
  const make = ({ name }: { readonly name: string }) =>
    `DO $cloudlet$ BEGIN CREATE ROLE ${name}; EXCEPTION WHEN duplicate_object THEN END $cloudlet$;\n`;
  return rows.map(make).join('');
}

/** Databases created by these roles, oldest first. */
export async function ownedBy(client: ClientBase, { group, user, local }: Roles): Promise<string[]> {
  const { rows } = await client.query(
    'SELECT d.datname FROM pg_database d JOIN pg_roles r ON r.oid = d.datdba WHERE r.rolname = ANY($1) ORDER BY d.oid',
    [[group, user, local]],
  );
  return rows.map(({ datname }) => String(datname));
}

/** Roles with rights in other databases are kept, but can no longer log in. */
export async function dropRoles(client: ClientBase, { group, user, local }: Roles): Promise<void> {
  for (const role of [user, local, group]) {
    await client.query(`DROP ROLE IF EXISTS ${id(role)}`).catch(async (error) => {
      if (error.code !== HAS_DEPENDENTS) throw error;
      await client.query(`ALTER ROLE ${id(role)} NOLOGIN NOCREATEROLE NOCREATEDB PASSWORD NULL`);
    });
  }
}
