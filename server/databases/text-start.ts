/** The beginning of a text that people upload: the mark of its encoding. */
import { LoadFailed } from './engine.ts';

const UTF_8_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
const UTF_16_MARKS = [Buffer.from([0xff, 0xfe]), Buffer.from([0xfe, 0xff])];

/** Without the byte order mark. Throws LoadFailed for UTF-16; `better`: the command that writes UTF-8. */
export function textStart(head: Buffer, better: string): Buffer {
  if (UTF_16_MARKS.some((mark) => head.subarray(0, 2).equals(mark))) {
    throw new LoadFailed(
      'The file is UTF-16, as PowerShell writes with ">", which can also alter the text: ' +
        `have the program write the file itself (\`${better}\`)`,
    );
  }
  return head.subarray(0, 3).equals(UTF_8_MARK) ? head.subarray(3) : head;
}
