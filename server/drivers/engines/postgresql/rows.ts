/** Rows of PostgreSQL, which infers the type of a bound value from the column beside it. */
import { isBytes } from '../../../databases/rows/row-language.ts';
import { base64Of, type Column, hexOf, inQuotes, type SqlRowDialect, sqlRows } from '../shared/sql-rows.ts';
import { ALWAYS_IDENTITY } from './tables-store.ts';

const isBinary = ({ type }: Column) => type === 'bytea';
/** Types without `=`, or whose `=` compares areas, and JSON, whose numbers JavaScript would round. */
const BY_TEXT = /^(?:jsonb?|xml|point|line|lseg|box|path|polygon|circle)$/;
const isByText = ({ type }: Column) => BY_TEXT.test(type ?? '');

function literal(value: unknown): string {
  if (typeof value === 'boolean' || typeof value === 'number') return `'${value}'`;
  if (isBytes(value)) return `decode('${hexOf(value)}', 'hex')`;
  const text = String(value);
  return text.includes('\\') ? `E${inQuotes(text.replaceAll('\\', '\\\\'))}` : inQuotes(text);
}

const DIALECT: SqlRowDialect = {
  quote: '"',
  mark: (at) => `$${at}`,
  read: ({ name, column }) => (isByText(column) ? `${name}::text` : name),
  write: (value, column, bind) =>
    isBinary(column) ? `decode(${bind(base64Of(value, column))}, 'base64')` : bind(value),
  same: ({ name, column }, value, bind) => {
    if (isBinary(column))
      return `${name} IS NOT DISTINCT FROM decode(${bind(base64Of(value, column))}, 'base64')`;
    if (isByText(column)) return `${name}::text IS NOT DISTINCT FROM ${bind(value)}::text`;
    return `${name} IS NOT DISTINCT FROM ${bind(value)}`;
  },
  // IS NOT DISTINCT FROM uses no index.
  sameKey: ({ name, column }, value, bind) =>
    isBinary(column)
      ? `${name} = decode(${bind(base64Of(value, column))}, 'base64')`
      : `${name} = ${bind(value)}`,
  compare: ({ name, column }, { operator, value, bind }) =>
    isByText(column) ? `${name}::text ${operator} ${bind(value)}` : `${name} ${operator} ${bind(value)}`,
  contains: ({ name }, value, bind) => `strpos(lower(${name}::text), lower(${bind(value)})) > 0`,
  startsWith: ({ name }, value, bind) => `strpos(lower(${name}::text), lower(${bind(value)})) = 1`,
  literal,
  types: {
    text: 'text',
    integer: 'bigint',
    number: 'numeric',
    boolean: 'boolean',
    date: 'date',
    timestamp: 'timestamp with time zone',
    bytes: 'bytea',
    json: 'jsonb',
  },
  hasZones: true,
  hasBytes: isBinary,
  defaults: 'DEFAULT VALUES',
  overriding: (columns) =>
    columns.some((column) => column.default === ALWAYS_IDENTITY) ? ' OVERRIDING SYSTEM VALUE' : '',
};

export const POSTGRESQL_ROWS = sqlRows(DIALECT);
