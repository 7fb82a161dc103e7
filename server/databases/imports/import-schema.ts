/** Public schemas of imports of rows. */
import { namedObject, type Static, Type, textOrNull } from '../../platform/json/json-schema.ts';
import { COLUMN_KINDS, EMPTY_MEANINGS, IMPORT_FORMATS } from './guesses.ts';

const MAX_NAME = 1000;
const MAX_COLUMNS_CHARACTERS = 12_000;
/** Rows that a dry run shows. */
export const SAMPLE_ROWS = 20;

export const ImportQuery = Type.Object({
  table: Type.String({
    minLength: 1,
    maxLength: MAX_NAME,
    description: 'Table; created if it does not exist',
  }),
  schema: Type.Optional(
    Type.String({ maxLength: MAX_NAME, description: 'Default: the first table of that name' }),
  ),
  format: Type.Optional(
    Type.String({
      enum: [...IMPORT_FORMATS],
      description:
        '`csv`, or `json`: a list of objects, or one after another. Default: detected by the first character',
    }),
  ),
  separator: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 1,
      description: 'Default: detected among `,`, `;`, tab and `|`',
    }),
  ),
  header: Type.Optional(
    Type.Boolean({ description: 'Whether the first row contains the column names. Default: detected' }),
  ),
  empty: Type.Optional(
    Type.String({
      enum: [...EMPTY_MEANINGS],
      default: 'unquoted',
      description:
        'Value of an empty field. `unquoted`: NULL, but `""` is empty text (as in exports); `null`: NULL; `text`: empty text',
    }),
  ),
  columns: Type.Optional(
    Type.String({
      maxLength: MAX_COLUMNS_CHARACTERS,
      description:
        'Changes to the guesses, as JSON by field: `{"Zip":{"name":"zip","type":"text"},"Note":null}`; null leaves a ' +
        `field out. Types of a new table: ${COLUMN_KINDS.join(', ')}`,
    }),
  ),
  dry_run: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'true: only returns what would be imported; the beginning of the file is enough',
    }),
  ),
});
export type ImportQuery = Static<typeof ImportQuery>;

export const ImportForm = namedObject('DatabaseImportForm', {
  file: Type.String({
    format: 'binary',
    description: 'CSV or JSON, in UTF-8 or, with a byte order mark, UTF-16',
  }),
});

const Column = namedObject('DatabaseImportColumn', {
  field: Type.String({ description: 'Name in the file' }),
  name: textOrNull('Column of the table; null: left out'),
  type: Type.Union([Type.String({ enum: [...COLUMN_KINDS] }), Type.Null()], {
    description: 'null: the table exists, and the type of its column is used',
  }),
});
export type ImportColumn = Static<typeof Column>;

export const ImportedTable = namedObject('DatabaseImport', {
  table: Type.String(),
  created: Type.Boolean({ description: 'Whether the table is new' }),
  format: Type.String({ enum: [...IMPORT_FORMATS] }),
  separator: textOrNull(),
  header: Type.Union([Type.Boolean(), Type.Null()]),
  columns: Type.Array(Column),
  sample: Type.Array(Type.Array(Type.Unknown()), { description: 'The first rows, with `dry_run`' }),
  rows: Type.Integer({ description: 'Number of rows that were added; 0 with `dry_run`' }),
});
export type ImportedTable = Static<typeof ImportedTable>;
