/** Reads exact numbers of bytes from pieces of any size. */
export class ExactReader {
  readonly #source: AsyncGenerator<Uint8Array>;
  readonly #damaged: () => Error;
  /** Pieces that were read, joined only when bytes of several are needed at once: they may be tiny. */
  readonly #read: Buffer[] = [];
  #length = 0;

  /** `damaged`: the error for an early end. */
  constructor(source: AsyncGenerator<Uint8Array>, damaged: () => Error) {
    this.#source = source;
    this.#damaged = damaged;
  }

  /** The next bytes as they arrive; null: the end. */
  async piece(): Promise<Buffer | null> {
    if (this.#length === 0 && !(await this.#more())) return null;
    const piece = this.#read.shift() as Buffer;
    this.#length -= piece.length;
    return piece;
  }

  putBack(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#read.unshift(bytes);
    this.#length += bytes.length;
  }

  /** `mayEnd`: fewer bytes at the end. */
  async take(length: number, { mayEnd = false } = {}): Promise<Buffer> {
    const bytes = await this.peek(length);
    if (bytes.length < length && !mayEnd) throw this.#damaged();
    const [first] = this.#read.splice(0, 1);
    if (first !== undefined) {
      this.#length -= first.length;
      this.putBack(first.subarray(bytes.length));
    }
    return bytes;
  }

  async peek(length: number): Promise<Buffer> {
    while (this.#length < length && (await this.#more()));
    const [first] = this.#read;
    if (first === undefined || first.length >= length) return (first ?? Buffer.alloc(0)).subarray(0, length);
    const all = Buffer.concat(this.#read);
    this.#read.splice(0, this.#read.length, all);
    return all.subarray(0, length);
  }

  async *through(length: number): AsyncGenerator<Buffer> {
    for (let left = length; left > 0; ) {
      const piece = await this.piece();
      if (piece === null) throw this.#damaged();
      const part = piece.subarray(0, left);
      this.putBack(piece.subarray(part.length));
      left -= part.length;
      yield part;
    }
  }

  async close(): Promise<void> {
    await this.#source.return(undefined);
  }

  async #more(): Promise<boolean> {
    for (;;) {
      const { value, done } = await this.#source.next();
      if (done) return false;
      if (value.length === 0) continue;
      const { buffer, byteOffset, byteLength } = value;
      this.#read.push(Buffer.from(buffer, byteOffset, byteLength));
      this.#length += byteLength;
      return true;
    }
  }
}
