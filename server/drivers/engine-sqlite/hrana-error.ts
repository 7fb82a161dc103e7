/** What goes wrong for a client of Hrana, as the protocol says it: a message and a code. */
import { noteDamage } from '../engine-children/data-damage.ts';
import { HOST_DISK_FULL, hostRoom } from '../engine-children/host-room.ts';
import { sqliteErrorName } from '../engine-children/sqlite-error.ts';

/** For the client alone; anything else that is thrown is ours. */
export class HranaError extends Error {
  /** Stable: `SQLITE_BUSY`, `STREAM_EXPIRED`. */
  readonly hranaCode: string;

  constructor(hranaCode: string, message: string) {
    super(message);
    this.name = 'HranaError';
    this.hranaCode = hranaCode;
  }
}

/** The error as JSON. What SQLite and the binding refuse is told; what we did wrong is not hidden either. */
export function errorJson(error: unknown): string {
  const { message, code } = describe(error);
  return `{"message":${JSON.stringify(message)},"code":${JSON.stringify(code)}}`;
}

function describe(error: unknown): { readonly message: string; readonly code: string } {
  if (error instanceof HranaError) return { message: error.message, code: error.hranaCode };
  if (!(error instanceof Error)) return { message: String(error), code: 'INTERNAL_ERROR' };
  noteDamage(error);
  if (hostRoom.isWhy(error)) return { message: HOST_DISK_FULL, code: 'SQLITE_FULL' };
  const sqlite = sqliteErrorName(error);
  // As libsql's own server has it, so that programs find what they look for.
  if (sqlite !== null)
    return { message: `SQLite error: ${error.message}`, code: sqlite.replace(/(?<=CONSTRAINT)_.*/, '') };
  const isRefusal = 'code' in error && /^ERR_(?:INVALID_ARG|OUT_OF_RANGE)/.test(String(error.code));
  return { message: error.message, code: isRefusal ? 'INVALID_STATEMENT' : 'INTERNAL_ERROR' };
}
