/** Two ways to append to a file. */
import { ftruncate, write, writevSync } from 'node:fs';
import { promisify } from 'node:util';
import { type AlignedAreas, BLOCK_BYTES } from './aligned-areas.ts';

const writeAsync = promisify(write);
const ftruncateAsync = promisify(ftruncate);

/** Appends to one file for one caller, who awaits each call. System errors are passed on. */
export interface Appender {
  /** Bytes in the page cache whose write may not have begun. */
  readonly cachedBytes: number;
  /** At most one slot in frames. `parts` may be reused when it resolves. */
  append(parts: readonly Uint8Array[]): Promise<void>;
  /** Resolves when the file has all bytes and no others. Nothing may be appended afterwards. */
  end(): Promise<void>;
  /** Resolves when the descriptor is no longer used. */
  drain(): Promise<void>;
}

/** Appends through the page cache: for small files, and if direct I/O is unavailable. */
export class CachedAppender implements Appender {
  readonly #fd: number;
  #position = 0;

  constructor(fd: number) {
    this.#fd = fd;
  }

  get cachedBytes(): number {
    return this.#position;
  }

  async append(parts: readonly Uint8Array[]): Promise<void> {
    let rest = parts;
    while (rest.length > 0) {
      let written = writevSync(this.#fd, rest, this.#position);
      this.#position += written;
      // A short write means that the disk is filling; the next write reports it.
      const left: Uint8Array[] = [];
      for (const part of rest) {
        if (written < part.length) left.push(part.subarray(written));
        written = Math.max(0, written - part.length);
      }
      rest = left;
    }
  }

  async end(): Promise<void> {}
  async drain(): Promise<void> {}
}

/**
 * Bypasses the page cache, in whole blocks. While one area is being written the next is filled. An
 * error is reported by the next call.
 */
export class DirectAppender implements Appender {
  readonly cachedBytes = 0;
  readonly #fd: number;
  readonly #areas: AlignedAreas;
  /** Bytes that do not fill a block yet. */
  readonly #rest = Buffer.alloc(BLOCK_BYTES);
  #restBytes = 0;
  #position = 0;
  #writing: Promise<void> = Promise.resolve();

  /** The file was opened with O_DIRECT. */
  constructor(fd: number, areas: AlignedAreas) {
    this.#fd = fd;
    this.#areas = areas;
  }

  async append(parts: readonly Uint8Array[]): Promise<void> {
    const area = await this.#areas.take();
    let filled = this.#rest.copy(area, 0, 0, this.#restBytes);
    for (const { buffer, byteOffset, byteLength } of parts) {
      // Not `set`: between shared and own memory it goes byte by byte.
      filled += Buffer.from(buffer, byteOffset, byteLength).copy(area, filled);
    }
    const whole = filled - (filled % BLOCK_BYTES);
    this.#restBytes = area.copy(this.#rest, 0, whole, filled);
    await this.#send(area, whole);
  }

  async end(): Promise<void> {
    if (this.#restBytes > 0) {
      const area = await this.#areas.take();
      this.#rest.copy(area, 0, 0, this.#restBytes);
      area.fill(0, this.#restBytes, BLOCK_BYTES);
      await this.#send(area, BLOCK_BYTES);
    }
    await this.#writing;
    if (this.#restBytes > 0) {
      await ftruncateAsync(this.#fd, this.#position - BLOCK_BYTES + this.#restBytes);
    }
  }

  async drain(): Promise<void> {
    await this.#writing.catch(() => {});
  }

  /** Resolves when the previous write has ended and this one has begun; the area is released after it. */
  async #send(area: Buffer, bytes: number): Promise<void> {
    try {
      await this.#writing;
    } catch (error) {
      this.#areas.give(area);
      throw error;
    }
    this.#writing = this.#write(area, bytes, this.#position).finally(() => this.#areas.give(area));
    this.#writing.catch(() => {});
    this.#position += bytes;
  }

  async #write(area: Buffer, bytes: number, position: number): Promise<void> {
    let written = 0;
    while (written < bytes) {
      const { bytesWritten } = await writeAsync(this.#fd, area, written, bytes - written, position + written);
      written += bytesWritten;
    }
  }
}
