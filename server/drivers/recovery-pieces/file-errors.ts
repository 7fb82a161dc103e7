/** Classifies errors of a file system. */
import { Damaged } from '../../recovery/repository/piece-box.ts';

/** End of the names of files that are not whole yet. */
export const UNFINISHED = '.unfinished';
/** Error codes of a damaged disk or file system for one file. */
const UNREADABLE = ['EIO', 'EBADMSG', 'EUCLEAN', 'EISDIR'];

/** undefined: the file itself may be all right. */
export function unreadable(name: string, error: unknown): Damaged | undefined {
  if (!UNREADABLE.some((code) => isCode(error, code))) return undefined;
  return new Damaged(`${name} cannot be read: ${(error as Error).message}`, 'unreadable');
}

export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}

export function isCode(error: unknown, code: string): boolean {
  return codeOf(error) === code;
}
