/** Reads files of the data directory. Nothing is followed when it is a link: guests own some of them. */
import { constants } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { DataFiles } from '../../recovery/sources.ts';

const READ_BYTES = 2 ** 20;

export class DirectoryDataFiles implements DataFiles {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  async open(path: string): Promise<AsyncIterable<Uint8Array> | undefined> {
    try {
      const file = await open(join(this.#root, path), constants.O_RDONLY | constants.O_NOFOLLOW);
      return file.createReadStream({ highWaterMark: READ_BYTES });
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  async list(folder: string): Promise<readonly string[]> {
    return readdir(join(this.#root, folder)).catch((error: unknown) => {
      if (isMissing(error)) return [];
      throw error;
    });
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
