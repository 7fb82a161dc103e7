/**
 * Checks which cloud the files belong to. metadata.db has the id of its cloud and counts its starts; a mark
 * file in each data folder and `master.key` name the same id, `cloud.json` id and count. Files of different
 * clouds are not started: the sweepers would remove everything without a row.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../platform/clock.ts';
import { StartupError } from '../platform/data-directory.ts';
import { isCode, writeDurableFile } from '../platform/files.ts';
import { newId } from '../platform/ids.ts';
import type { Awaitable, Metadata } from './metadata.ts';

const DATABASE = 'metadata.db';
const KEY = 'master.key';
/** Folder of an unfinished restore. */
const UNFINISHED = '.restoring';
/** Distinguishes an older copy of the database from the latest. */
const COUNT = 'cloud.json';
const MARK = '.cloud';
/** In a data directory whose metadata were moved to a database. */
export const MOVED_FILE = 'metadata-moved.json';
/** In a database whose metadata were moved back. */
export const MOVED_SETTING = 'metadata_moved';
/** Versions of November 2026 removed its mark after ten minutes; it is restored. */
const SWEPT = 'databases/kept';
/** Folders with a mark file: each may be a separate disk. Recovery points have their own identity. */
const MARKED = ['blobs', 'vms', 'images', 'databases', SWEPT];
/** Engine folders in clouds of versions that did not record which ones they had marked. */
const FIRST_ENGINES = ['sqlite', 'postgresql', 'mysql', 'mongodb'].map((name) => `databases/${name}`);

export interface IdentityDeps {
  readonly metadata: Metadata;
  readonly dataDir: string;
  readonly clock: Clock;
  /** Folders of the engines of databases, as `databases/sqlite`. */
  readonly engineFolders: readonly string[];
  /** True: `CLOUDLET_METADATA_URL` names the database, not the data directory. */
  readonly isElsewhere: boolean;
  /** False: a node of a cluster whose directory has no data of the cloud; default: true. */
  readonly hasData?: boolean;
  /** Releases the disk space reserved for a full disk. */
  readonly releaseReserve: () => Promise<unknown>;
}

/** Left in the former location of a cloud's metadata. */
export interface Moved {
  /** Current location of the metadata: the database, without a password, or the data directory. */
  readonly to: string;
  /** ms since 1970. */
  readonly at: number;
}

/** Throws StartupError if the metadata of the data directory were moved to a database. */
export function assertNotMoved(directory: string): void {
  const path = join(directory, MOVED_FILE);
  if (!existsSync(path)) return;
  const { to } = JSON.parse(readFileSync(path, 'utf8')) as Moved;
  throw new StartupError(
    `The metadata of this cloud is in ${to}: set CLOUDLET_METADATA_URL, or move it back with cloudlet migrate --to sqlite`,
  );
}

/**
 * Call before the database is opened: a new one beside the log of a lost one would be useless. Throws
 * StartupError if the directory has data of a cloud but no database.
 */
export function assertDatabaseThere(dataDir: string): void {
  const size = statSync(join(dataDir, DATABASE), { throwIfNoEntry: false })?.size;
  if (size !== undefined && size > 0) return;
  if (existsSync(join(dataDir, UNFINISHED))) {
    throw new StartupError(`A restore into ${dataDir} is incomplete: run it again to continue`);
  }
  if (dataIn(dataDir).length > 0) throw withoutFile(dataDir, size === undefined ? 'missing' : 'empty');
}

export class Identity {
  readonly #store: IdentityStore;
  readonly #dataDir: string;
  readonly #mark: IdentityMark;

  readonly #hasData: boolean;

  private constructor(store: IdentityStore, { dataDir, hasData = true }: IdentityDeps, mark: IdentityMark) {
    this.#store = store;
    this.#dataDir = dataDir;
    this.#hasData = hasData;
    this.#mark = mark;
  }

  /** Counts this start. Throws StartupError if the data folders do not belong to this database. */
  static async open(deps: IdentityDeps): Promise<Identity> {
    const { metadata, dataDir, clock, engineFolders, isElsewhere } = deps;
    const store = new IdentityStore(metadata);
    if (deps.hasData === false) return Identity.#join(store, deps);
    const stored = await store.find();
    if (stored === undefined && !(await store.wasUsed()) && dataIn(dataDir).length > 0) {
      throw isElsewhere ? withoutRows(dataDir) : withoutFile(dataDir, 'empty');
    }
    const before = stored ?? { cloud_id: newId('cld', clock), starts: 0 };
    assertNewest(dataDir, before);
    const marked = [...MARKED, ...engineFolders];
    const unmarked = before.starts > 0 ? unmarkedIn(dataDir, engineFolders) : [];
    for (const name of marked) if (!unmarked.includes(name)) assertBelongs(dataDir, name, before);
    for (const name of unmarked) await putMark(deps, join(dataDir, name, MARK), before);
    if (before.starts === 0) {
      // Every mark exists before the first count, even if a start is interrupted.
      await store.write(before);
      for (const name of marked) await putMark(deps, join(dataDir, name, MARK), before);
    }
    const mark = { cloud_id: before.cloud_id, starts: before.starts + 1 };
    await store.write(mark);
    await putMark(deps, join(dataDir, COUNT), { ...mark, engines: engineFolders });
    return new Identity(store, deps, mark);
  }

