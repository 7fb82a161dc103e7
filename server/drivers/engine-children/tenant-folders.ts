/**
 * Folders of databases that children serve: `<name>/`, owned by the user of its child, and beside
 * it `<name>.json`, its access; `<name>.load/`, an uploaded file that is not in use yet;
 * `<name>.old/`, the folder that such a file is about to replace. Files `test.…` in it are not part
 * of the database: they remain when it is replaced.
 */
import { constants, createReadStream, createWriteStream, readdirSync } from 'node:fs';
import * as fs from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Access } from '../../databases/engine.ts';
import { AppError, hostDiskFull } from '../../platform/errors.ts';
import { syncFolderAsync, unlessMissing, writeDurableFileAsync } from '../../platform/files.ts';
import { openOwn, removeTree } from '../host-process/foreign-files.ts';
import { FILE } from './children.ts';

const NAME = /^d_[a-z0-9]{16}$/;
const BESIDE = /^test\./;

export class TenantFolders {
  readonly #root: string;

  /** `root` need not exist yet. */
  constructor(root: string) {
    this.#root = root;
  }

  folder(name: string): string {
    return join(this.#root, name);
  }

  staging(name: string): string {
    return join(this.#root, `${name}.load`);
  }

  /** Whether there is any database. */
  isUsed(): boolean {
    try {
      return readdirSync(this.#root).some((entry) => NAME.test(entry));
    } catch {
      return false;
    }
  }

  /** Creates the root, and finishes an interrupted swap(). */
  async prepare(): Promise<void> {
    await fs.mkdir(this.#root, { recursive: true, mode: 0o700 });
    for (const entry of await fs.readdir(this.#root)) {
      const name = entry.replace(/\.(?:old|load).*$/, '');
      if (entry === `${name}.old` && !(await isThere(this.folder(name)))) {
        await fs.rename(join(this.#root, entry), this.folder(name));
      } else if (entry !== name) {
        if (entry === `${name}.old`) await this.#keepTests(name);
        await removeTree(join(this.#root, entry));
      }
    }
  }

  /** Creates an empty database owned by that user; keeps an existing one. */
  async make(name: string, uid: number | null): Promise<void> {
    const folder = this.folder(name);
    await fs.mkdir(folder, { recursive: true, mode: 0o700 });
    if (!(await isThere(join(folder, FILE)))) {
      await fs.writeFile(join(folder, FILE), '', { mode: 0o600, flag: 'wx' });
    }
    await this.give(folder, uid);
    await syncFolderAsync(folder);
    await syncFolderAsync(this.#root);
  }

  /** The missing part of a database, for people; null: none. */
  async missing(name: string): Promise<string | null> {
    if (!(await isThere(this.folder(name)))) return 'its folder is missing';
    return (await isThere(join(this.folder(name), FILE))) ? null : 'its file is missing';
  }

  /** An empty folder for a file that replaces the database. */
  async stage(name: string): Promise<string> {
    await this.unstage(name);
    await fs.mkdir(this.staging(name), { mode: 0o700 });
    return this.staging(name);
  }

  /** Copies a database that nobody has open, with the log of a killed process. Throws `host_disk_full`. */
  async copyToStage(name: string, uid: number | null): Promise<void> {
    const [from, to] = [this.folder(name), this.staging(name)];
    const files = (await fs.readdir(from)).filter((file) => file === FILE || file === `${FILE}-wal`);
    for (const file of files) {
      const source = createReadStream('', { fd: openOwn(from, file, constants.O_RDONLY) });
      const target = createWriteStream(join(to, file), { mode: 0o600, flags: 'wx', flush: true });
      await pipeline(source, target).catch((error) => {
        throw error.code === 'ENOSPC' ? hostDiskFull(error) : error;
      });
      await this.give(to, uid, file);
    }
  }

  async unstage(name: string): Promise<void> {
    await removeTree(this.staging(name));
  }

  /** Transfers a folder with that file to a user. */
  async give(folder: string, uid: number | null, file = FILE): Promise<void> {
    if (uid === null) return;
    await fs.lchown(join(folder, file), uid, uid);
    await fs.lchown(folder, uid, uid);
  }

  /**
   * Gives a database to its user if another one owns it: after a change of the base user id, or a copy
   * without owners.
   */
  async settle(name: string, uid: number | null): Promise<void> {
    const folder = this.folder(name);
    if (uid === null || (await fs.lstat(folder)).uid === uid) return;
    for (const file of await fs.readdir(folder)) await fs.lchown(join(folder, file), uid, uid);
    await fs.lchown(folder, uid, uid);
  }

  /** Replaces the folder with the staged one. Both must be closed. */
  async swap(name: string): Promise<void> {
    await syncFolderAsync(this.staging(name));
    // A missing folder has nothing to keep.
    await fs.rename(this.folder(name), `${this.folder(name)}.old`).catch(unlessMissing);
    await fs.rename(this.staging(name), this.folder(name));
    await syncFolderAsync(this.#root);
    await this.#keepTests(name);
    await removeTree(`${this.folder(name)}.old`);
  }

  /** Moves the databases for tests out of the folder that was replaced. */
  async #keepTests(name: string): Promise<void> {
    const old = `${this.folder(name)}.old`;
    const files = ((await fs.readdir(old).catch(unlessMissing)) ?? []).filter((file) => BESIDE.test(file));
    for (const file of files) await fs.rename(join(old, file), join(this.folder(name), file));
    if (files.length > 0) await syncFolderAsync(this.folder(name));
  }

  /** Includes staged and old folders. */
  async remove(name: string): Promise<void> {
    for (const end of ['', '.old', '.load', '.json']) await removeTree(`${this.folder(name)}${end}`);
  }

  /** An empty read-only folder, for processes without a database. */
  async empty(): Promise<string> {
    const folder = join(this.#root, '.empty');
    await fs.mkdir(folder, { recursive: true });
    await fs.chmod(folder, 0o555);
    return folder;
  }

  /** The user of each database's folder. */
  async owners(): Promise<[name: string, uid: number][]> {
    const owners: [string, number][] = [];
    for (const name of await this.list()) {
      const found = await fs.lstat(this.folder(name)).catch(unlessMissing);
      if (found !== undefined) owners.push([name, found.uid]);
    }
    return owners;
  }

  async list(): Promise<string[]> {
    const entries = await fs.readdir(this.#root).catch(unlessMissing);
    return (entries ?? []).filter((entry) => NAME.test(entry));
  }

  /** Size on disk, including the log; 0: no database. */
  async sizeBytes(name: string): Promise<number> {
    const files = (await fs.readdir(this.folder(name)).catch(unlessMissing)) ?? [];
    const counted = files.filter((file) => file === FILE || file === `${FILE}-wal` || BESIDE.test(file));
    const sizes = counted.map(async (file) => {
      const found = await fs.lstat(join(this.folder(name), file)).catch(unlessMissing);
      return found?.size ?? 0;
    });
    return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
  }

  /** Throws `engine_unavailable` if the access is unknown, because then nobody may be admitted. */
  async access(name: string): Promise<Access> {
    const text = await fs.readFile(`${this.folder(name)}.json`, 'utf8').catch(unlessMissing);
    if (text === undefined) return 'full';
    const found = /^\{"access":"(full|read_only|none)"\}$/.exec(text)?.[1];
    if (found !== undefined) return found as Access;
    throw new AppError('engine_unavailable', 'The access file of the database is damaged', {
      hint: `Ask the operator to remove ${name}.json next to the folder of the database; its user can then connect again`,
    });
  }

  async setAccess(name: string, access: Access): Promise<void> {
    const path = `${this.folder(name)}.json`;
    if (access !== 'full') return writeDurableFileAsync(path, JSON.stringify({ access }), 0o600);
    await fs.rm(path, { force: true });
    await syncFolderAsync(this.#root);
  }
}

async function isThere(path: string): Promise<boolean> {
  return (await fs.lstat(path).catch(unlessMissing)) !== undefined;
}
