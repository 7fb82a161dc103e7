/** The beginning of an uploaded text, and its end. */

const UTF_8_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** The first bytes of a text without its byte order mark. */
export function withoutMark(head: Buffer): Buffer {
  return head.subarray(0, 3).equals(UTF_8_MARK) ? head.subarray(3) : head;
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
