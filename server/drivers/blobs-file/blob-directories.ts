/** Creates blob files and syncs their directory entries. One object per worker thread. */
import { closeSync, constants, fsync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { isCode } from '../../platform/files.ts';
import { asFault, type BlobFault } from '../blob-frames/blob-fault.ts';
import { blobDirectory } from '../blob-frames/blob-format.ts';
import { isFullDisk } from './disk-fault.ts';

const fsyncAsync = promisify(fsync);
const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL;

interface SharedSync {
  running: Promise<void>;
  next: Promise<void> | null;
}

export class BlobDirectories {
  readonly #root: string;
  /** Directories whose own entry this thread has synced (at most 1,024). */
  readonly #durable = new Set<string>();
  readonly #syncs = new Map<string, SharedSync>();
  #failure: BlobFault | null = null;

  constructor(root: string) {
    this.#root = root;
  }

  /**
   * Creates a blob's file, and its directory if it is the first there. Returns the descriptor.
   * `direct`: with O_DIRECT.
   */
  create(name: string, direct: boolean): number {
    const directory = join(this.#root, blobDirectory(name));
    const path = join(directory, name);
    const flags = direct ? CREATE | constants.O_DIRECT : CREATE;
    try {
      return openSync(path, flags, 0o600);
    } catch (error) {
      if (!isCode(error, 'ENOENT')) throw error;
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      return openSync(path, flags, 0o600);
    }
  }

  /**
   * Resolves when the entry of a blob created before this call is on disk. Each thread syncs the
   * directory's own entry once, even if another thread created the directory: that one may not have
   * synced it yet.
   */
  async sync(name: string): Promise<void> {
    const directory = blobDirectory(name);
    const own = this.#share(join(this.#root, directory));
    if (this.#durable.has(directory)) return own;
    await Promise.all([own, this.#share(this.#root)]);
    this.#durable.add(directory);
  }

  /**
   * Callers that arrive while an fsync runs share the next one: the running one may have missed
   * their entry.
   */
  #share(path: string): Promise<void> {
    const shared = this.#syncs.get(path);
    if (shared === undefined) {
      const first: SharedSync = { running: this.#sync(path), next: null };
      this.#syncs.set(path, first);
      this.#follow(path, first);
      return first.running;
    }
    shared.next ??= shared.running.then(() => this.#sync(path));
    return shared.next;
  }

  #follow(path: string, shared: SharedSync): void {
    const advance = () => {
      if (shared.next === null) this.#syncs.delete(path);
      else {
        shared.running = shared.next;
        shared.next = null;
        this.#follow(path, shared);
      }
    };
    shared.running.then(advance, advance);
  }

  async #sync(path: string): Promise<void> {
    // The kernel reports a lost directory write once; a second fsync would succeed without meaning
    // anything.
    if (this.#failure !== null) throw this.#failure;
    const fd = open(path);
    try {
      await fsyncAsync(fd);
    } catch (error) {
      const fault = asFault(error, 'sync');
      if (!isFullDisk(fault)) this.#failure = fault;
      throw fault;
    } finally {
      closeSync(fd);
    }
  }
}

/** Without a descriptor nothing was lost: the next call may try again. */
function open(path: string): number {
  try {
    return openSync(path, 'r');
  } catch (error) {
    throw asFault(error, 'write');
  }
}
