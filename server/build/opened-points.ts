/**
 * Recovery points that are open beside the live cloud, so that owners restore single things. The metadata of
 * the point is copied to a folder and migrated; files of objects are copied there one by one while they are
 * read. The folder is removed when nobody has used the point for a minute, and at the next start.
 */
import { mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { FileBlobStore } from '../drivers/blobs-file/blobs-file.ts';
import { SqliteMetadata } from '../drivers/metadata-sqlite/sqlite-metadata.ts';
import { Alarms } from '../platform/alarms.ts';
import type { Clock } from '../platform/clock.ts';
import { KeyedMutex } from '../platform/concurrency.ts';
import { AppError } from '../platform/errors.ts';
import { MasterKeys } from '../platform/master-key.ts';
import { KEY_FILE, KEYS } from '../recovery/points/cloud-sources.ts';
import type { PointFile, PointFiles, SoundPoint } from '../recovery/points/point-files.ts';
import type { BlobRange, BlobReader, BlobRef, BlobStore } from '../storage/blobs/blobs.ts';
import type { OpenPoint, PointBlobs, StoragePoints } from '../storage/points/point-steps.ts';

export interface OpenedPointsDeps {
  /** A folder of our own on the disk of the data directory. */
  readonly directory: string;
  readonly clock: Clock;
  /** Reached once both run. */
  readonly files: () => Pick<PointFiles, 'points' | 'find' | 'findAll'>;
  /** Throws `out_of_space` when so many more bytes must not be stored. */
  readonly assertSpace: (bytes: number) => void;
}

interface Opened {
  readonly point: OpenPoint;
  close(): Promise<void>;
}

interface Place {
  users: number;
  readonly opening: Promise<Opened>;
  /** Closes it when it was idle for a while. */
  timer?: NodeJS.Timeout;
}

interface Waiter {
  readonly pointId: string;
  enter(place: Place): void;
  leave(error: AppError): void;
}

/** Each is a copy of the metadata on the disk. */
const MAX_OPEN = 2;
/** Callers in line for a place, and how long each waits. */
const MAX_WAITING = 32;
const WAIT_SECONDS = 60;
/** A preview and the restore after it open the point once. */
const IDLE_MS = 60_000;
const METADATA = { component: 'metadata', path: 'metadata.db' };

export class OpenedPoints implements StoragePoints {
  readonly #deps: OpenedPointsDeps;
  readonly #places = new Map<string, Place>();
  readonly #line = new Set<Waiter>();
  /** The folders of points that were closed are gone. */
  #cleared: Promise<unknown> = Promise.resolve();

  constructor(deps: OpenedPointsDeps) {
    this.#deps = deps;
  }

  points(): Promise<SoundPoint[]> {
    return this.#deps.files().points();
  }

  /** A file of any component of a sound point. */
  find(...of: Parameters<PointFiles['find']>): Promise<PointFile | undefined> {
    return this.#deps.files().find(...of);
  }

  get isWanted(): boolean {
    return this.#line.size > 0;
  }

  async during<T>(pointId: string, work: (point: OpenPoint) => Promise<T>): Promise<T> {
    const place = await this.#enter(pointId);
    try {
      return await work((await place.opening).point);
    } finally {
      place.users--;
      this.#leave(pointId, place);
      this.#serve();
    }
  }

  /** Removes what a killed process left; points are opened after that. */
  sweep(): Promise<unknown> {
    if (this.#places.size === 0) this.#clear(rm(this.#deps.directory, { recursive: true, force: true }));
    return this.#cleared;
  }

  async close(): Promise<void> {
    for (const each of this.#line) each.leave(new AppError('shutting_down', 'Cloudlet is shutting down'));
    for (const pointId of this.#places.keys()) this.#close(pointId);
    await this.#cleared;
  }

  /** Nobody passes those in line: a point that somebody always uses would never be left. */
  async #enter(pointId: string): Promise<Place> {
    const place = this.#line.size === 0 ? this.#take(pointId) : undefined;
    if (place !== undefined) return place;
    if (this.#line.size >= MAX_WAITING) throw busy(`and ${MAX_WAITING} calls wait for another one`);
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        waiter.leave(busy(`and none became free within ${WAIT_SECONDS} s`));
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
      const place = this.#take(waiter.pointId);
      if (place === undefined) return;
      waiter.enter(place);
    }
  }

  /** undefined: other points are in use. */
  #take(pointId: string): Place | undefined {
    const known = this.#places.get(pointId);
    if (known !== undefined) {
      clearTimeout(known.timer);
      known.users++;
      return known;
    }
    if (this.#places.size >= MAX_OPEN) {
      const idle = [...this.#places].find(([, { users }]) => users === 0);
      if (idle === undefined) return undefined;
      this.#close(idle[0]);
    }
    const place: Place = { users: 1, opening: this.#cleared.then(() => this.#open(pointId)) };
    // Callers get the error.
    place.opening.catch(() => {});
    this.#places.set(pointId, place);
    return place;
  }

  #leave(pointId: string, place: Place): void {
    if (place.users > 0 || this.#places.get(pointId) !== place) return;
    const close = () => {
      if (place.users === 0 && this.#places.get(pointId) === place) this.#close(pointId);
    };
    place.timer = setTimeout(close, IDLE_MS).unref();
    // A failed opening is retried by the next call.
    place.opening.catch(close);
  }

  #close(pointId: string): void {
    const place = this.#places.get(pointId);
    if (place === undefined) return;
    clearTimeout(place.timer);
    this.#places.delete(pointId);
    const closed = async () => {
      const opened = await place.opening.catch(() => undefined);
      await opened?.close();
    };
    this.#clear(closed());
  }

  #clear(work: Promise<void>): void {
    this.#cleared = Promise.all([this.#cleared, work.catch(() => {})]);
  }

  async #open(pointId: string): Promise<Opened> {
    const { directory, clock, files, assertSpace } = this.#deps;
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
      const alarms = new Alarms(clock);
      const metadata = await SqliteMetadata.open({ directory: folder, clock, alarms });
      const sealer = MasterKeys.read(await textOf(keyFile), KEY_FILE);
      const blobs = await FileBlobStore.open({
        directory: join(folder, 'blobs'),
        threads: 1,
        directWrites: 0,
        clock,
        alarms,
        diskSpace: { assertSpace },
      });
      const turns = new KeyedMutex();
      const findAll = (paths: ReadonlySet<string>) =>
        files().findAll(pointId, { component: 'objects', paths });
      return {
        point: {
          reads: metadata,
          sealer,
          blobs: (names) => fetchBlobs(names, { blobs, findAll, turns, assertSpace }),
        },
        close: async () => {
          await blobs.close();
          await metadata.close();
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
  readonly blobs: BlobStore;
  readonly findAll: (paths: ReadonlySet<string>) => Promise<Map<string, PointFile>>;
  /** Two objects may have the same bytes. */
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
async function textOf(file: PointFile): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of file.read()) parts.push(part);
  return Buffer.concat(parts).toString('utf8');
}

function busy(why: string): AppError {
  return new AppError('overloaded', `${MAX_OPEN} other recovery points are being restored from, ${why}`, {
    hint: 'Try again later',
    retryAfterSeconds: 10,
  });
}
