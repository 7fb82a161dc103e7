/**
 * The data directory created by a restore. Files are written to a folder in it and moved out when
 * all are complete, the metadata last: without it there is no cloud. It may be a mount point.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, stat, statfs } from 'node:fs/promises';
import { dirname, join, normalize } from 'node:path';
import { promisify } from 'node:util';
import { otherOwnerOf } from '../../platform/data-directory.ts';
import { syncFolderAsync, writeDurableFileAsync } from '../../platform/files.ts';
import { hostBootId } from '../../platform/host/host-facts.ts';
import type { RestoreFolder } from '../../recovery/points/restore.ts';

const run = promisify(execFile);
const FOLDER = '.restoring';
/** Memory for the following start, besides the restore's own limit. */
const HEADROOM_BYTES = 64 * 2 ** 20;
const METADATA = 'metadata.db';
const METADATA_FILES = [METADATA, `${METADATA}-wal`, `${METADATA}-shm`];
/** Entries of an empty file system. */
const NOTHING = ['lost+found'];

/** Which point is restored here, and in which boot of the host: until the end, files are not synced. */
interface Note {
  readonly pointId: string;
  readonly boot: string;
  /** All pieces were found intact before the first was written. */
  readonly isChecked: boolean;
  readonly isWhole: boolean;
}

export class RestoreDirectory implements RestoreFolder {
  /** Folder of the files until finish(). */
  readonly path: string;
  readonly #to: string;
  /** Folders. */
  readonly #made = new Set<string>();

  /** Throws if `to` contains anything but an unfinished restore of the same point. */
  static async open(to: string): Promise<RestoreDirectory> {
    const other = existsSync(to) ? otherOwnerOf(to) : null;
    if (other !== null) throw new Error(`${other.detail}: ${other.fix}`);
    const directory = new RestoreDirectory(to);
    const names = (await namesIn(to)).filter((name) => !NOTHING.includes(name));
    const isMoving = (await directory.#note())?.isWhole === true;
    if (isMoving || names.every((name) => name === FOLDER)) return directory;
    throw new Error(`${to} is not empty: use an empty or a new directory`);
  }

  private constructor(to: string) {
    this.path = join(to, FOLDER);
    this.#to = to;
  }

  async freeBytes(): Promise<number> {
    let path = this.#to;
    while ((await stat(path).catch(() => undefined)) === undefined) path = dirname(path);
    const { bavail, bsize } = await statfs(path);
    return Math.max(0, bavail * bsize - HEADROOM_BYTES);
  }

  async isChecked(pointId: string): Promise<boolean> {
    const note = await this.#note();
    return note?.pointId === pointId && note.isChecked && note.boot === hostBootId();
  }

  /** True when all files were written, and an earlier attempt was about to move them into place. */
  async isWhole(): Promise<boolean> {
    return (await this.#note())?.isWhole === true;
  }

  async begin(pointId: string, isChecked: boolean): Promise<void> {
    const note = await this.#note();
    if (note !== undefined && note.pointId !== pointId) {
      throw new Error(
        `${this.path} contains an unfinished restore of ${note.pointId}: finish the restore, or remove the directory`,
      );
    }
    const boot = hostBootId();
    if (note?.boot !== boot) await rm(this.path, { recursive: true, force: true });
    this.#made.clear();
    await mkdir(this.path, { recursive: true, mode: 0o700 });
    // An earlier attempt may have changed it already.
    for (const name of METADATA_FILES) await rm(join(this.path, name), { force: true });
    await this.#write({ pointId, boot, isChecked, isWhole: false });
  }

  async has(path: string, sizeBytes: number): Promise<boolean> {
    const found = await stat(this.#inside(path)).catch(() => undefined);
    return found?.size === sizeBytes;
  }

  async preparePath(path: string): Promise<string> {
    const prepared = this.#inside(path);
    await this.#makeFolder(dirname(prepared));
    return prepared;
  }

  /** One syncfs(2) for all files. */
  async sync(): Promise<void> {
    await run('sync', ['-f', this.path]);
  }

  /** From now on it is a data directory. */
  async finish(): Promise<void> {
    const note = await this.#note();
    if (note === undefined) throw new Error(`there is no restore in ${this.#to}`);
    await this.sync();
    await this.#write({ ...note, isWhole: true });
    await this.sync();
    const names = (await readdir(this.path)).filter((name) => name !== NOTE);
    const last = (name: string) => Number(METADATA_FILES.includes(name)) + Number(name === METADATA);
    for (const name of names.sort((a, b) => last(a) - last(b))) {
      await rename(join(this.path, name), join(this.#to, name));
    }
    await rm(this.path, { recursive: true });
    await syncFolderAsync(this.#to);
  }

  async #note(): Promise<Note | undefined> {
    const text = await readFile(join(this.path, NOTE), 'utf8').catch(() => undefined);
    if (text === undefined) return undefined;
    try {
      return JSON.parse(text) as Note;
    } catch (error) {
      const what = `${join(this.path, NOTE)} is damaged, so the progress of this restore is unknown`;
      throw new Error(`${what}: empty ${this.#to}, and restore again`, { cause: error });
    }
  }

  async #write(note: Note): Promise<void> {
    await writeDurableFileAsync(join(this.path, NOTE), JSON.stringify(note), 0o600);
  }

  async #makeFolder(path: string): Promise<void> {
    if (this.#made.has(path)) return;
    await mkdir(path, { recursive: true, mode: 0o700 });
    this.#made.add(path);
  }

  #inside(path: string): string {
    if (path.startsWith('/') || normalize(path) !== path || path.startsWith('..')) {
      throw new Error(`the point contains a file outside the data directory: ${path}`);
    }
    return join(this.path, path);
  }
}

const NOTE = '.point';
async function namesIn(path: string): Promise<string[]> {
  return readdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error.code === 'ENOTDIR' ? new Error(`${path} is not a directory`) : error;
  });
}
