/** Files of pieces that are incomplete or unreadable. */
import { isCode } from '../../platform/files.ts';
import { Damaged } from '../../recovery/repository/piece-box.ts';

/** Suffix of the names of incomplete files. */
export const UNFINISHED = '.unfinished';
/** Error codes of a damaged disk or file system for one file. */
const UNREADABLE = ['EIO', 'EBADMSG', 'EUCLEAN', 'EISDIR'];

/** undefined: the file itself may be all right. */
export function unreadable(name: string, error: unknown): Damaged | undefined {
  if (!UNREADABLE.some((code) => isCode(error, code))) return undefined;
  return new Damaged(`${name} cannot be read: ${(error as Error).message}`, 'unreadable');
}
