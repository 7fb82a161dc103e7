/** Last dumps of deleted databases: one file each, named after the database. */
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { KeptDumps } from '../databases/creation/database-deleter.ts';
import { syncFolderAsync } from '../platform/files.ts';

/** Suffix of an unfinished dump. */
const PART = '.part';
/** Other files in the directory, such as the cloud's mark, are not dumps and stay unchanged. */
const DUMP = /^db-[^.]+$/;

export interface KeptDumpFilesOptions {
  readonly directory: string;
  /** Throws `out_of_space` when that many more bytes cannot be stored. */
  readonly assertSpace: (bytes: number) => void;
}

export class KeptDumpFiles implements KeptDumps {
  readonly #options: KeptDumpFilesOptions;

  private constructor(options: KeptDumpFilesOptions) {
    this.#options = options;
  }

  /** Creates the directory, and removes incomplete files. */
  static async open(options: KeptDumpFilesOptions): Promise<KeptDumpFiles> {
    await mkdir(options.directory, { recursive: true, mode: 0o700 });
    for (const name of await readdir(options.directory)) {
      if (name.endsWith(PART)) await rm(join(options.directory, name));
    }
    return new KeptDumpFiles(options);
  }

  /** Sizes of dumps in the directory, by database id. */
  static async sizes(directory: string): Promise<Map<string, number>> {
    const dumps = await KeptDumpFiles.open({ directory, assertSpace: () => {} });
    const ids = await dumps.list();
    return new Map(
      await Promise.all(ids.map(async (id) => [id, (await stat(join(directory, id))).size] as const)),
    );
  }

  async keep(databaseId: string, dump: Readable): Promise<number> {
    const { assertSpace } = this.#options;
    const path = this.#pathOf(databaseId);
    let bytes = 0;
    const counted = async function* (pieces: AsyncIterable<Uint8Array>) {
      for await (const piece of pieces) {
        assertSpace(piece.length);
        bytes += piece.length;
        yield piece;
      }
    };
    try {
      // Opened first: a pipeline that fails at once might not have created the file yet.
      const file = await open(path + PART, 'w', 0o600);
      await pipeline(dump, counted, file.createWriteStream({ flush: true }));
      await rename(path + PART, path);
    } catch (error) {
      dump.destroy();
      await rm(path + PART, { force: true });
      throw error;
    }
    await syncFolderAsync(this.#options.directory);
    return bytes;
  }

  async read(databaseId: string, take: (dump: Readable) => Promise<void>): Promise<void> {
    const file = await open(this.#pathOf(databaseId), 'r');
    const dump = file.createReadStream({ autoClose: false });
    try {
      await take(dump);
    } finally {
      dump.destroy();
      await file.close();
    }
  }

  async remove(databaseId: string): Promise<void> {
    await rm(this.#pathOf(databaseId), { force: true });
  }

  async list(): Promise<readonly string[]> {
    return (await readdir(this.#options.directory)).filter((name) => DUMP.test(name));
  }

  #pathOf(databaseId: string): string {
    return join(this.#options.directory, databaseId);
  }
}
