/** What databases look like from outside. */
import { Paging } from '../http/list-page.ts';
import { Reason } from '../http/response.ts';
import { namedObject, type Static, Type } from '../platform/json-schema.ts';
import { ENGINES } from './engine.ts';
import { DATABASE_STATES } from './states.ts';

const textOrNull = (description: string) => Type.Union([Type.String(), Type.Null()], { description });
const NAME = {
  pattern: '^[a-z][a-z0-9_-]{0,62}$',
  'x-rule': 'must begin with a letter and have 1 to 63 of a-z, 0-9, "_" and "-"',
};

export const Connection = namedObject('DatabaseConnection', {
  uri: Type.String({
    description: 'For the driver; the password in it is *** unless you ask for credentials',
  }),
  host: Type.String(),
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
  version: textOrNull('Of the engine'),
  state: Type.String({ enum: [...DATABASE_STATES] }),
  state_reason: Type.Union([Reason, Type.Null()], {
    description: 'Reason for the state, unless the user requested it',
  }),
  region: Type.String(),
  size_bytes: Type.Integer({ description: 'As last measured' }),
  size_limit_mb: Type.Integer(),
  delete_protection: Type.Boolean(),
  price_per_hour: Type.Number({ description: 'Credits, for its present size' }),
  connection: Connection,
  created_at: Type.String(),
  deletes_at: textOrNull('When a deleted database is gone for good; until then undelete brings it back'),
});
export type Database = Static<typeof Database>;

const sizeLimit = Type.Integer({
  minimum: 1,
  description: 'Megabytes (1,048,576 bytes) it may have at most; beyond, it takes no more data',
});

export const NewDatabase = namedObject('NewDatabase', {
  name: Type.String({ ...NAME, description: 'Unique within your account' }),
  engine: Type.Optional(
    Type.String({ enum: [...ENGINES], default: 'sqlite', description: 'One of GET /api/database-engines' }),
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
      { database_id: Type.String() },
      { description: 'Makes a copy of this database of yours, as of now; it has the same engine' },
    ),
  ),
});
export type NewDatabase = Static<typeof NewDatabase>;

export const DatabaseChange = namedObject('DatabaseChange', {
  name: Type.Optional(Type.String(NAME)),
  size_limit_mb: Type.Optional(sizeLimit),
  delete_protection: Type.Optional(
    Type.Boolean({ description: 'While true, the database cannot be deleted' }),
  ),
});
export type DatabaseChange = Static<typeof DatabaseChange>;

export const Undeletion = namedObject('DatabaseUndeletion', {
  name: Type.Optional(Type.String({ ...NAME, description: 'By default the one it had' })),
});
export type Undeletion = Static<typeof Undeletion>;

export const DeletionQuery = Type.Object({
  keep: Type.Optional(
    Type.Boolean({ description: 'false: no last dump is kept, and one that is goes too. Default: true' }),
  ),
});

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
  { description: 'Code that connects, as text, with the password in it' },
);
export type Snippets = Static<typeof Snippets>;

export const Credentials = namedObject('DatabaseCredentials', {
  connection: Connection,
  snippets: Snippets,
  ca: textOrNull('The certificate to trust (PEM), where the connection is encrypted with one of ours'),
});
export type Credentials = Static<typeof Credentials>;

export const EngineEntry = namedObject('DatabaseEngine', {
  engine: Type.String({ enum: [...ENGINES] }),
  available: Type.Boolean(),
  version: textOrNull('null: not known'),
  source: Type.String({
    enum: ['built-in', 'managed', 'external'],
    description: 'Part of Cloudlet, a server that Cloudlet runs, or one that the operator named',
  }),
  reason: textOrNull('Why it is not available, or a limitation to know of'),
  fix: textOrNull('What the operator can do about it'),
  default: Type.Boolean({ description: 'The default for new databases' }),
  extensions: Type.Array(Type.String(), {
    description: 'Those that `CREATE EXTENSION` makes in a database; PostgreSQL alone has any',
  }),
  limits: namedObject('DatabaseEngineLimits', {
    size_mb: Type.Integer({ description: 'Largest size_limit_mb' }),
    connections: Type.Integer({ description: 'At a time, of one database' }),
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
