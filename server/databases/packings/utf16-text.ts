/** Text in UTF-16, as PowerShell writes it with ">", in UTF-8. */
import { LoadFailed } from '../engine.ts';
import { begin } from '../file-start.ts';

const HEAD_BYTES = 4;
/** Beyond ASCII, PowerShell may have altered the characters before they reached the file. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII.
const BEYOND_ASCII = /[^\x00-\x7f]/;

/**
 * The pieces, with UTF-16 converted to UTF-8. Throws LoadFailed for UTF-16 with characters beyond ASCII:
 * PowerShell decodes a program's output in the console's encoding, so they may be wrong.
 */
export async function* inUtf8(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const { head, whole } = await begin(pieces, ({ length }) => length >= HEAD_BYTES);
  const label = labelOf(head);
  if (label === null) {
    yield* whole;
    return;
  }
  const reader = new AsciiReader(label);
  for await (const piece of whole) yield reader.take(piece);
  reader.end();
}

/**
 * Detects UTF-16 by its byte order mark, or by two ASCII characters, each with its NUL; null: another
 * encoding.
 */
function labelOf(head: Buffer): 'utf-16le' | 'utf-16be' | null {
  const mark = head.subarray(0, 2).toString('hex');
  if (mark === 'fffe') return 'utf-16le';
  if (mark === 'feff') return 'utf-16be';
  if (head.length < HEAD_BYTES) return null;
  const nul = [...head.subarray(0, HEAD_BYTES)].map((byte) => Number(byte === 0)).join('');
  if (nul === '0101') return 'utf-16le';
  return nul === '1010' ? 'utf-16be' : null;
}

class AsciiReader {
  readonly #decoder: TextDecoder;
  #line = 1;

  constructor(label: string) {
    this.#decoder = new TextDecoder(label);
  }

  take(piece: Uint8Array): Buffer {
    return this.#checked(this.#decoder.decode(piece, { stream: true }));
  }

  /** Throws LoadFailed for half a character. */
  end(): void {
    this.#checked(this.#decoder.decode());
  }

  #checked(text: string): Buffer {
    const at = text.search(BEYOND_ASCII);
    const lines = (text.slice(0, at < 0 ? undefined : at).match(/\n/g) ?? []).length;
    this.#line += lines;
    if (at >= 0) throw new LoadFailed(alteredText(this.#line));
    return Buffer.from(text, 'latin1');
  }
}

const alteredText = (line: number) =>
  `The file is UTF-16, as PowerShell writes with ">", which can alter text beyond ASCII, such as in line ${line}: ` +
  'have the program write the file itself (`pg_dump -f dump.sql NAME`, `mysqldump --result-file=dump.sql NAME`, ' +
  '`sqlite3 shop.db ".output dump.sql" .dump`)';
