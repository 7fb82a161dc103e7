/** The newest bytes of a stream, in a fixed piece of memory. */
export class ByteRing {
  readonly #bytes: Uint8Array;
  /** Where the next byte goes. */
  #at = 0;
  #isFull = false;

  constructor(sizeBytes: number) {
    this.#bytes = new Uint8Array(sizeBytes);
  }

  add(bytes: Uint8Array): void {
    const size = this.#bytes.length;
    const kept = bytes.subarray(Math.max(0, bytes.length - size));
    const first = kept.subarray(0, size - this.#at);
    this.#bytes.set(first, this.#at);
    this.#bytes.set(kept.subarray(first.length));
    if (this.#at + kept.length >= size) this.#isFull = true;
    this.#at = (this.#at + kept.length) % size;
  }

  /** A copy, oldest first. */
  read(): Uint8Array {
    if (!this.#isFull) return this.#bytes.slice(0, this.#at);
    return Buffer.concat([this.#bytes.subarray(this.#at), this.#bytes.subarray(0, this.#at)]);
  }
}
