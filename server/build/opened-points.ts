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
import { KEY_FILE, KEYS } from '../recovery/cloud-sources.ts';
import type { PointFile, PointFiles, SoundPoint } from '../recovery/point-files.ts';
import type { BlobRange, BlobReader, BlobRef, BlobStore } from '../storage/blobs.ts';
import type { OpenPoint, PointBlobs, StoragePoints } from '../storage/point-steps.ts';

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

/** Each is a copy of the metadata on the disk. */
const MAX_OPEN = 2;
/** A preview and the restore after it open the point once. */
const IDLE_MS = 60_000;
const METADATA = { component: 'metadata', path: 'metadata.db' };

export class OpenedPoints implements StoragePoints {
  readonly #deps: OpenedPointsDeps;
  readonly #places = new Map<string, Place>();
  readonly #turns = new KeyedMutex();

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

  async during<T>(pointId: string, work: (point: OpenPoint) => Promise<T>): Promise<T> {
    const place = await this.#turns.run('places', () => this.#take(pointId));
    try {
      return await work((await place.opening).point);
    } finally {
      place.users--;
      this.#leave(pointId, place);
    }
  }

  /** Removes what a killed process left; points are opened after that. */
  sweep(): Promise<void> {
    return this.#turns.run('places', async () => {
      if (this.#places.size === 0) await rm(this.#deps.directory, { recursive: true, force: true });
    });
  }

  async close(): Promise<void> {
    await Promise.all([...this.#places.keys()].map((pointId) => this.#close(pointId)));
  }

  async #take(pointId: string): Promise<Place> {
    const known = this.#places.get(pointId);
    if (known !== undefined) {
      clearTimeout(known.timer);
      known.users++;
      return known;
    }
    if (this.#places.size >= MAX_OPEN) {
      const idle = [...this.#places].find(([, { users }]) => users === 0);
      if (idle === undefined) throw busy();
      await this.#close(idle[0]);
    }
    const place: Place = { users: 1, opening: this.#open(pointId) };
    // Waiting callers get the error.
    place.opening.catch(() => {});
    this.#places.set(pointId, place);
    return place;
  }

  #leave(pointId: string, place: Place): void {
    if (place.users > 0 || this.#places.get(pointId) !== place) return;
    const close = () => void this.#turns.run('places', () => this.#closeIdle(pointId, place)).catch(() => {});
    place.timer = setTimeout(close, IDLE_MS).unref();
    // A failed opening is retried by the next call.
    place.opening.catch(close);
  }

  async #closeIdle(pointId: string, place: Place): Promise<void> {
    if (place.users === 0 && this.#places.get(pointId) === place) await this.#close(pointId);
  }

  async #close(pointId: string): Promise<void> {
    const place = this.#places.get(pointId);
    if (place === undefined) return;
    clearTimeout(place.timer);
    const opened = await place.opening.catch(() => undefined);
    await opened?.close();
    this.#places.delete(pointId);
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

function busy(): AppError {
  return new AppError('overloaded', 'Other recovery points are being restored from', {
    hint: 'Try again when that has ended',
    retryAfterSeconds: 10,
  });
}
