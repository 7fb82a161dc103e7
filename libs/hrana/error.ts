/** Errors for Hrana clients: a message and a code. */
import { HOST_DISK_FULL, hostSpace, noteDamage, sqliteErrorName } from '../sqlite/index.ts';

/** Shown to the client; other errors are internal. */
export class HranaError extends Error {
  /** Stable: `SQLITE_BUSY`, `STREAM_EXPIRED`. */
  readonly hranaCode: string;

  constructor(hranaCode: string, message: string) {
    super(message);
    this.name = 'HranaError';
    this.hranaCode = hranaCode;
  }
}

/** Errors of SQLite and of bindings are shown; internal errors are not hidden either. */
export function describeError(error: unknown): { readonly message: string; readonly code: string } {
  if (error instanceof HranaError) return { message: error.message, code: error.hranaCode };
  if (!(error instanceof Error)) return { message: String(error), code: 'INTERNAL_ERROR' };
  noteDamage(error);
  if (hostSpace.isWhy(error)) return { message: HOST_DISK_FULL, code: 'SQLITE_FULL' };
  const sqlite = sqliteErrorName(error);
  // The format of libsql's own server, which clients parse.
  if (sqlite !== null)
    return { message: `SQLite error: ${error.message}`, code: sqlite.replace(/(?<=CONSTRAINT)_.*/, '') };
  const isRefusal = 'code' in error && /^ERR_(?:INVALID_ARG|OUT_OF_RANGE)/.test(String(error.code));
  return { message: error.message, code: isRefusal ? 'INVALID_STATEMENT' : 'INTERNAL_ERROR' };
}
