/** Rows of SQLite, where each value has its own type. */
import { isBytes } from '../../../databases/rows/row-language.ts';
import { invalidField } from '../../../platform/errors.ts';
import {
  type Column,
  hexOf,
  inQuotes,
  joined,
  type Named,
  type SqlRowDialect,
  sqlRows,
} from '../shared/sql-rows.ts';

/** SQLite gives integers beyond 2^53 to JSON as text. */
const LARGE = /^-?\d{16,19}$/;
/** A column without a type stores values unchanged: text is not converted to a number. */
const isUntyped = ({ type }: Column) => type === null || /^blob$/i.test(type);
const asText = (name: string) => `CAST(${name} AS TEXT)`;

function same({ name, column }: Named, value: unknown): string {
  return isUntyped(column) && typeof value === 'string' && LARGE.test(value) ? asText(name) : name;
}

/** A NUL would end the statement, so text with one is written as its bytes. */
function literal(value: unknown): string {
  if (isBytes(value)) return `x'${hexOf(value)}'`;
  if (typeof value === 'number') return String(value);
  const text = String(value);
  if (!text.includes('\0')) return inQuotes(text);
  return `CAST(x'${Buffer.from(text).toString('hex')}' AS TEXT)`;
}

/** SQLite's results have at most 2,000 columns, and one is needed for the types. */
const MOST_COLUMNS = 1999;

function kinds(names: readonly string[]): string {
  if (names.length > MOST_COLUMNS)
    throw invalidField('table', `has ${names.length} columns, but rows of at most 1,999 can be read`);
  return (
    joined(
      names.map((name) => `substr(typeof(${name}), 1, 1)`),
      ' || ',
    ) || "''"
  );
}

const DIALECT: SqlRowDialect = {
  quote: '"',
  mark: () => '?',
  read: ({ name }) => name,
  write: (value, _, bind) => bind(value),
  same: (named, value, bind) => `${same(named, value)} IS ${bind(value)}`,
  sameKey: (named, value, bind) => `${same(named, value)} = ${bind(value)}`,
  compare: ({ name, column }, { operator, value, bind }) =>
    `${isUntyped(column) && typeof value === 'string' ? asText(name) : name} ${operator} ${bind(value)}`,
  contains: ({ name }, value, bind) => `instr(lower(${asText(name)}), lower(${bind(value)})) > 0`,
  startsWith: ({ name }, value, bind) => `instr(lower(${asText(name)}), lower(${bind(value)})) = 1`,
  hasBytes: () => null,
  literal,
  types: {
    text: 'TEXT',
    integer: 'INTEGER',
    number: 'REAL',
    boolean: 'BOOLEAN',
    date: 'DATE',
    timestamp: 'TIMESTAMP',
    bytes: 'BLOB',
    json: 'TEXT',
  },
  hasZones: true,
  kinds,
  defaults: 'DEFAULT VALUES',
};

export const SQLITE_ROWS = sqlRows(DIALECT);
