/** The data directory that a restore makes: written beside its place, and moved there when it is whole. */
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, normalize } from 'node:path';
import type { Entry } from '../../recovery/manifest.ts';
import type { RestoreFolder } from '../../recovery/restore.ts';

const POINT = '.restored-point';
const METADATA = ['metadata.db', 'metadata.db-wal', 'metadata.db-shm'];

export class RestoreDirectory implements RestoreFolder {
  /** Where the files are until finish(). */
  readonly path: string;
  readonly #to: string;

  private constructor(path: string, to: string) {
    this.path = path;
    this.#to = to;
  }

  /** Throws when there is anything at `to`, or a try to restore another point there. */
  static async demandEmpty(to: string): Promise<void> {
    const names = await readdir(to).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    });
    if (names.length > 0) throw new Error(`${to} is not empty: name a directory that is, or does not exist`);
  }

  /** Goes on with an earlier try for the same point. */
  static async open(to: string, pointId: string): Promise<RestoreDirectory> {
    const path = `${to}.restoring`;
    const begun = await readFile(join(path, POINT), 'utf8').catch(() => undefined);
    if (begun !== undefined && begun !== pointId) {
      throw new Error(`${path} holds a restore of ${begun} that was not finished: finish it, or remove it`);
    }
    await mkdir(path, { recursive: true, mode: 0o700 });
    // An earlier try may have got as far as to change it.
    for (const name of METADATA) await rm(join(path, name), { force: true });
    await writeFile(join(path, POINT), pointId, { mode: 0o600 });
    return new RestoreDirectory(path, to);
  }

  async has(path: string, sizeBytes: number): Promise<boolean> {
    const found = await stat(this.#inside(path)).catch(() => undefined);
    return found?.size === sizeBytes;
  }

  async write({ path, mode }: Entry, bytes: AsyncIterable<Uint8Array>): Promise<void> {
    const place = this.#inside(path);
    await mkdir(dirname(place), { recursive: true, mode: 0o700 });
    const unfinished = `${place}.unfinished`;
    const file = await open(unfinished, 'w', mode);
    try {
      let at = 0;
      for await (const piece of bytes) {
        // Disks are mostly holes, and stay so.
        if (!isZero(piece)) await file.write(piece, 0, piece.length, at);
        at += piece.length;
      }
      await file.truncate(at);
      await file.datasync();
    } finally {
      await file.close();
    }
    await rename(unfinished, place);
  }

  /** Each file was synced as it was written; what is left are their names. */
  async sync(): Promise<void> {
    const folder = await open(this.path, 'r');
    await folder.sync().finally(() => folder.close());
  }

  /** From now on it is a data directory. */
  async finish(): Promise<void> {
    await rm(join(this.path, POINT));
    await rm(this.#to, { recursive: true, force: true });
    await rename(this.path, this.#to);
    const parent = await open(dirname(this.#to), 'r');
    await parent.sync().finally(() => parent.close());
  }

  #inside(path: string): string {
    if (path.startsWith('/') || normalize(path) !== path || path.startsWith('..')) {
      throw new Error(`the point names a file outside the data directory: ${path}`);
    }
    return join(this.path, path);
  }
}

const ZEROS = Buffer.alloc(2 ** 20);

function isZero(bytes: Uint8Array): boolean {
  return bytes.length <= ZEROS.length && ZEROS.compare(bytes, 0, bytes.length, 0, bytes.length) === 0;
}
