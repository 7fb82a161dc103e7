/** One blob file being written on a worker thread. */
import { close, fdatasync } from 'node:fs';
import { promisify } from 'node:util';
import { detachBuffer } from '../../platform/buffers.ts';
import { asFault, BlobFault } from '../blob-frames/blob-fault.ts';
import { CHUNK_BYTES } from '../blob-frames/blob-format.ts';
import type { FrameCodec } from '../blob-frames/frame-codec.ts';
import type { Appender } from './appender.ts';

const fdatasyncAsync = promisify(fdatasync);
const closeAsync = promisify(close);

/** Unsynced bytes after which a sync is begun in the background, so that the last one is short. */
const EARLY_SYNC_BYTES = 8 * 2 ** 20;
/** Syncs use libuv's few threads, which DNS, password hashing and other files need too. */
let earlySyncRunning = false;

export class FrameWriter {
  readonly #fd: number;
  readonly #file: Appender;
  readonly #codec: FrameCodec;
  #chunks = 0;
  #syncedBytes = 0;
  #appending: Promise<void> = Promise.resolve();
  #syncing: Promise<void> = Promise.resolve();
  #failure: BlobFault | null = null;
  #closing: Promise<void> | null = null;

  /** Closes `fd`, which `file` writes to, at the end. */
  constructor(fd: number, file: Appender, codec: FrameCodec) {
    this.#fd = fd;
    this.#file = file;
    this.#codec = codec;
  }

  /**
   * Seals and writes `plain`: whole chunks, unless `last`. Calls run in turn; `plain` may change
   * when it resolves. Rejects with the BlobFault of this or any earlier call.
   */
  append(plain: Uint8Array, last: boolean): Promise<void> {
    const done = this.#appending.then(() => this.#append(plain, last));
    this.#appending = done.catch(() => {});
    return done;
  }

  async #append(plain: Uint8Array, last: boolean): Promise<void> {
    if (this.#failure !== null) throw this.#failure;
    const count = Math.max(1, Math.ceil(plain.length / CHUNK_BYTES));
    const parts: Uint8Array[] = [];
    for (let i = 0; i < count; i++) {
      const chunk = plain.subarray(i * CHUNK_BYTES, (i + 1) * CHUNK_BYTES);
      const position = { index: this.#chunks + i, last: last && i === count - 1 };
      parts.push(...this.#codec.seal(chunk, position));
    }
    this.#chunks += count;
    try {
      await this.#file.append(parts);
      if (last) await this.#file.end();
    } catch (error) {
      throw this.#fail(asFault(error, 'write'));
    }
    for (const part of parts) detachBuffer(part);
    if (!last) this.#syncEarly();
  }

  /** Syncs the data. An fsync is never tried again: after an error the kernel calls lost pages clean. */
  async sync(): Promise<void> {
    await this.#syncing;
    if (this.#closing !== null) throw new BlobFault({ kind: 'write', code: '', message: 'discarded' });
    if (this.#failure !== null) throw this.#failure;
    this.#syncing = this.#sync();
    await this.#syncing;
    if (this.#failure !== null) throw this.#failure;
  }

  /** Closes the file once it is unused: its descriptor may soon belong to another file. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#appending;
    await this.#file.drain();
    let awaited: Promise<void>;
    do {
      awaited = this.#syncing;
      await awaited;
    } while (awaited !== this.#syncing);
    await closeAsync(this.#fd);
  }

  #syncEarly(): void {
    const { cachedBytes } = this.#file;
    if (cachedBytes - this.#syncedBytes < EARLY_SYNC_BYTES || earlySyncRunning) return;
    this.#syncedBytes = cachedBytes;
    earlySyncRunning = true;
    this.#syncing = this.#sync().finally(() => {
      earlySyncRunning = false;
    });
  }

  /** Never rejects, because there may be no waiter: the error is kept for the next call. */
  async #sync(): Promise<void> {
    try {
      await fdatasyncAsync(this.#fd);
    } catch (error) {
      this.#fail(asFault(error, 'sync'));
    }
  }

  #fail(fault: BlobFault): BlobFault {
    this.#failure ??= fault;
    return this.#failure;
  }
}
