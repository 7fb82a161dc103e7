/**
 * Recovery points that are open beside the live cloud, so that owners can restore single resources.
 * The metadata of the point is copied to a folder and migrated; files of objects are copied there
 * one by one while they are read. The folder is removed when the point was not used for a minute,
 * and at the next start.
 */
import { mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Reads } from '../../metadata/metadata.ts';
import { KeyedMutex } from '../../platform/concurrency.ts';
import { AppError } from '../../platform/errors.ts';
import type { BlobRange, BlobReader, BlobRef, BlobStore } from '../../storage/blobs/blobs.ts';
import type { OpenPoint, PointBlobs, StoragePoints } from '../../storage/points/point-steps.ts';
import { KEY_FILE, KEYS } from './cloud-sources.ts';
import type { PointFile, PointFiles, SoundPoint } from './point-files.ts';

export interface OpenedPointsDeps {
  /** A folder on the disk of the data directory, used only for this. */
  readonly directory: string;
  /** Opens a cloud's metadata in a folder, brings them to this program's schema, and reads its key file. */
  openFolder(folder: string, keys: { readonly path: string; readonly text: string }): Promise<OpenedFolder>;
  /** Reached when both calls run. */
  readonly files: () => Pick<PointFiles, 'points' | 'find' | 'findAll'>;
  /** Throws `out_of_space` when that many more bytes cannot be stored. */
  readonly assertSpace: (bytes: number) => void;
}

export interface OpenedFolder {
  readonly reads: Reads;
  readonly sealer: OpenPoint['sealer'];
  /** Files of objects, read below the folder. */
  readonly blobs: Pick<BlobStore, 'raw' | 'read'>;
  close(): Promise<void>;
}

interface Opened {
  readonly point: OpenPoint;
  close(): Promise<void>;
}

interface Slot {
  users: number;
  readonly opening: Promise<Opened>;
  /** Closes the point after some idle time. */
  timer?: NodeJS.Timeout;
}

interface Waiter {
  readonly pointId: string;
  enter(slot: Slot): void;
  leave(error: AppError): void;
}

/** Each is a copy of the metadata on the disk. */
const MAX_OPEN = 2;
/** Callers waiting for a slot, and how long each waits. */
const MAX_WAITING = 32;
const WAIT_SECONDS = 60;
/** A preview and the restore after it open the point once. */
const IDLE_MS = 60_000;
const METADATA = { component: 'metadata', path: 'metadata.db' };

export class OpenedPoints implements StoragePoints {
  readonly #deps: OpenedPointsDeps;
  readonly #slots = new Map<string, Slot>();
  readonly #line = new Set<Waiter>();
  /** Resolves when the folders of closed points are removed. */
  #cleared: Promise<unknown> = Promise.resolve();

  constructor(deps: OpenedPointsDeps) {
    this.#deps = deps;
  }

  points(): Promise<SoundPoint[]> {
    return this.#deps.files().points();
  }

  /** A file of any component of an intact point. */
  find(...of: Parameters<PointFiles['find']>): Promise<PointFile | undefined> {
    return this.#deps.files().find(...of);
  }

  get isWanted(): boolean {
    return this.#line.size > 0;
  }

  async during<T>(pointId: string, work: (point: OpenPoint) => Promise<T>): Promise<T> {
    const slot = await this.#enter(pointId);
    try {
      return await work((await slot.opening).point);
    } finally {
      slot.users--;
      this.#leave(pointId, slot);
      this.#serve();
    }
  }

  /** Removes leftovers of a killed process; no point may be open yet. */
  sweep(): Promise<unknown> {
    if (this.#slots.size === 0) this.#clear(rm(this.#deps.directory, { recursive: true, force: true }));
    return this.#cleared;
  }

  async close(): Promise<void> {
    for (const each of this.#line) each.leave(new AppError('shutting_down', 'Cloudlet is shutting down'));
    for (const pointId of this.#slots.keys()) this.#close(pointId);
    await this.#cleared;
  }

  /** Callers wait in order: otherwise a busy point would never be closed. */
  async #enter(pointId: string): Promise<Slot> {
    const slot = this.#line.size === 0 ? this.#take(pointId) : undefined;
    if (slot !== undefined) return slot;
    if (this.#line.size >= MAX_WAITING) throw busy(`and ${MAX_WAITING} other restores are waiting`);
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        waiter.leave(busy(`and none of these restores ended within ${WAIT_SECONDS} s`));
        this.#serve();
      };
      const timer = setTimeout(giveUp, WAIT_SECONDS * 1000).unref();
      const leave = () => {
        clearTimeout(timer);
        this.#line.delete(waiter);
      };
      const waiter: Waiter = {
        pointId,
        enter: (free) => {
          leave();
          resolve(free);
        },
        leave: (error) => {
          leave();
          reject(error);
        },
      };
      this.#line.add(waiter);
    });
  }

