/** A temporary folder for restored files: nothing in it must outlive a crash. */
import { mkdir, statfs } from 'node:fs/promises';
import { dirname, join, normalize } from 'node:path';
import type { RestoreFolder } from '../../recovery/points/restore.ts';

export class ScratchFolder implements RestoreFolder {
  readonly path: string;
  readonly #reserveBytes: number;

  /** `reserveBytes`: to be left free on its disk. */
  constructor(path: string, reserveBytes: number) {
    this.path = path;
    this.#reserveBytes = reserveBytes;
  }

  async freeBytes(): Promise<number> {
    const { bavail, bsize } = await statfs(this.path);
    return Math.max(0, bavail * bsize - this.#reserveBytes);
  }

  async isChecked(): Promise<boolean> {
    return true;
  }

  async begin(): Promise<void> {}

  async has(): Promise<boolean> {
    return false;
  }

  async preparePath(path: string): Promise<string> {
    if (path.startsWith('/') || normalize(path) !== path || path.startsWith('..')) {
      throw new Error(`the point contains a file outside the data directory: ${path}`);
    }
    const prepared = join(this.path, path);
    await mkdir(dirname(prepared), { recursive: true, mode: 0o700 });
    return prepared;
  }

  async sync(): Promise<void> {}
}
