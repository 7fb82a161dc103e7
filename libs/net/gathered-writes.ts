/**
 * Writes to a stream and merges small waiting pieces. A stream keeps each piece as an object of some hundred
 * bytes, which would add up for single bytes sent to a slow reader.
 */
import type { Writable } from 'node:stream';

const BLOCK_BYTES = 16 * 1024;
/** Pieces this large are queued uncopied: copying costs more than an object. */
const LARGE_BYTES = 8 * 1024;

export class GatheredWrites {
  readonly #stream: Writable;
  /** Queued behind the write in progress. */
  #waiting: Uint8Array[] = [];
  /** The last queued block, to which small pieces are appended. */
  #block: Buffer | null = null;
  #filled = 0;
  #length = 0;
  #isBusy = false;
  #hasEnded = false;
  #taken: PromiseWithResolvers<void> | null = null;
  readonly #onTaken: () => void;

  /** `onTaken`: the stream has accepted data, or is closed. */
  constructor(stream: Writable, onTaken: () => void = () => {}) {
    this.#stream = stream;
    this.#onTaken = onTaken;
    // After 'close', a write in progress never completes.
    stream.once('close', () => this.#settle());
  }

  /** Bytes that the stream has not accepted yet. */
  get length(): number {
    return this.#length;
  }

  /** `bytes` must not change afterwards. */
  write(bytes: Uint8Array): void {
    if (this.#stream.destroyed) return;
    this.#length += bytes.length;
    if (this.#isBusy) this.#gather(bytes);
    else this.#send([bytes], bytes.length);
  }

  /** Ends the stream after all data is written. */
  end(): void {
    this.#hasEnded = true;
    if (!this.#isBusy) this.#stream.end();
  }

  /** Resolves when the stream has accepted all data, or is closed; the same promise until then. */
  whenTaken(): Promise<void> {
    if (!this.#isBusy) return Promise.resolve();
    this.#taken ??= Promise.withResolvers<void>();
    return this.#taken.promise;
  }

  #gather(bytes: Uint8Array): void {
    if (bytes.length >= LARGE_BYTES) {
      this.#closeBlock();
      this.#waiting.push(bytes);
      return;
    }
    for (let at = 0; at < bytes.length; ) {
      this.#block ??= Buffer.allocUnsafeSlow(BLOCK_BYTES);
      const part = bytes.subarray(at, at + BLOCK_BYTES - this.#filled);
      this.#block.set(part, this.#filled);
      this.#filled += part.length;
      at += part.length;
      if (this.#filled === BLOCK_BYTES) this.#closeBlock();
    }
  }

  #closeBlock(): void {
    if (this.#block !== null) this.#waiting.push(this.#block.subarray(0, this.#filled));
    this.#block = null;
    this.#filled = 0;
  }

  #send(pieces: readonly Uint8Array[], length: number): void {
    this.#isBusy = true;
    const done = () => {
      if (!this.#isBusy || this.#stream.destroyed) return;
      this.#length -= length;
      this.#goOn();
      this.#onTaken();
    };
    this.#stream.cork();
    for (const [at, piece] of pieces.entries()) {
      this.#stream.write(piece, at === pieces.length - 1 ? done : undefined);
    }
    this.#stream.uncork();
  }

  #goOn(): void {
    this.#closeBlock();
    const waiting = this.#waiting;
    this.#waiting = [];
    if (waiting.length === 0) this.#settle();
    else this.#send(waiting, this.#length);
  }

  /** All data was accepted, or the stream is closed. */
  #settle(): void {
    this.#isBusy = false;
    this.#waiting = [];
    this.#block = null;
    this.#filled = 0;
    this.#length = 0;
    if (this.#hasEnded && !this.#stream.destroyed) this.#stream.end();
    this.#taken?.resolve();
    this.#taken = null;
  }
}
