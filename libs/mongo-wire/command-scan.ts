/** Reads the command's name and database without creating objects from unauthenticated input. */
import { BEYOND_LENGTH, FIXED_BYTES, Malformed, REGEX } from '../mongo/index.ts';

export interface CommandScan {
  /** The first field: `find`. */
  readonly name: string;
  /** `$db`; null: missing. */
  readonly database: string | null;
}

/** Limits of commands, without their documents. */
const MAX_FIELDS = 512;
const MAX_NAME_BYTES = 1024;
const STRING = 2;

/** Throws Malformed. */
export function scanCommand(document: Buffer): CommandScan {
  const end = document.length - 1;
  if (end < 4 || document.readInt32LE(0) !== document.length || document[end] !== 0)
    throw new Malformed('a command that is not a document');
  let [name, database]: [string | null, string | null] = [null, null];
  let at = 4;
  for (let fields = 0; at < end; fields++) {
    if (fields === MAX_FIELDS) throw new Malformed('a command that has too many fields');
    const type = document[at] as number;
    const field = textAt(document, at + 1);
    const valueAt = field.next;
    const next = valueAt + sizeOf(document, type, valueAt);
    if (next > end) throw new Malformed('a field that is cut off');
    name ??= field.text;
    if (field.text === '$db' && type === STRING) database = document.toString('utf8', valueAt + 4, next - 1);
    at = next;
  }
  return { name: name ?? '', database };
}

function textAt(document: Buffer, at: number): { readonly text: string; readonly next: number } {
  const end = document.indexOf(0, at);
  if (end === -1 || end - at > MAX_NAME_BYTES) throw new Malformed('a field name without an end');
  return { text: document.toString('utf8', at, end), next: end + 1 };
}

function sizeOf(document: Buffer, type: number, at: number): number {
  const fixed = FIXED_BYTES[type];
  if (fixed !== undefined) return fixed;
  if (type === REGEX) return textAt(document, textAt(document, at).next).next - at;
  const beyond = BEYOND_LENGTH[type];
  if (beyond === undefined || at + 4 > document.length) throw new Malformed('a value of an unknown type');
  const length = document.readInt32LE(at);
  if (length < 0) throw new Malformed('a length that is wrong');
  return length + beyond;
}
