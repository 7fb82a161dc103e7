/** Public schemas of databases. */
import { Paging } from '../http/list-page.ts';
import { Reason } from '../http/response.ts';
import { Preparing } from '../platform/host/preparing.ts';
import { namedObject, type Static, Type, textOrNull } from '../platform/json/json-schema.ts';
import { DEFAULT_ENGINE, ENGINES } from './engine.ts';
import { LANGUAGES, SQL_DIALECTS, TRANSPORTS } from './engine-description.ts';
import { DATABASE_STATES } from './life/states.ts';

const NAME = {
  pattern: '^[a-z][a-z0-9_-]{0,62}$',
  'x-rule': 'must begin with a letter and have 1 to 63 of a-z, 0-9, "_" and "-"',
};

export const Connection = namedObject('DatabaseConnection', {
  uri: Type.String({
    description: 'Connection URI for drivers; its password is *** except in credentials',
  }),
  private_uri: textOrNull(
    "Connection URI for virtual machines of the account; null on an operator's database server",
  ),
  host: Type.String({
    description: 'Empty, like the URI, while the node of the cluster that has the database does not answer',
  }),
  port: Type.Integer(),
  database: Type.String(),
  username: Type.String(),
  password: Type.Optional(Type.String()),
  tls: Type.Boolean({ description: 'Whether the connection is encrypted' }),
});
export type Connection = Static<typeof Connection>;

export const Database = namedObject('Database', {
  database_id: Type.String(),
  name: Type.String(),
  engine: Type.String({ enum: [...ENGINES] }),
  version: textOrNull('Version of the engine'),
  state: Type.String({ enum: [...DATABASE_STATES] }),
  state_reason: Type.Union([Reason, Type.Null()], {
    description: 'Reason for the state; null if the user requested the state',
  }),
  region: Type.String(),
  size_bytes: Type.Integer({ description: 'Size at the last measurement' }),
  size_limit_mb: Type.Integer(),
  delete_protection: Type.Boolean(),
  price_per_hour: Type.Number({ description: 'Credits per hour for the current size' }),
  connection: Connection,
  created_at: Type.String(),
  deletes_at: textOrNull('When a deleted database is removed permanently; until then it can be undeleted'),
  kept_bytes: Type.Union([Type.Integer(), Type.Null()], {
    description: 'Size of the last dump of a deleted database, charged like database storage; else null',
  }),
});
export type Database = Static<typeof Database>;

const sizeLimit = Type.Integer({
  minimum: 1,
  description: 'Size limit in megabytes (1,048,576 bytes); beyond it the database is read-only',
});

export const NewDatabase = namedObject('NewDatabase', {
  name: Type.String({ ...NAME, description: 'Unique within your account' }),
  engine: Type.Optional(
    Type.String({
      enum: [...ENGINES],
      default: DEFAULT_ENGINE,
      description: 'An engine of GET /api/database-engines',
    }),
  ),
  size_limit_mb: Type.Optional(sizeLimit),
  region: Type.Optional(
    Type.String({
      pattern: '^[a-z0-9-]{1,32}$',
      'x-rule': 'must have 1 to 32 of a-z, 0-9 and "-"',
      default: 'us-east-1',
    }),
  ),
  from: Type.Optional(
    namedObject(
      'DatabaseSource',
      {
        database_id: Type.String(),
        point_id: Type.Optional(
          Type.String({
            description: 'Recovery point to copy the database from; default: the current database',
          }),
        ),
        at: Type.Optional(
          Type.String({
            description:
              'Time to copy the database as of (RFC 3339, or UTC without a zone), within one of its `moments`',
          }),
        ),
      },
      { description: 'Database to copy; the engine stays the same' },
    ),
  ),
});
export type NewDatabase = Static<typeof NewDatabase>;

export const DatabaseChange = namedObject('DatabaseChange', {
  name: Type.Optional(Type.String(NAME)),
  size_limit_mb: Type.Optional(sizeLimit),
  delete_protection: Type.Optional(Type.Boolean({ description: 'Whether deletion is refused' })),
});
export type DatabaseChange = Static<typeof DatabaseChange>;

export const Undeletion = namedObject('DatabaseUndeletion', {
  name: Type.Optional(Type.String({ ...NAME, description: 'Default: the previous name' })),
});
export type Undeletion = Static<typeof Undeletion>;

export const DeletionQuery = Type.Object({
  keep: Type.Optional(
    Type.Boolean({ description: 'false: keep no last dump, and delete an existing dump. Default: true' }),
  ),
});

export const DatabasePoint = namedObject('DatabasePoint', {
  point_id: Type.String(),
  created_at: Type.String({ description: 'Time of the point; the database was read shortly after' }),
});
export type DatabasePoint = Static<typeof DatabasePoint>;

