/** The beginning of an uploaded file, and the end of a text. */

const UTF_8_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** The first bytes of a text without its byte order mark. */
export function withoutMark(head: Buffer): Buffer {
  return head.subarray(0, 3).equals(UTF_8_MARK) ? head.subarray(3) : head;
}

const MESSAGE =
  /^(?:(?:\S*\/)?(?:pg_dump(?:all)?|mysqldump|mysqlpump|mariadb-dump): |(?:Enter password|Password(?: for user [^:]*)?): ?$|Warning: |Defaulted container "|could not change directory to ")/;

/**
 * Whether a line before the first statement is a message of a program: of the dump program, by `2>&1`, or
 * what a terminal showed (`docker exec -t`).
 */
export const isMessage = (line: string): boolean => MESSAGE.test(line.trimEnd());

/** The note about a message. */
export const MESSAGE_REASON = 'it is a message of a program, not SQL';

/** The beginning of a text, with empty lines for messages. `tell` gets each, with its line. */
export function withoutMessages(head: Buffer, tell?: (text: string, line: number) => void): Buffer {
  const lines = head.toString('latin1').split('\n');
  let at = 0;
  for (; at < lines.length - 1 && isMessage(lines[at] ?? ''); at++) {
    tell?.(Buffer.from(lines[at] ?? '', 'latin1').toString(), at + 1);
    lines[at] = '';
  }
  return at === 0 ? head : Buffer.from(lines.join('\n'), 'latin1');
}

/** The error for text of blanks and comments, which would leave an empty database. */
export const NO_STATEMENT = 'The dump is empty: it has no statement';

/** The error for a dump without its last line. `by`: the program that writes this line. */
export function cutOff({ last, by }: { readonly last: string; readonly by: string }): string {
  return (
    `The dump is cut off: its last line, which ${by} writes (\`${last}\`), is missing. Make it again, and look at ` +
    `the exit code of ${by} and at the free space on its disk; if nothing else is missing, add that line`
  );
}

/** A file whose beginning was read. */
interface Begun<T extends Uint8Array> {
  readonly head: Buffer;
  /** All of the file, to be read once. */
  readonly whole: AsyncGenerator<T | Buffer>;
  /** Ends the reading, if `whole` is not read. */
  close(): Promise<unknown>;
}

/** How much a beginning grows before it is looked at again: pieces may be tiny. */
const GROWTH = 1.125;

/** Reads the first piece, and further ones until they are enough, or the file is over. */
export async function begin<T extends Uint8Array>(
  pieces: AsyncIterable<T>,
  isEnough: (head: Buffer, isOver: boolean) => boolean,
): Promise<Begun<T>> {
  const source = pieces[Symbol.asyncIterator]();
  const read: T[] = [];
  let length = 0;
  let head: Buffer = Buffer.alloc(0);
  for (let isOver = false; !isOver; ) {
    const { value, done } = await source.next();
    isOver = done === true;
    if (value !== undefined) {
      read.push(value);
      length += value.length;
    }
    if (!isOver && length < head.length * GROWTH) continue;
    head = Buffer.concat([head, ...read.splice(0)]);
    if (isEnough(head, isOver)) break;
  }
  return { head, whole: joined<T | Buffer>([head], source), close: async () => source.return?.() };
}

/** The pieces that were read, and the rest. */
export async function* joined<T extends Uint8Array>(
  read: readonly T[],
  rest: AsyncIterator<T>,
): AsyncGenerator<T> {
  try {
    for (const piece of read) if (piece.length > 0) yield piece;
    for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}