  /** Starts are counted by the node that has the data. */
  static async #join(store: IdentityStore, deps: IdentityDeps): Promise<Identity> {
    const { dataDir, clock } = deps;
    const own = readMark(join(dataDir, COUNT));
    await store.writeFirst({ cloud_id: own?.cloud_id ?? newId('cld', clock), starts: 0 });
    const { cloud_id } = (await store.find()) as IdentityMark;
    if (own !== null && own.cloud_id !== cloud_id) {
      throw new StartupError(
        `${dataDir} belongs to another cloud (${own.cloud_id}) than the database of CLOUDLET_METADATA_URL ` +
          `(${cloud_id}): use an empty directory, or name the database of this cloud`,
      );
    }
    const data = dataIn(dataDir).filter((name) => name !== KEY);
    if (own !== null && own.starts > 0 && data.length > 0) {
      throw new StartupError(
        `${dataDir} has ${data.join(', ')} of this cloud: start this node without CLOUDLET_COMPUTE=off, ` +
          'or use an empty directory with the same master.key',
      );
    }
    const mark = { cloud_id, starts: 0 };
    await putMark(deps, join(dataDir, COUNT), mark);
    return new Identity(store, deps, mark);
  }

  /** `cld-…` */
  get cloudId(): string {
    return this.#mark.cloud_id;
  }

  /** True while database and folder are still those that this process was started with. */
  async isOurs(folder: string): Promise<boolean> {
    const { cloud_id, starts } = this.#mark;
    try {
      if (!this.#hasData) return (await this.#store.find())?.cloud_id === cloud_id;
      const [row, mark] = [await this.#store.find(), readMark(join(this.#dataDir, folder, MARK))];
      return row?.cloud_id === cloud_id && row.starts === starts && mark?.cloud_id === cloud_id;
    } catch {
      return false;
    }
  }
}

/** Names of entries that only a started cloud leaves. */
function dataIn(dataDir: string): string[] {
  const hasFiles = (name: string) => {
    const path = join(dataDir, name);
    return existsSync(path) && readdirSync(path).length > 0;
  };
  const folders = ['blobs', 'vms', 'images', 'databases', 'recovery'].filter(hasFiles);
  return [...(existsSync(join(dataDir, KEY)) ? [KEY] : []), ...folders];
}

function withoutFile(dataDir: string, how: 'missing' | 'empty'): StartupError {
  return new StartupError(
    `${join(dataDir, DATABASE)} is ${how}, but ${contentOf(dataDir)}: put the file back, or ${RESTORE}`,
  );
}

function withoutRows(dataDir: string): StartupError {
  const file = join(dataDir, DATABASE);
  const isHere = existsSync(file) && !existsSync(join(dataDir, MOVED_FILE));
  return new StartupError(
    isHere
      ? `The database of CLOUDLET_METADATA_URL is empty, and ${file} is still in use: move its rows with ` +
          'cloudlet migrate --to postgresql, or start without CLOUDLET_METADATA_URL'
      : `The database of CLOUDLET_METADATA_URL is empty, but ${contentOf(dataDir)}: name the database of ` +
          `this cloud, or ${RESTORE}`,
  );
}

const RESTORE =
  'restore a recovery point into an empty directory (cloudlet recovery restore --help); ' +
  'for a new cloud use an empty directory';

function contentOf(dataDir: string): string {
  return `the directory has ${dataIn(dataDir).join(', ')} of a cloud`;
}

/** SQLite's errors for an unreadable file; from a worker only the message arrives. */
const UNREADABLE = /malformed|not a database|disk I\/O error/;

/** The error of a start, with a fix if the database cannot be read. */
export function explainUnreadable(dataDir: string, error: unknown): unknown {
  const { message } = error as Error;
  if (!(error instanceof Error) || error instanceof StartupError || !UNREADABLE.test(message)) return error;
  return new StartupError(
    `${join(dataDir, DATABASE)} cannot be read (${message}): check the disk, put the file back from a copy, ` +
      'or restore a recovery point into an empty directory (cloudlet recovery restore --help)',
  );
}

function assertNewest(dataDir: string, { cloud_id, starts }: IdentityMark): void {
  const path = join(dataDir, COUNT);
  const mark = readMark(path);
  if (mark === null || mark.cloud_id !== cloud_id || mark.starts <= starts) return;
  throw new StartupError(
    `${join(dataDir, DATABASE)} is older than the files beside it; starting would remove newer ` +
      'files: put back the newest copy, or restore a recovery point into an empty directory; to discard newer ' +
      `data, run: ${markCommand(path, { cloud_id, starts })}`,
  );
}

function assertBelongs(dataDir: string, name: string, mark: IdentityMark): void {
  const folder = join(dataDir, name);
  const found = readMark(join(folder, MARK));
  if (found === null) {
    // Restored, written by a version without marks, or interrupted in its first start.
    if (mark.starts === 0) return;
    const what = existsSync(folder) ? 'does not belong to this cloud' : 'is missing';
    throw new StartupError(
      `${folder} ${what}: mount its disk, or put it back; to continue with the current contents, ` +
        `run: mkdir -p ${folder} && ${markCommand(join(folder, MARK), mark)}`,
    );
  }
  if (found.cloud_id === mark.cloud_id) return;
  throw new StartupError(
    `${folder} belongs to another cloud (${found.cloud_id}) than ${join(dataDir, DATABASE)} (${mark.cloud_id}): ` +
      'put back the matching one, or restore a recovery point into an empty directory',
  );
}

/** Folders that may have no mark, and have none: the folder that was swept, and those of new engines. */
function unmarkedIn(dataDir: string, engineFolders: readonly string[]): string[] {
  const had = readMark(join(dataDir, COUNT))?.engines ?? FIRST_ENGINES;
  const isUnmarked = (name: string) => readMark(join(dataDir, name, MARK)) === null;
  const swept = existsSync(join(dataDir, SWEPT)) ? [SWEPT] : [];
  return [...swept, ...engineFolders.filter((name) => !had.includes(name))].filter(isUnmarked);
}

/** Writes a mark. On a full disk an older mark is sufficient. */
async function putMark({ releaseReserve }: IdentityDeps, path: string, mark: IdentityMark): Promise<void> {
  const write = () => {
    mkdirSync(join(path, '..'), { recursive: true, mode: 0o700 });
    writeMark(path, mark);
  };
  try {
    write();
  } catch (error) {
    if (!isFull(error)) throw error;
    await releaseReserve();
    try {
      write();
    } catch (again) {
      if (!isFull(again) || readMark(path) === null) throw again;
    }
  }
}

function isFull(error: unknown): boolean {
  return isCode(error, 'ENOSPC') || isCode(error, 'EDQUOT');
}

/** SQL of the cloud's identity. */
class IdentityStore {
  readonly #metadata: Metadata;

  constructor(metadata: Metadata) {
    this.#metadata = metadata;
  }

  find(): Awaitable<IdentityMark | undefined> {
    return this.#metadata.get<IdentityMark>('SELECT cloud_id, starts FROM identity WHERE id = 1');
  }

  /** True if a cloud was started on this database, also by a version without identity. */
  async wasUsed(): Promise<boolean> {
    return (await this.#metadata.get('SELECT 1 FROM secrets LIMIT 1')) !== undefined;
  }

  /** Does nothing if an identity exists. */
  async writeFirst({ cloud_id, starts }: IdentityMark): Promise<void> {
    const sql = 'INSERT INTO identity (id, cloud_id, starts) VALUES (1, ?, ?) ON CONFLICT (id) DO NOTHING';
    await this.#metadata.commit([{ sql, params: [cloud_id, starts] }]);
  }

  async write({ cloud_id, starts }: IdentityMark): Promise<void> {
    const sql = `INSERT INTO identity (id, cloud_id, starts) VALUES (1, ?, ?)
                 ON CONFLICT (id) DO UPDATE SET starts = excluded.starts`;
    await this.#metadata.commit([{ sql, params: [cloud_id, starts] }]);
  }
}

/** Mark file: the cloud that a folder belongs to. */
export interface IdentityMark {
  /** `cld-…` */
  readonly cloud_id: string;
  /** Number of starts of the cloud when it was written. */
  readonly starts: number;
  /** In COUNT: folders of engines that have a mark. */
  readonly engines?: readonly string[];
}

/** null: no such file. Throws an Error with a one-line message if it cannot be read. */
function readMark(path: string): IdentityMark | null {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (isCode(error, 'ENOENT')) return null;
    throw new Error(`${path} cannot be read: ${(error as Error).message}`, { cause: error });
  }
  const mark = parseMark(text);
  if (mark !== null) return mark;
  throw new Error(`${path} is damaged: restore it from a copy, or restore a recovery point`);
}

function parseMark(text: string): IdentityMark | null {
  try {
    const { cloud_id, starts, engines } = JSON.parse(text) as Partial<IdentityMark>;
    if (typeof cloud_id !== 'string' || typeof starts !== 'number') return null;
    return { cloud_id, starts, ...(Array.isArray(engines) ? { engines } : {}) };
  } catch {
    return null;
  }
}

/** Atomic and durable: after a crash, the file is the old or the new one. */
function writeMark(path: string, mark: IdentityMark): void {
  writeDurableFile(path, textOf(mark), 0o600);
}

/** The shell command that writes the mark. */
function markCommand(path: string, mark: IdentityMark): string {
  return `echo '${textOf(mark).trimEnd()}' > ${path}`;
}

function textOf(mark: IdentityMark): string {
  return `${JSON.stringify(mark)}\n`;
}
