/** Recovery points in a directory: another disk, NFS, or, if there is nothing better, the data directory. */
import { execFile } from 'node:child_process';
import type { Dirent } from 'node:fs';
import {
  access,
  constants,
  type FileHandle,
  link,
  mkdir,
  open,
  opendir,
  readFile,
  rename,
  rm,
  stat,
  statfs,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { AppError } from '../../platform/errors.ts';
import { codeOf, isCode, syncFolderAsync } from '../../platform/files.ts';
import { randomName } from '../../platform/ids.ts';
import { programFile } from '../../platform/program-files.ts';
import type { PieceStore, Target } from '../../recovery/repository/target.ts';
import { UNFINISHED, unreadable } from '../recovery-pieces/file-errors.ts';
import { PieceThreads } from '../recovery-pieces/piece-threads.ts';

const run = promisify(execFile);

export class DirectoryTarget implements Target {
  readonly removal = 'gone';
  readonly lockDays = 0;
  readonly location: string;
  readonly #made = new Set<string>();
  /** Worker threads by key: starting a thread takes longer than most of its jobs. */
  readonly #pieces = new Map<string, PieceThreads>();

  /** `location`: absolute path; the directory is created when missing. */
  constructor(location: string) {
    this.location = location;
  }

  pieces(key: Uint8Array): PieceStore {
    const id = Buffer.from(key).toString('hex');
    const made =
      this.#pieces.get(id) ??
      new PieceThreads({
        thread: programFile('drivers/recovery-directory/directory-thread'),
        setup: () => ({ location: this.location }),
        key,
        explain: (cause) => this.#explain(cause),
      });
    this.#pieces.set(id, made);
    return made;
  }

  /** Describes the directory, or the nearest existing parent. */
  async inspect(dataDir: string): Promise<DirectorySpace> {
    const existing = await nearest(this.location);
    await access(existing, constants.W_OK | constants.X_OK);
    const [target, data, fileSystem] = await Promise.all([
      stat(existing),
      stat(await nearest(dataDir)),
      statfs(existing),
    ]);
    return { isOnDataDisk: target.dev === data.dev, freeBytes: fileSystem.bavail * fileSystem.bsize };
  }

  put(name: string, bytes: Uint8Array): Promise<void> {
    return this.#write(name, bytes, async () => {});
  }

  async putSynced(name: string, bytes: Uint8Array): Promise<void> {
    await this.#write(name, bytes, (file) => file.sync());
    try {
      // Syncs the folder, which may be new, for the file's name.
      for (const folder of [dirname(join(this.location, name)), this.location]) await syncFolderAsync(folder);
    } catch (error) {
      throw this.#explain(error);
    }
  }

  async create(name: string, bytes: Uint8Array): Promise<boolean> {
    const path = join(this.location, name);
    const unfinished = `${path}.${randomName(8)}${UNFINISHED}`;
    // A different disk may be mounted here since the previous attempt.
    this.#made.clear();
    try {
      await this.#makeFolder(dirname(path));
      await writeFile(unfinished, bytes, { flag: 'wx', mode: 0o600 });
      await linkOrWrite(unfinished, path, bytes);
      return true;
    } catch (error) {
      if (isCode(error, 'EEXIST')) return false;
      throw this.#explain(error);
    } finally {
      await rm(unfinished, { force: true }).catch(() => {});
    }
  }

  async get(name: string): Promise<Buffer | undefined> {
    try {
      return await readFile(join(this.location, name));
    } catch (error) {
      if (isCode(error, 'ENOENT')) return undefined;
      throw unreadable(name, error) ?? error;
    }
  }

  async has(name: string): Promise<boolean> {
    return access(join(this.location, name)).then(
      () => true,
      () => false,
    );
  }

  async *list(folder: string): AsyncGenerator<string> {
    for await (const entry of entriesOf(join(this.location, folder))) {
      const name = `${folder}/${entry.name}`;
      if (entry.isDirectory()) yield* this.list(name);
      else if (!entry.name.endsWith(UNFINISHED)) yield name;
    }
  }

  async remove(name: string): Promise<number> {
    const path = join(this.location, name);
    try {
      const { size } = await stat(path);
      await unlink(path);
      return size;
    } catch (error) {
      if (isCode(error, 'ENOENT')) return 0;
      throw this.#explain(error);
    }
  }

  async removeUnfinished(folder: string): Promise<number> {
    let count = 0;
    for await (const entry of entriesOf(join(this.location, folder))) {
      const name = `${folder}/${entry.name}`;
      if (entry.isDirectory()) count += await this.removeUnfinished(name);
      else if (entry.name.endsWith(UNFINISHED)) {
        await this.remove(name);
        count++;
      }
    }
    return count;
  }

  /** One syncfs(2) for all files, much cheaper than an fsync of each; reports write errors. */
  async sync(): Promise<void> {
    try {
      await this.#makeFolder(this.location);
      await run('sync', ['-f', this.location]);
    } catch (error) {
      throw this.#explain(error);
    }
  }

  async renewLock(): Promise<void> {}

  hurry(): void {
    // A call of the file system cannot be cancelled.
  }

  async #write(
    name: string,
    bytes: Uint8Array,
    beforeRename: (file: FileHandle) => Promise<void>,
  ): Promise<void> {
    const path = join(this.location, name);
    const unfinished = `${path}.${randomName(8)}${UNFINISHED}`;
    try {
      await this.#makeFolder(dirname(path));
      const file = await open(unfinished, 'wx', 0o600);
      try {
        await file.writeFile(bytes);
        await beforeRename(file);
      } finally {
        await file.close();
      }
      await rename(unfinished, path);
    } catch (error) {
      await rm(unfinished, { force: true }).catch(() => {});
      throw this.#explain(error);
    }
  }

  async #makeFolder(path: string): Promise<void> {
    if (this.#made.has(path)) return;
    await mkdir(path, { recursive: true, mode: 0o700 });
    this.#made.add(path);
  }

  #explain(cause: unknown): unknown {
    if (isCode(cause, 'ENOSPC') || isCode(cause, 'EDQUOT')) {
      return new AppError('out_of_space', `The recovery target is full: ${this.location}`, {
        hint: 'Free space there, or set CLOUDLET_RECOVERY_TARGET to another directory',
        cause,
      });
    }
    return new AppError(
      'target_unavailable',
      `${this.location} cannot be written: ${codeOf(cause) ?? 'I/O error'}`,
      { cause },
    );
  }
}

/**
 * Names a written file, in one step: a process that is killed leaves no empty file under that name.
 * A file system without hard links (FAT, some network shares) needs two steps. Throws EEXIST.
 */
async function linkOrWrite(written: string, path: string, bytes: Uint8Array): Promise<void> {
  try {
    await link(written, path);
  } catch (error) {
    if (!['EPERM', 'ENOTSUP', 'ENOSYS', 'EOPNOTSUPP'].some((code) => isCode(error, code))) throw error;
    await writeFile(path, bytes, { flag: 'wx', mode: 0o600 });
  }
}

async function* entriesOf(path: string): AsyncGenerator<Dirent> {
  try {
    yield* await opendir(path);
  } catch (error) {
    if (!isCode(error, 'ENOENT')) throw error;
  }
}

interface DirectorySpace {
  readonly isOnDataDisk: boolean;
  readonly freeBytes: number;
}

async function nearest(path: string): Promise<string> {
  try {
    await access(path);
    return path;
  } catch (error) {
    if (!isCode(error, 'ENOENT') || dirname(path) === path) throw error;
    return nearest(dirname(path));
  }
}