  #serve(): void {
    for (const waiter of this.#line) {
      const slot = this.#take(waiter.pointId);
      if (slot === undefined) return;
      waiter.enter(slot);
    }
  }

  /** undefined: all slots are in use. */
  #take(pointId: string): Slot | undefined {
    const known = this.#slots.get(pointId);
    if (known !== undefined) {
      clearTimeout(known.timer);
      known.users++;
      return known;
    }
    if (this.#slots.size >= MAX_OPEN) {
      const idle = [...this.#slots].find(([, { users }]) => users === 0);
      if (idle === undefined) return undefined;
      this.#close(idle[0]);
    }
    const slot: Slot = { users: 1, opening: this.#cleared.then(() => this.#open(pointId)) };
    // Callers receive the error.
    slot.opening.catch(() => {});
    this.#slots.set(pointId, slot);
    return slot;
  }

  #leave(pointId: string, slot: Slot): void {
    if (slot.users > 0 || this.#slots.get(pointId) !== slot) return;
    const close = () => {
      if (slot.users === 0 && this.#slots.get(pointId) === slot) this.#close(pointId);
    };
    slot.timer = setTimeout(close, IDLE_MS).unref();
    // A failed opening is retried by the next call.
    slot.opening.catch(close);
  }

  #close(pointId: string): void {
    const slot = this.#slots.get(pointId);
    if (slot === undefined) return;
    clearTimeout(slot.timer);
    this.#slots.delete(pointId);
    const closed = async () => {
      const opened = await slot.opening.catch(() => undefined);
      await opened?.close();
    };
    this.#clear(closed());
  }

  #clear(work: Promise<void>): void {
    this.#cleared = Promise.all([this.#cleared, work.catch(() => {})]);
  }

  async #open(pointId: string): Promise<Opened> {
    const { directory, files, assertSpace } = this.#deps;
    const find = (component: string, path: string) => files().find(pointId, { component, path });
    const [keyFile, metadataFile] = [await find(KEYS, KEY_FILE), await find('metadata', METADATA.path)];
    if (keyFile === undefined || metadataFile === undefined) {
      throw new AppError('data_corrupted', `The recovery point ${pointId} has no metadata`, {
        hint: 'Use another recovery point',
      });
    }
    const folder = join(directory, pointId);
    const close = () => rm(folder, { recursive: true, force: true });
    try {
      assertSpace(metadataFile.sizeBytes);
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await metadataFile.writeTo(join(folder, METADATA.path));
      const keys = { path: KEY_FILE, text: await text(keyFile.read()) };
      const opened = await this.#deps.openFolder(folder, keys);
      const { reads, sealer, blobs } = opened;
      const turns = new KeyedMutex();
      const findAll = (paths: ReadonlySet<string>) =>
        files().findAll(pointId, { component: 'objects', paths });
      return {
        point: {
          reads,
          sealer,
          blobs: (names) => fetchBlobs(names, { blobs, findAll, turns, assertSpace }),
        },
        close: async () => {
          await opened.close();
          await close();
        },
      };
    } catch (error) {
      await close();
      throw error;
    }
  }
}

interface Fetching {
  readonly blobs: OpenedFolder['blobs'];
  readonly findAll: (paths: ReadonlySet<string>) => Promise<Map<string, PointFile>>;
  /** Two objects may have equal bytes. */
  readonly turns: KeyedMutex;
  readonly assertSpace: (bytes: number) => void;
}

async function fetchBlobs(names: readonly string[], deps: Fetching): Promise<PointBlobs> {
  const { blobs, findAll, turns, assertSpace } = deps;
  const files = await findAll(new Set(names.map((name) => blobs.raw(name).path)));
  const read = (ref: BlobRef, range: BlobRange, reader: BlobReader) =>
    turns.run(ref.name, async () => {
      const { path, absolutePath = '' } = blobs.raw(ref.name);
      const file = files.get(path);
      if (file === undefined) {
        throw new AppError('data_corrupted', 'The recovery point lacks bytes of the object');
      }
      assertSpace(file.sizeBytes);
      await mkdir(dirname(absolutePath), { recursive: true, mode: 0o700 });
      try {
        await file.writeTo(absolutePath);
        await blobs.read(ref, range, reader);
      } finally {
        await rm(absolutePath, { force: true });
      }
    });
  return { read };
}

/** A small file. */
function busy(why: string): AppError {
  return new AppError('overloaded', `Restores already use ${MAX_OPEN} other recovery points, ${why}`, {
    hint: 'Try again later',
    retryAfterSeconds: 10,
  });
}
