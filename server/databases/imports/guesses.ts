/** Guesses about a file of rows, by its beginning: format, separator, header, types of columns. */
import { type CsvField, CsvReader, type CsvRow } from './csv-reader.ts';

export const IMPORT_FORMATS = ['csv', 'json'] as const;
export type ImportFormat = (typeof IMPORT_FORMATS)[number];

export const COLUMN_KINDS = [
  ...(['text', 'integer', 'number', 'boolean'] as const),
  ...(['date', 'timestamp', 'bytes', 'json'] as const),
] as const;
export type ColumnKind = (typeof COLUMN_KINDS)[number];

const SEPARATORS = [',', ';', '\t', '|'] as const;
/** Maximum characters of one row. */
export const ROW_CHARACTERS = 4 * 2 ** 20;

const PATTERNS: readonly (readonly [ColumnKind, RegExp])[] = [
  ['integer', /^-?(?:0|[1-9]\d{0,17})$/],
  // A number that begins with zeros is a code, such as a postcode.
  ['number', /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/],
  ['boolean', /^(?:true|false)$/i],
  ['date', /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/],
  ['timestamp', /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d(?::?\d\d)?)?$/],
  ['bytes', /^\\x(?:[0-9a-fA-F]{2})+$/],
];

/** A number of so many digits is a code, too: as a number of some engines it would lose the last of them. */
const TOO_LONG = /^-?\d{19,}$/;

export function formatOf(beginning: string): ImportFormat {
  return /^\s*[[{]/.test(beginning) ? 'json' : 'csv';
}

/** The separator that gives the most columns, with the same number in each row. */
export function separatorOf(beginning: string): string {
  const scores = SEPARATORS.map((separator) => {
    const rows = rowsOf(beginning, separator);
    const width = rows[0]?.fields.length ?? 0;
    const alike = rows.filter(({ fields }) => fields.length === width).length;
    return { separator, score: width > 1 ? width * (alike / rows.length) ** 4 : 0 };
  });
  const best = scores.toSorted((one, other) => other.score - one.score)[0];
  return best === undefined || best.score === 0 ? ',' : best.separator;
}

/** The complete rows at the beginning of a file, up to the first fault. */
function rowsOf(beginning: string, separator: string): readonly CsvRow[] {
  const reader = new CsvReader({ separator, mostCharacters: ROW_CHARACTERS });
  try {
    const rows = [...reader.push(beginning)];
    return rows.length > 0 ? rows : reader.end();
  } catch {
    return [];
  }
}

/**
 * The first row has names if none of its fields looks like a value. A repeated text is also a name if the
 * rows below have values of another type: exports of joined tables have `id` and `name` twice.
 */
export function hasHeader([first, ...below]: readonly CsvRow[]): boolean {
  if (first === undefined) return true;
  const names = first.fields.map((name) => name?.trim() ?? '');
  if (!names.every((name) => name !== '' && isName(name))) return false;
  if (new Set(names).size === names.length) return true;
  return below.some(({ fields }) => fields.some((field) => field !== null && !isName(field.trim())));
}

const isName = (name: string) => !PATTERNS.some(([, pattern]) => pattern.test(name));

/** The common type of these values; NULL fits any type. */
export function kindOf(values: readonly unknown[]): ColumnKind {
  const kinds = new Set(values.filter((value) => value !== null && value !== '').map(kindOfValue));
  if (kinds.size === 1) return [...kinds][0] as ColumnKind;
  const areNumbers = kinds.size > 1 && [...kinds].every((kind) => kind === 'integer' || kind === 'number');
  return areNumbers ? 'number' : 'text';
}

function kindOfValue(value: unknown): ColumnKind {
  if (typeof value === 'boolean') return 'boolean';
  if (typeof value === 'number') return Number.isSafeInteger(value) ? 'integer' : 'number';
  if (typeof value === 'object' && value !== null)
    return typeof (value as { base64?: unknown }).base64 === 'string' ? 'bytes' : 'json';
  if (TOO_LONG.test(String(value))) return 'text';
  return PATTERNS.find(([, pattern]) => pattern.test(String(value)))?.[0] ?? 'text';
}

export const EMPTY_MEANINGS = ['unquoted', 'null', 'text'] as const;
export type EmptyMeaning = (typeof EMPTY_MEANINGS)[number];

/** A field as a value; `unquoted`: an empty field is NULL, and two quotes are empty text. */
export function meaningOf(field: CsvField, empty: EmptyMeaning): string | null {
  if (field !== null && field !== '') return field;
  if (empty === 'text') return '';
  return empty === 'null' ? null : field;
}
