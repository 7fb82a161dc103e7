/** Reads exact numbers of bytes from pieces of any size. */
export class ExactReader {
  readonly #source: AsyncGenerator<Uint8Array>;
  readonly #damaged: () => Error;
  #rest: Buffer = Buffer.alloc(0);

  /** `damaged`: the error for an early end. */
  constructor(source: AsyncGenerator<Uint8Array>, damaged: () => Error) {
    this.#source = source;
    this.#damaged = damaged;
  }

  /** The next bytes as they arrive; null: the end. */
  async piece(): Promise<Buffer | null> {
    if (this.#rest.length === 0 && !(await this.#more())) return null;
    const piece = this.#rest;
    this.#rest = Buffer.alloc(0);
    return piece;
  }

  putBack(bytes: Buffer): void {
    this.#rest = Buffer.concat([bytes, this.#rest]);
  }

  /** `mayEnd`: fewer bytes at the end. */
  async take(length: number, { mayEnd = false } = {}): Promise<Buffer> {
    const bytes = await this.peek(length);
    if (bytes.length < length && !mayEnd) throw this.#damaged();
    this.#rest = this.#rest.subarray(bytes.length);
    return bytes;
  }

  async peek(length: number): Promise<Buffer> {
    while (this.#rest.length < length && (await this.#more()));
    return this.#rest.subarray(0, length);
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
    const { value, done } = await this.#source.next();
    if (done) return false;
    this.#rest = Buffer.concat([this.#rest, value]);
    return true;
  }
}
