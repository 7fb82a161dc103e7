/** Public schemas of statements, results and tables. */
import { namedObject, type Static, Type, textOrNull } from '../platform/json/json-schema.ts';
import { Database } from './schema.ts';

const names = () => Type.Array(Type.String());

const QueryId = Type.String({
  pattern: '^[A-Za-z0-9_-]{1,64}$',
  'x-rule': 'must have 1 to 64 characters from A-Z, a-z, 0-9, "_" and "-"',
  description: 'Id of the running query, to cancel it: 1 to 64 of A-Z a-z 0-9 _ -',
});

export const NewQuery = namedObject('DatabaseQuery', {
  statement: Type.Optional(
    Type.String({ minLength: 1, maxLength: 100_000, description: 'One SQL statement' }),
  ),
  command: Type.Optional(
    Type.Object(
      {},
      {
        additionalProperties: true,
        description: 'One command in Extended JSON, if the language is `documents`',
      },
    ),
  ),
  params: Type.Optional(
    Type.Array(Type.Unknown(), {
      maxItems: 1000,
      description: 'Values of the placeholders, in order',
    }),
  ),
  read_only: Type.Optional(Type.Boolean({ default: true, description: 'Whether writes are refused' })),
  max_rows: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 1000 })),
  skip: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 100_000,
      default: 0,
      description:
        'Number of rows to skip, for the next page of a `truncated` result: the statement runs again, so ' +
        'sort its rows. Only with `read_only`',
    }),
  ),
  query_id: Type.Optional(QueryId),
});
export type NewQuery = Static<typeof NewQuery>;

const ResultColumn = namedObject('DatabaseResultColumn', {
  name: Type.String(),
  type: textOrNull('null if the engine does not report it'),
});

export const QueryResponse = namedObject('DatabaseQueryResult', {
  columns: Type.Array(ResultColumn),
  rows: Type.Array(Type.Array(Type.Unknown()), {
    description: 'Values that JSON cannot hold are text: integers beyond 2^53, bytes (base64)',
  }),
  row_count: Type.Integer(),
  affected: Type.Union([Type.Integer(), Type.Null()], { description: 'Rows changed by the statement' }),
  truncated: Type.Boolean({ description: 'Whether the result was cut off at the limit of rows or bytes' }),
  elapsed_ms: Type.Number(),
});
export type QueryResponse = Static<typeof QueryResponse>;

const TableColumn = namedObject('DatabaseTableColumn', {
  name: Type.String(),
  type: textOrNull('Type as declared'),
  nullable: Type.Boolean(),
  default: textOrNull('Default value as SQL'),
  primary_key: Type.Boolean(),
  generated: Type.Optional(
    Type.Boolean({ description: 'Computed from other columns, so that it takes no values; missing: false' }),
  ),
});
const TableIndex = namedObject('DatabaseTableIndex', {
  name: Type.String(),
  columns: names(),
  unique: Type.Boolean(),
});
const ForeignKey = namedObject('DatabaseForeignKey', {
  columns: names(),
  references: namedObject('DatabaseForeignKeyTarget', { table: Type.String(), columns: names() }),
});

export const TableEntry = namedObject('DatabaseTable', {
  name: Type.String(),
  schema: textOrNull('null if the engine has no schemas'),
  type: Type.String({ enum: ['table', 'view', 'collection'] }),
  columns: Type.Array(TableColumn),
  indexes: Type.Array(TableIndex),
  foreign_keys: Type.Array(ForeignKey),
  estimated_rows: Type.Union([Type.Integer(), Type.Null()], { description: 'null if counting needs a scan' }),
  size_bytes: Type.Union([Type.Integer(), Type.Null()]),
});

export const DumpQuery = Type.Object({
  format: Type.Optional(
    Type.String({ description: 'A dump_formats entry of the engine; default: the format that load takes' }),
  ),
});

export const LoadForm = namedObject('DatabaseLoadForm', {
  file: Type.String({
    format: 'binary',
    description:
      'A dump of this engine, also one that its own programs made; may be packed with gzip or zstd',
  }),
});

export const LoadQuery = Type.Object({
  strict: Type.Optional(
    Type.Boolean({
      description:
        'true: refuse a dump with statements that this server or account does not support. Default: leave them out',
    }),
  ),
});

const LoadNote = namedObject('DatabaseLoadNote', {
  line: Type.Union([Type.Integer(), Type.Null()], {
    description: 'Line of the file; null: the file has no lines',
  }),
  text: Type.String({ description: 'Beginning of the statement or option that was left out' }),
  reason: Type.String(),
});

export const LoadedDatabase = namedObject('LoadedDatabase', {
  ...Database.properties,
  added: Type.Boolean({
    description: 'Whether the dump was data-only, so that its rows were added to the existing tables',
  }),
  left_out: Type.Integer({ description: 'Number of statements or options that were left out' }),
  notes: Type.Array(LoadNote, { description: 'The first 10 statements or options that were left out' }),
});
export type LoadedDatabase = Static<typeof LoadedDatabase>;

/** Default number of bytes. */
export const LOG_BYTES = 65_536;

export const LogQuery = Type.Object({
  bytes: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 2 ** 20,
      default: LOG_BYTES,
      description: 'Number of bytes to return from the end of the log',
    }),
  ),
});

export const TestDatabaseEntry = namedObject('TestDatabase', {
  name: Type.String({
    description: 'Name of the database; use it in the connection URI in place of the original name',
  }),
  size_bytes: Type.Integer({
    description: 'Size of the files in bytes; included in the sizes of your databases',
  }),
  username: textOrNull('User who created the database; null if the engine does not record it'),
});
export type TestDatabaseEntry = Static<typeof TestDatabaseEntry>;
