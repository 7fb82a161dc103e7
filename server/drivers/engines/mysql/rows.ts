/** Rows of MariaDB and MySQL, which compare text without case, and text with numbers as floating point. */
import { isBytes } from '../../../databases/rows/row-language.ts';
import { invalidField } from '../../../platform/errors.ts';
import {
  type Bind,
  base64Of,
  type Column,
  hexOf,
  inQuotes,
  type Named,
  type SqlRowDialect,
  sqlRows,
} from '../shared/sql-rows.ts';

type Kind = 'bytes' | 'float' | 'integer' | 'decimal' | 'bit' | 'text' | 'json' | 'shape' | 'other';

const KINDS: readonly (readonly [RegExp, Kind])[] = [
  [/^(?:tiny|medium|long)?blob|^(?:var)?binary/, 'bytes'],
  [/^(?:float|double)/, 'float'],
  [/^(?:tiny|small|medium|big)?int/, 'integer'],
  [/^decimal/, 'decimal'],
  [/^bit/, 'bit'],
  // MariaDB's JSON is a LONGTEXT that its protocol reports as JSON, and its driver parses.
  [/^json|^longtext/, 'json'],
  [/^(?:geometry|point|linestring|polygon|multi|geomcollection)/, 'shape'],
  [/^(?:var)?char|text|^enum|^set/, 'text'],
];

function kindOf({ type }: Column): Kind {
  return KINDS.find(([pattern]) => pattern.test(type ?? ''))?.[1] ?? 'other';
}

const bytesOf = (text: string) => `CAST(CONVERT(${text} USING utf8mb4) AS BINARY)`;

/** The value as JSON holds it: text where the protocol rounds or packs it. */
function read({ name, column }: Named): string {
  const kind = kindOf(column);
  if (kind === 'float') return `CONCAT(${name})`;
  if (kind === 'bit') return `${name} + 0`;
  if (kind === 'json') return `CAST(${name} AS CHAR)`;
  return kind === 'shape' ? `ST_AsText(${name})` : name;
}

/** A cast converts any text to a number: `1 or more` becomes 1 and would find the wrong row. */
function assertNumber(value: unknown, { name }: Column): void {
  const isNumber = typeof value === 'string' ? /^-?\d+(?:\.\d+)?$/.test(value) : typeof value === 'number';
  if (!isNumber && value !== null) throw invalidField(name, 'is compared as a number');
}

/** A value cast to the column's type: text would be compared as floating point. */
function typed(value: unknown, column: Column, bind: Bind): string {
  const kind = kindOf(column);
  if (kind === 'bytes') return `FROM_BASE64(${bind(base64Of(value, column))})`;
  if (kind === 'bit') return `CAST(${bind(value)} AS UNSIGNED)`;
  if (kind === 'integer' || kind === 'decimal') assertNumber(value, column);
  if (kind === 'integer')
    return `CAST(${bind(value)} AS ${/unsigned/.test(column.type ?? '') ? 'UNSIGNED' : 'SIGNED'})`;
  if (kind === 'decimal') return `CAST(${bind(value)} AS DECIMAL(65, 30))`;
  return bind(value);
}

function write(value: unknown, column: Column, bind: Bind): string {
  const kind = kindOf(column);
  if (kind === 'shape') return `ST_GeomFromText(${bind(value)})`;
  // A cast would convert any text to a number; without it, the engine reports an error for invalid
  // text.
  return kind === 'bytes' || kind === 'bit' ? typed(value, column, bind) : bind(value);
}

function same(named: Named, value: unknown, bind: Bind): string {
  const kind = kindOf(named.column);
  if (kind === 'text' || kind === 'json') return `${bytesOf(read(named))} <=> CAST(${bind(value)} AS BINARY)`;
  return `${read(named)} <=> ${typed(value, named.column, bind)}`;
}

function literal(value: unknown, column: Column): string {
  if (isBytes(value)) return `x'${hexOf(value)}'`;
  if (typeof value === 'number') return String(value);
  const quoted = inQuotes(String(value).replaceAll('\\', '\\\\').replaceAll('\0', '\\0'));
  return kindOf(column) === 'shape' ? `ST_GeomFromText(${quoted})` : quoted;
}

const DIALECT: SqlRowDialect = {
  quote: '`',
  mark: () => '?',
  read,
  write,
  same,
  sameKey: (named, value, bind) => {
    const byIndex = `${named.name} = ${typed(value, named.column, bind)}`;
    return kindOf(named.column) === 'text' ? `${byIndex} AND ${same(named, value, bind)}` : byIndex;
  },
  compare: (named, { operator, value, bind }) =>
    `${kindOf(named.column) === 'float' ? named.name : read(named)} ${operator} ${bind(value)}`,
  contains: (named, value, bind) => `LOCATE(${bind(value)}, CONCAT(${read(named)})) > 0`,
  startsWith: (named, value, bind) => `LOCATE(${bind(value)}, CONCAT(${read(named)})) = 1`,
  literal,
  types: {
    text: 'longtext',
    integer: 'bigint',
    number: 'double',
    boolean: 'boolean',
    date: 'date',
    timestamp: 'datetime(6)',
    bytes: 'longblob',
    json: 'json',
  },
  hasZones: false,
  hasBytes: (column) => kindOf(column) === 'bytes',
  defaults: '() VALUES ()',
};

export const MYSQL_ROWS = sqlRows(DIALECT);
