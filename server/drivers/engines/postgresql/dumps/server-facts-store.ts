/** The SQL that determines which statements of a dump a server supports. */
import type { ClientBase } from 'pg';

export interface ServerFacts {
  readonly version: string;
  /** Settings of the server, and whether everyone may set them. */
  readonly settings: ReadonlyMap<string, boolean>;
  readonly roles: ReadonlySet<string>;
  /** Roles that may own loaded objects. */
  readonly owners: ReadonlySet<string>;
  /** Extensions that can be created. */
  readonly extensions: ReadonlySet<string>;
  /** Extensions of every new database. */
  readonly installed: ReadonlySet<string>;
  /** Schemas of every new database. */
  readonly schemas: ReadonlySet<string>;
  readonly accessMethods: ReadonlySet<string>;
  readonly languages: ReadonlySet<string>;
  /** Collations that PostgreSQL has of itself and of the host, for the encoding of the database. */
  readonly collations: ReadonlySet<string>;
  /** Names of the functions of PostgreSQL itself. */
  readonly functions: ReadonlySet<string>;
  /** The types of PostgreSQL itself, as pg_dump writes them. */
  readonly types: ReadonlySet<string>;
}

/** `loader`: the role that runs the statements. */
export async function factsOf(client: ClientBase, loader: string): Promise<ServerFacts> {
  const names = async (sql: string, values: readonly unknown[] = []) => {
    const { rows } = await client.query<{ name: string }>(sql, [...values]);
    return new Set(rows.map(({ name }) => name));
  };
  const settings = await client.query<{ name: string; is_free: boolean }>(
    "SELECT name, context = 'user' AS is_free FROM pg_settings",
  );
  const version = await client.query<{ server_version: string }>('SHOW server_version');
  return {
    version: version.rows[0]?.server_version.split(' ')[0] ?? '',
    settings: new Map(settings.rows.map(({ name, is_free }) => [name.toLowerCase(), is_free])),
    roles: await names('SELECT rolname AS name FROM pg_roles'),
    owners: await names("SELECT rolname AS name FROM pg_roles WHERE pg_has_role($1, oid, 'MEMBER')", [
      loader,
    ]),
    extensions: await names(
      `SELECT DISTINCT v.name FROM pg_available_extension_versions v
       WHERE v.trusted OR (SELECT rolsuper FROM pg_roles WHERE rolname = $1)`,
      [loader],
    ),
    installed: await names('SELECT extname AS name FROM pg_extension'),
    schemas: await names('SELECT nspname AS name FROM pg_namespace'),
    accessMethods: await names('SELECT amname AS name FROM pg_am'),
    languages: await names('SELECT lanname AS name FROM pg_language'),
    collations: await names(
      `SELECT collname AS name FROM pg_collation
       WHERE collnamespace = 'pg_catalog'::regnamespace
         AND collencoding IN (-1, (SELECT encoding FROM pg_database WHERE datname = current_database()))`,
    ),
    functions: await names(
      "SELECT DISTINCT proname AS name FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace",
    ),
    types: await names(
      `SELECT format_type(oid, NULL) AS name FROM pg_type
       WHERE typnamespace = 'pg_catalog'::regnamespace`,
    ),
  };
}
