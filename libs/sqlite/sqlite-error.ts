/** Names of SQLite's error codes, which drivers expect; node:sqlite only has numbers. */

const NAMES: Readonly<Record<number, string>> = {
  1: 'SQLITE_ERROR',
  2: 'SQLITE_INTERNAL',
  3: 'SQLITE_PERM',
  4: 'SQLITE_ABORT',
  5: 'SQLITE_BUSY',
  6: 'SQLITE_LOCKED',
  7: 'SQLITE_NOMEM',
  8: 'SQLITE_READONLY',
  9: 'SQLITE_INTERRUPT',
  10: 'SQLITE_IOERR',
  11: 'SQLITE_CORRUPT',
  12: 'SQLITE_NOTFOUND',
  13: 'SQLITE_FULL',
  14: 'SQLITE_CANTOPEN',
  15: 'SQLITE_PROTOCOL',
  17: 'SQLITE_SCHEMA',
  18: 'SQLITE_TOOBIG',
  19: 'SQLITE_CONSTRAINT',
  20: 'SQLITE_MISMATCH',
  21: 'SQLITE_MISUSE',
  23: 'SQLITE_AUTH',
  25: 'SQLITE_RANGE',
  26: 'SQLITE_NOTADB',
};
/** Extended codes of SQLITE_CONSTRAINT. */
const CONSTRAINTS: Readonly<Record<number, string>> = {
  1: 'CHECK',
  2: 'COMMITHOOK',
  3: 'FOREIGNKEY',
  4: 'FUNCTION',
  5: 'NOTNULL',
  6: 'PRIMARYKEY',
  7: 'TRIGGER',
  8: 'UNIQUE',
  9: 'VTAB',
  10: 'ROWID',
  12: 'DATATYPE',
};
const CONSTRAINT = 19;
const BUSY = 5;
const FULL = 13;
const IO_ERROR = 10;
const CANNOT_OPEN = 14;
const CORRUPT = 11;
const NO_DATABASE = 26;

/** SQLite's extended error code; null for other errors. */
function sqliteCode(error: unknown): number | null {
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  return code === 'ERR_SQLITE_ERROR' && typeof errcode === 'number' ? errcode : null;
}

/** `SQLITE_CONSTRAINT_UNIQUE` and the like; null for errors not from SQLite. */
export function sqliteErrorName(error: unknown): string | null {
  const code = sqliteCode(error);
  if (code === null) return null;
  const name = NAMES[code & 0xff] ?? 'SQLITE_ERROR';
  const more = (code & 0xff) === CONSTRAINT ? CONSTRAINTS[code >> 8] : undefined;
  return more === undefined ? name : `${name}_${more}`;
}

/** Whether another connection holds the lock: the statement had no effect and can be retried. */
export function isBusy(error: unknown): boolean {
  return ((sqliteCode(error) ?? 0) & 0xff) === BUSY;
}

/** Whether the size limit or the disk is exhausted. */
export function isFull(error: unknown): boolean {
  return ((sqliteCode(error) ?? 0) & 0xff) === FULL;
}

/** Whether a file could not be read, written or created, which a full disk may cause. */
export function isDiskError(error: unknown): boolean {
  return [IO_ERROR, CANNOT_OPEN].includes((sqliteCode(error) ?? 0) & 0xff);
}

/** Whether SQLite found the file corrupt. */
export function isCorrupt(error: unknown): boolean {
  return [CORRUPT, NO_DATABASE].includes((sqliteCode(error) ?? 0) & 0xff);
}
