/** What statements of a database, their results and its tables look like from outside. */
import { namedObject, type Static, Type } from '../platform/json-schema.ts';

const textOrNull = (description: string) => Type.Union([Type.String(), Type.Null()], { description });
const names = () => Type.Array(Type.String());

export const NewQuery = namedObject('DatabaseQuery', {
  statement: Type.Optional(
    Type.String({ minLength: 1, maxLength: 100_000, description: 'One SQL statement' }),
  ),
  command: Type.Optional(
    Type.Object({}, { additionalProperties: true, description: 'MongoDB: one command in Extended JSON' }),
  ),
  params: Type.Optional(
    Type.Array(Type.Unknown(), {
      maxItems: 1000,
      description: 'For the placeholders of the statement, in order',
    }),
  ),
  read_only: Type.Optional(Type.Boolean({ default: true, description: 'Whether writing is refused' })),
  max_rows: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 1000 })),
});
export type NewQuery = Static<typeof NewQuery>;

const ResultColumn = namedObject('DatabaseResultColumn', {
  name: Type.String(),
  type: textOrNull('null: the engine does not tell'),
});

export const QueryResponse = namedObject('DatabaseQueryResult', {
  columns: Type.Array(ResultColumn),
  rows: Type.Array(Type.Array(Type.Unknown()), {
    description: 'What JSON cannot hold is text: integers beyond 2^53, bytes (base64)',
  }),
  row_count: Type.Integer(),
  affected: Type.Union([Type.Integer(), Type.Null()], { description: 'Rows that the statement changed' }),
  truncated: Type.Boolean({ description: 'Whether there were more rows, or more bytes, than are shown' }),
  elapsed_ms: Type.Number(),
});
export type QueryResponse = Static<typeof QueryResponse>;

const TableColumn = namedObject('DatabaseTableColumn', {
  name: Type.String(),
  type: textOrNull('As declared'),
  nullable: Type.Boolean(),
  default: textOrNull('As SQL'),
  primary_key: Type.Boolean(),
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
  schema: textOrNull('null: the engine has none'),
  type: Type.String({ enum: ['table', 'view', 'collection'] }),
  columns: Type.Array(TableColumn),
  indexes: Type.Array(TableIndex),
  foreign_keys: Type.Array(ForeignKey),
  estimated_rows: Type.Union([Type.Integer(), Type.Null()], { description: 'null: only a scan would tell' }),
  size_bytes: Type.Union([Type.Integer(), Type.Null()]),
});

export const DumpQuery = Type.Object({
  format: Type.Optional(
    Type.String({ description: "One of the engine's own; by default the one that load takes" }),
  ),
});

export const LoadForm = namedObject('DatabaseLoadForm', {
  file: Type.String({ format: 'binary', description: 'A dump, as GET …/dump gives it' }),
});

/** Unless more is asked for. */
export const LOG_BYTES = 65_536;

export const LogQuery = Type.Object({
  bytes: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 2 ** 20, default: LOG_BYTES, description: 'How much of its end' }),
  ),
});
