/** The files of the data directory. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isCode } from '../../platform/files.ts';
import type { DataFiles } from '../../recovery/points/sources.ts';

export class DirectoryDataFiles implements DataFiles {
  readonly #root: string;
  readonly images: string;

  /** `layout`: where other drivers keep theirs below `root`. */
  constructor(root: string, layout: Pick<DataFiles, 'images'>) {
    this.#root = root;
    this.images = layout.images;
  }

  pathOf(path: string): string {
    return join(this.#root, path);
  }

  async list(folder: string): Promise<readonly string[]> {
    return readdir(this.pathOf(folder)).catch((error: unknown) => {
      if (isCode(error, 'ENOENT')) return [];
      throw error;
    });
  }
}
