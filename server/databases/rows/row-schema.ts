/** Public schemas of rows of a table. */
import { namedObject, type Static, Type, textOrNull } from '../../platform/json/json-schema.ts';
import { FILTER_OPERATORS } from './row-language.ts';

const MAX_NAME = 1000;
const Name = Type.String({ minLength: 1, maxLength: MAX_NAME });

const TableFields = {
  table: Type.String({ minLength: 1, maxLength: MAX_NAME, description: 'A table, view or collection' }),
  schema: Type.Optional(
    Type.Union([Type.String({ maxLength: MAX_NAME }), Type.Null()], {
      description: 'Schema, as in the list of tables; default: the first table of that name',
    }),
  ),
};

const Filter = namedObject('DatabaseRowFilter', {
  column: Name,
  operator: Type.String({ enum: [...FILTER_OPERATORS] }),
  value: Type.Optional(Type.Unknown({ description: 'Bound as a parameter; missing for NULL' })),
});

const Sort = namedObject('DatabaseRowSort', {
  column: Name,
  descending: Type.Optional(Type.Boolean({ default: false })),
});

const MAX_FILTERS = 50;
export const ROWS_LIMIT = 100;

export const RowsQuery = namedObject('DatabaseRowsQuery', {
  ...TableFields,
  filter: Type.Optional(
    Type.Array(Filter, {
      maxItems: MAX_FILTERS,
      description: 'Only rows that match all of these conditions',
    }),
  ),
  match: Type.Optional(
    Type.Object(
      {},
      {
        additionalProperties: true,
        description: 'For a collection: a MongoDB filter as Extended JSON, in addition to `filter`',
      },
    ),
  ),
  sort: Type.Optional(
    Type.Array(Sort, {
      maxItems: MAX_FILTERS,
      description: 'The key is always added as the last column; default: the key',
    }),
  ),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: ROWS_LIMIT })),
  skip: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0 })),
  after: Type.Optional(
    Type.Array(Type.Unknown(), {
      maxItems: MAX_FILTERS,
      description: '`next` of the previous page; only in the order of the key',
    }),
  ),
  count: Type.Optional(
    Type.Boolean({ default: false, description: 'Whether to count all rows that match the filter' }),
  ),
});
export type RowsQuery = Static<typeof RowsQuery>;

const EXPORT_FORMATS = ['csv', 'jsonl', 'sql'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

export const RowsExportQuery = Type.Object({
  table: TableFields.table,
  schema: Type.Optional(
    Type.String({ maxLength: MAX_NAME, description: 'Default: the first table of that name' }),
  ),
  format: Type.Optional(
    Type.String({
      enum: [...EXPORT_FORMATS],
      default: 'csv',
      description: '`csv`, `jsonl` (one JSON object in a line) or `sql` (one INSERT for a row)',
    }),
  ),
});

export type RowsExportQuery = Static<typeof RowsExportQuery>;

const Statement = namedObject('DatabaseRowStatement', {
  statement: Type.Optional(Type.String({ description: 'SQL with placeholders' })),
  command: Type.Optional(
    Type.Object(
      {},
      { additionalProperties: true, description: 'Command of the engine, if the language is `documents`' },
    ),
  ),
  params: Type.Array(Type.Unknown()),
});

export const Rows = namedObject('DatabaseRows', {
  columns: Type.Array(
    namedObject('DatabaseRowColumn', {
      name: Type.String(),
      type: textOrNull('As declared'),
    }),
  ),
  rows: Type.Array(Type.Array(Type.Unknown()), {
    description:
      'Bytes are `{"base64": "…"}`. Numbers that JSON cannot hold, JSON, dates and all other values are exact text. For a ' +
      'collection: the document as Extended JSON with its types, or only its `_id` above 256 KiB, and its bytes',
  }),
  key: Type.Array(Type.String(), {
    description: 'Columns that name a row; empty: rows of this table cannot be changed',
  }),
  truncated: Type.Boolean({
    description: 'Whether rows are missing at the end because of their size; repeat with a higher `skip`',
  }),
  next: Type.Union([Type.Array(Type.Unknown()), Type.Null()], {
    description: 'Value for `after`; null: no rows follow, or this table and order need `skip`',
  }),
  total: Type.Union([Type.Integer(), Type.Null()], {
    description: 'Number of rows that match the filter; null: not requested, or counting takes too long',
  }),
  query: Statement,
  elapsed_ms: Type.Number(),
});
export type Rows = Static<typeof Rows>;

const Values = Type.Record(Type.String(), Type.Unknown());
const MAX_CHANGES = 1000;

const Change = namedObject('DatabaseRowChange', {
  action: Type.String({ enum: ['insert', 'update', 'delete'] }),
  values: Type.Optional({
    ...Values,
    description:
      'New values by column, for insert and update; other columns of an insert get their defaults. For a collection: the ' +
      'whole document',
  }),
  old: Type.Optional({
    ...Values,
    description:
      'The row as it was read, with its key, for update and delete; refused if the row has changed',
  }),
});

export const RowChangesBody = namedObject('DatabaseRowChanges', {
  ...TableFields,
  changes: Type.Array(Change, { minItems: 1, maxItems: MAX_CHANGES }),
  dry_run: Type.Optional(Type.Boolean({ default: false, description: 'true: only shows the statements' })),
});
export type RowChangesBody = Static<typeof RowChangesBody>;

export const ChangedRows = namedObject('DatabaseChangedRows', {
  statements: Type.Array(Statement),
  changed: Type.Integer({ description: 'Number of rows that were changed; 0 with `dry_run`' }),
});
export type ChangedRows = Static<typeof ChangedRows>;
