/** SQL text as it comes: bytes that may be no UTF-8, and blobs longer than a statement may be. */
import { isUtf8 } from 'node:buffer';
import { tokensOf } from './tokens.ts';

/** Each character is one byte. SQL has no syntax beyond ASCII. */
export const BYTES = 'latin1';
/** Digits at the end of a piece from which a blob is kept apart. */
const LONG = 64 * 1024;
const DIGITS = new RegExp(`^[0-9A-Fa-f]{${LONG}}$`);
const NO_DIGIT = /[^0-9A-Fa-f]/;
const NAME = /:cloudlet_blob_\d+/g;

/** Blobs of one statement have at most this many times the bytes of the longest one. */
const MOST_HELD = 4;

export class TooLong extends Error {}

/**
 * The statement with its bytes as text. SQLite keeps text that is no UTF-8, and `.dump` writes it as it is:
 * such a literal becomes one of bytes, so that nothing is altered.
 */
export function textOf(bytes: string): string {
  if (!/[\x80-\xff]/.test(bytes)) return bytes;
  const whole = Buffer.from(bytes, BYTES);
  if (isUtf8(whole)) return whole.toString();
  let [changed, from] = ['', 0];
  for (const { text, at, isLiteral } of tokensOf(bytes)) {
    if (!isLiteral || !/[\x80-\xff]/.test(text)) continue;
    const content = Buffer.from(text.slice(1, -1).replaceAll("''", "'"), BYTES);
    if (isUtf8(content)) continue;
    changed += `${bytes.slice(from, at)}(CAST(X'${content.toString('hex')}' AS TEXT))`;
    from = at + text.length;
  }
  return Buffer.from(changed + bytes.slice(from), BYTES).toString();
}

/** Replaces long blobs (`X'00ff…'`) with parameters, and keeps them as bytes. */
export class LongBlobs {
  readonly #mostBytes: number;
  readonly #blobs = new Map<string, Buffer>();
  #pieces: Buffer[] | undefined;
  #odd = '';
  #bytes = 0;
  /** Bytes of the blobs that were not taken. */
  #held = 0;
  #number = 0;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  /** The text that is read and not run, with `piece` added. Throws TooLong. */
  add(rest: string, piece: string): string {
    if (this.#pieces === undefined) return this.#begun(rest, piece);
    const end = piece.search(NO_DIGIT);
    this.#keep(end === -1 ? piece : piece.slice(0, end));
    return end === -1 ? rest : this.#begun(rest + this.#ended(), piece.slice(end + 1));
  }

  /** The blobs of a statement, by the names of their parameters; undefined: it has none. */
  take(text: string): Record<string, Buffer> | undefined {
    if (this.#blobs.size === 0) return undefined;
    const names = (text.match(NAME) ?? []).filter((name) => this.#blobs.has(name));
    if (names.length === 0) return undefined;
    const taken = names.map((name) => [name, this.#blobs.get(name)] as const);
    for (const [name, blob] of taken) {
      this.#blobs.delete(name);
      this.#held -= blob?.length ?? 0;
    }
    return Object.fromEntries(taken) as Record<string, Buffer>;
  }

  #begun(rest: string, piece: string): string {
    const text = rest + piece;
    // The whole text would be copied for each piece.
    if (!DIGITS.test(piece.slice(-LONG))) return text;
    const quote = text.lastIndexOf("'");
    if (quote < 1 || !/[xX]/.test(text[quote - 1] ?? '') || NO_DIGIT.test(text.slice(quote + 1))) return text;
    this.#pieces = [];
    this.#keep(text.slice(quote + 1));
    return text.slice(0, quote - 1);
  }

  #keep(digits: string): void {
    const all = this.#odd + digits;
    const even = all.length - (all.length % 2);
    this.#odd = all.slice(even);
    this.#bytes += even / 2;
    const most = this.#mostBytes / 2 ** 20;
    if (this.#bytes > this.#mostBytes) throw new TooLong(`a value has at most ${most} MiB`);
    if (this.#held + this.#bytes > MOST_HELD * this.#mostBytes)
      throw new TooLong(`the blobs of a statement have at most ${MOST_HELD * most} MiB together`);
    this.#pieces?.push(Buffer.from(all.slice(0, even), 'hex'));
  }

  /** The name of its parameter. */
  #ended(): string {
    const name = `:cloudlet_blob_${++this.#number}`;
    this.#blobs.set(name, Buffer.concat(this.#pieces ?? []));
    this.#held += this.#bytes;
    this.#pieces = undefined;
    [this.#odd, this.#bytes] = ['', 0];
    return name;
  }
}
