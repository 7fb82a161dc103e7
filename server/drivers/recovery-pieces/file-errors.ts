/** Files of pieces that are not whole, or not readable. */
import { isCode } from '../../platform/files.ts';
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
