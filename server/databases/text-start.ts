/** The beginning of an uploaded text, which shows its encoding, and its end. */
import { LoadFailed } from './engine.ts';

const UTF_8_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
const UTF_16_MARKS = [Buffer.from([0xff, 0xfe]), Buffer.from([0xfe, 0xff])];

/** Without the byte order mark. Throws LoadFailed for UTF-16; `better`: the command that writes UTF-8. */
export function textStart(head: Buffer, better: string): Buffer {
  if (UTF_16_MARKS.some((mark) => head.subarray(0, 2).equals(mark)) || isUnmarkedUtf16(head)) {
    throw new LoadFailed(
      'The file is UTF-16, as PowerShell writes with ">", which can also alter the text: ' +
        `have the program write the file itself (\`${better}\`)`,
    );
  }
  return head.subarray(0, 3).equals(UTF_8_MARK) ? head.subarray(3) : head;
}

/** Two characters of ASCII, each with its NUL. */
function isUnmarkedUtf16(head: Buffer): boolean {
  if (head.length < 4) return false;
  const nul = [...head.subarray(0, 4)].map((byte) => Number(byte === 0)).join('');
  return nul === '0101' || nul === '1010';
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
