/** Bytes stored in an unnamed file, which disappears with this process however it ends. */
import { close, openSync, read, rmSync, write } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Spool } from '../calls/account-export.ts';
import { randomName } from '../platform/ids.ts';

const [readAt, writeAt, closeFile] = [promisify(read), promisify(write), promisify(close)];

interface SpoolFilesOptions {
  readonly directory: string;
  readonly assertSpace: (bytes: number) => void;
}

/** Kept in memory first: most spools never grow larger. */
const BLOCK_BYTES = 64 * 1024;

/** `assertSpace` throws `out_of_space` when that many more bytes cannot be stored. */
export function spoolsIn(directory: string, assertSpace: (bytes: number) => void): () => Spool {
  return () => new SpoolFile({ directory, assertSpace });
}

class SpoolFile implements Spool {
  readonly #options: SpoolFilesOptions;
  #fd: number | undefined;
  #parts: Uint8Array[] = [];
  #partBytes = 0;
  #written = 0;

  constructor(options: SpoolFilesOptions) {
    this.#options = options;
  }

  async append(bytes: Uint8Array): Promise<void> {
    this.#parts.push(Uint8Array.from(bytes));
    this.#partBytes += bytes.length;
    if (this.#partBytes >= BLOCK_BYTES) await this.#flush();
  }

  async *bytes(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < this.#written; ) {
      const block = Buffer.allocUnsafe(Math.min(BLOCK_BYTES, this.#written - at));
      const { bytesRead } = await readAt(this.#fd as number, block, 0, block.length, at);
      if (bytesRead === 0) throw new Error('a spool file was cut short');
      at += bytesRead;
      yield block.subarray(0, bytesRead);
    }
    if (this.#partBytes > 0) yield Buffer.concat(this.#parts);
  }

  async close(): Promise<void> {
    const fd = this.#fd;
    this.#fd = undefined;
    [this.#parts, this.#partBytes, this.#written] = [[], 0, 0];
    if (fd !== undefined) await closeFile(fd);
  }

  async #flush(): Promise<void> {
    const { directory, assertSpace } = this.#options;
    const block = Buffer.concat(this.#parts);
    [this.#parts, this.#partBytes] = [[], 0];
    assertSpace(block.length);
    if (this.#fd === undefined) {
      const path = join(directory, `.spool-${randomName(12)}`);
      this.#fd = openSync(path, 'wx+', 0o600);
      rmSync(path);
    }
    for (let at = 0; at < block.length; ) {
      const { bytesWritten } = await writeAt(this.#fd, block, at, block.length - at, this.#written);
      at += bytesWritten;
      this.#written += bytesWritten;
    }
  }
}
