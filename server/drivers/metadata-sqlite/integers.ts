/**
 * Whole numbers between JavaScript and SQLite. better-sqlite3 binds every number as a REAL, and reads
 * every INTEGER as a double, so that 9007199254740993 comes back as …992. Here instead:
 *
 * - a whole number within ±(2^53 − 1) is bound as an INTEGER, so `'x' || ?` says `x5` and not `x5.0`;
 * - an INTEGER within that range is read as number, one beyond it as bigint. Code that may meet money
 *   or other 64-bit values wraps what it reads in `BigInt()`, which takes both.
 */
import type { Statement } from 'better-sqlite3';
import type { SqlValue } from '../../metadata/metadata.ts';

type Row = Record<string, SqlValue>;

/** The value to bind. */
export function toBound(value: SqlValue): SqlValue {
  return typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : value;
}

/** `value` as number where that is exact. */
function narrow(value: SqlValue): SqlValue {
  const exact =
    typeof value === 'bigint' && value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER;
  return exact ? Number(value) : value;
}

function isInexact(value: SqlValue | undefined): boolean {
  return typeof value === 'number' && (value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER);
}

/**
 * Runs a query with exact integers. Reads plain numbers first, because bigints for every column
 * cost twice the time, and repeats with bigint only if a value is too large to be exact.
 */
export function readExactly(query: ExactQuery, params: readonly SqlValue[]): Row[] {
  const bound = params.map(toBound);
  const rows = query.statement.all(bound) as Row[];
  if (!rows.some((row) => query.columns.some((column) => isInexact(row[column])))) return rows;
  query.statement.safeIntegers(true);
  try {
    const exact = query.statement.all(bound) as Row[];
    return exact.map((row) => Object.fromEntries(Object.entries(row).map(([name, v]) => [name, narrow(v)])));
  } finally {
    query.statement.safeIntegers(false);
  }
}

/** Same as readExactly, for the first row only. */
export function readFirstExactly(query: ExactQuery, params: readonly SqlValue[]): Row | undefined {
  const bound = params.map(toBound);
  const row = query.statement.get(bound) as Row | undefined;
  if (row === undefined || !query.columns.some((column) => isInexact(row[column]))) return row;
  return readExactly(query, params)[0];
}

export interface ExactQuery {
  readonly statement: Statement;
  readonly columns: readonly string[];
}