export const DatabaseMoments = namedObject('DatabaseMoments', {
  windows: Type.Array(
    namedObject('DatabaseWindow', {
      from: Type.String(),
      to: Type.String({ description: 'End of the range; later times are archived within a minute' }),
    }),
    { description: 'Newest first; the database can be restored as of any time within a range' },
  ),
  reason: textOrNull('Why the list is empty'),
});
export type DatabaseMoments = Static<typeof DatabaseMoments>;

export const DatabasePath = Type.Object({ database_id: Type.String({ $id: 'DatabaseId' }) });

const Snippets = namedObject(
  'ConnectionSnippets',
  {
    cli: Type.String(),
    node: Type.String(),
    python: Type.String(),
    go: Type.String(),
    php: Type.String(),
  },
  { description: 'Sample code that connects, including the password' },
);
export type Snippets = Static<typeof Snippets>;

const FrameworkSnippet = namedObject('FrameworkSnippet', {
  framework: Type.String({ description: 'Name of the framework, such as `Django`' }),
  file: Type.String({ description: 'File of the framework to put the code in' }),
  code: Type.String(),
});
export type FrameworkSnippet = Static<typeof FrameworkSnippet>;

export const Credentials = namedObject('DatabaseCredentials', {
  connection: Connection,
  snippets: Snippets,
  frameworks: Type.Array(FrameworkSnippet, {
    description: 'Settings of web frameworks, including the password; empty if none supports the engine',
  }),
  ca: textOrNull('CA certificate to trust (PEM), if Cloudlet issued the certificate of the server'),
});
export type Credentials = Static<typeof Credentials>;

export const CredentialsQuery = Type.Object({
  tls: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'For connections with TLS, in which drivers verify the server',
    }),
  ),
});

const EngineTraits = namedObject('DatabaseEngineTraits', {
  language: Type.String({
    enum: [...LANGUAGES],
    description: '`sql`: SQL statements; `documents`: commands of MongoDB',
  }),
  dialect: Type.Union([Type.String({ enum: [...SQL_DIALECTS] }), Type.Null()], {
    description: 'SQL grammar; null without SQL',
  }),
  transport: Type.String({
    enum: [...TRANSPORTS],
    description: 'Drivers connect to a port, or send HTTP requests',
  }),
  has_log: Type.Boolean({ description: 'Whether the log of a database can be read' }),
  offers_tls: Type.Boolean({
    description: 'Whether `tls=true` of credentials is allowed',
  }),
  has_test_databases: Type.Boolean({
    description: 'Programs can create test databases',
  }),
  has_account_server: Type.Boolean({
    description: 'Whether each account has its own server',
  }),
});

const EngineClient = namedObject('DatabaseEngineClient', {
  programs: Type.Array(Type.String(), { description: 'The preferred program first' }),
  package: Type.String({ description: 'Debian package' }),
});

export const EngineEntry = namedObject('DatabaseEngine', {
  engine: Type.String({ enum: [...ENGINES] }),
  available: Type.Boolean(),
  version: textOrNull('null if unknown'),
  source: Type.String({
    enum: ['built-in', 'managed', 'external'],
    description: 'Built into Cloudlet, a server that Cloudlet runs, or a server configured by the operator',
  }),
  reason: textOrNull('Why the engine is unavailable, or a known limitation'),
  fix: textOrNull('Fix for the operator'),
  preparing: Type.Union([Preparing, Type.Null()], {
    description: 'Whether the host is still installing the engine; new databases wait until it is installed',
  }),
  default: Type.Boolean({ description: 'Whether new databases use this engine by default' }),
  extensions: Type.Array(Type.String(), {
    description: 'Extensions available to `CREATE EXTENSION`; empty where the engine has none',
  }),
  title: Type.String({ description: 'Name for display, such as `PostgreSQL`' }),
  summary: Type.String({ description: 'Suitable uses of the engine' }),
  traits: EngineTraits,
  client: Type.Union([EngineClient, Type.Null()], {
    description: 'Terminal programs; null: none',
  }),
  limits: namedObject('DatabaseEngineLimits', {
    size_mb: Type.Integer({ description: 'Largest size_limit_mb' }),
    connections: Type.Integer({ description: 'Concurrent connections of one database' }),
    server_connections: Type.Union([Type.Integer(), Type.Null()], {
      description:
        'Concurrent connections of all databases of an account on this engine together; null: not limited by Cloudlet',
    }),
    statement_seconds: Type.Integer({ description: 'Time limit of a statement' }),
  }),
});
export type EngineEntry = Static<typeof EngineEntry>;

export const DatabasesQuery = Type.Object({
  deleted: Type.Optional(
    Type.Boolean({ default: false, description: 'Lists deleted databases that can be undeleted instead' }),
  ),
  ...Paging,
});
