/** Statements about the roles of databases, and those that tenants make on servers of their own. */
import type { ClientBase } from 'pg';
import {
  ADMIN,
  DUMPER,
  existing,
  foreign,
  type Guest,
  id,
  LOCAL,
  type Roles,
  text,
} from './postgresql-store.ts';

const HAS_DEPENDENTS = '2BP01';

interface Verifiers {
  readonly user: string;
  readonly local: string;
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
  await client.query(statements.join(';'));
}

/** On a server of its account's own: roles, databases for tests, and all sessions, which may be ended. */
function ownRights({ group, user, local }: Roles): string[] {
  return [
    `GRANT ${id(LOCAL)} TO ${id(local)}`,
    ...[group, user, local].map((role) => `ALTER ROLE ${id(role)} CREATEDB CREATEROLE`),
    `GRANT pg_read_all_stats, pg_signal_backend TO ${id(group)}`,
  ];
}

/**
 * Ends all sessions in a database that its tenant began, by whichever role, and leaves ours.
 * On a server that is not all ours only those of the role that we gave.
 */
export async function endTenant(
  client: ClientBase,
  { group, user, local }: Roles,
  guest: Guest | null,
): Promise<void> {
  await client.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE pid <> pg_backend_pid() AND pg_has_role(usesysid, 'USAGE') AND (usename = $1
       OR $2 AND datname = $3 AND usename <> ALL ($4))`,
    [user, guest === null, group, [ADMIN, DUMPER, local]],
  );
}

/**
 * SQL to stand before a dump of the connection's database: makes the roles that its policies of rows name
 * where they are missing, or it could not be loaded. They cannot log in. Empty: there are none.
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

/** Removes the databases that a role made for itself. */
export async function dropOwned(client: ClientBase, { group, user, local }: Roles): Promise<void> {
  const { rows } = await client.query(
    `SELECT d.datname FROM pg_database d JOIN pg_roles r ON r.oid = d.datdba WHERE r.rolname = ANY($1)`,
    [[group, user, local]],
  );
  for (const { datname } of rows)
    await client.query(`DROP DATABASE IF EXISTS ${foreign(datname)} WITH (FORCE)`);
}

/** One with rights in other databases, or that gave some there, stays; nobody can log in by it then. */
export async function dropRoles(client: ClientBase, { group, user, local }: Roles): Promise<void> {
  for (const role of [user, local, group]) {
    await client.query(`DROP ROLE IF EXISTS ${id(role)}`).catch(async (error) => {
      if (error.code !== HAS_DEPENDENTS) throw error;
      await client.query(`ALTER ROLE ${id(role)} NOLOGIN NOCREATEROLE NOCREATEDB PASSWORD NULL`);
    });
  }
}
