/** Blobs as files of one directory. Format: blob-format.ts; I/O: blob-worker.ts. */
import { mkdir, open, opendir, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Alarms, CHECK_DISK } from '../../platform/alarms.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { syncFolder, unlessMissing } from '../../platform/files.ts';
import { isId, newId } from '../../platform/ids.ts';
import type {
  BlobRange,
  BlobReader,
  BlobRef,
  BlobStore,
  BlobWriter,
  NewBlobOptions,
  RawBlob,
  RawCopy,
  StoredBlob,
} from '../../storage/blobs/blobs.ts';
import { asFault, BlobFault } from '../blob-frames/blob-fault.ts';
import { blobPath, CHUNK_BYTES } from '../blob-frames/blob-format.ts';
import { BlobsUnderWay } from '../blob-frames/blobs-under-way.ts';
import { DigestStreams } from '../blob-frames/digest-streams.ts';
import type { SlotRequest, SlotSource } from '../blob-frames/slot-reading.ts';
import type { BlobReply, ReadRequest } from './blob-messages.ts';
import { faultError, isFullDisk } from './disk-fault.ts';
import { FileTarget, type SpaceCheck } from './file-target.ts';
import { type FileThread, type FileThreads, fileThreads } from './file-threads.ts';
import { writeRawFile } from './raw-file.ts';

export type { SpaceCheck } from './file-target.ts';

/** Slots that are read ahead are on different threads, which verify them in parallel. */
const PACE = { stallMs: 100, readAhead: 2, isPrompt: false, isWholeAtOnce: true };

export interface FileBlobStoreDeps {
  /** Directory of the blobs; created with mode 0700. */
  readonly directory: string;
  /** Worker threads. With one, hashing and writing do not overlap. */
  readonly threads: number;
  /**
   * Maximum direct writes waiting in libuv's pool. Other users of the pool (DNS, password hashing,
   * file status) must not be blocked by a disk that hangs. 0: all writes go through the cache.
   */
  readonly directWrites: number;
  readonly clock: Clock;
  readonly alarms: Alarms;
  readonly diskSpace: SpaceCheck;
}

/** Bytes per step of copying sealed blobs. */
const READ_BYTES = 2 ** 20;

export class FileBlobStore implements BlobStore {
  /** Uploads end with their process. */
  readonly minOrphanAgeMs = 0;
  readonly works = true;
  readonly #deps: FileBlobStoreDeps;
  readonly #workers: FileThreads;
  readonly #underWay = new BlobsUnderWay();
  #syncFailed = false;

  /** close() ends `workers`. */
  constructor(deps: FileBlobStoreDeps, workers: FileThreads) {
    this.#deps = deps;
    this.#workers = workers;
  }

  /** Creates the directory durably. Throws file system errors. */
  static async open(deps: FileBlobStoreDeps): Promise<FileBlobStore> {
    const created = await mkdir(deps.directory, { recursive: true, mode: 0o700 });
    if (created !== undefined) {
      for (let path = deps.directory; path.length >= created.length; path = dirname(path)) {
        syncFolder(dirname(path));
      }
    }
    return new FileBlobStore(deps, fileThreads(deps));
  }

  async create({ dataKey, digests = [], onPieces }: NewBlobOptions): Promise<BlobWriter> {
    this.#underWay.assertMayWrite(dataKey);
    this.#assertWritable();
    const { clock, diskSpace } = this.#deps;
    diskSpace.assertSpace(CHUNK_BYTES);
    const name = newId('blob', clock);
    const target = new FileTarget({
      name,
      dataKey,
      digests: new DigestStreams(digests, onPieces),
      workers: this.#workers,
      diskSpace,
      onFault: (error) => this.#onFault(error),
      assertWritable: () => this.#assertWritable(),
      remove: () => this.remove(name),
    });
    return this.#underWay.write(name, target);
  }

  async read(ref: BlobRef, range: BlobRange, reader: BlobReader): Promise<void> {
    const reading = { ref, range, reader };
    if (!this.#underWay.mayRead(reading)) return;
    await this.#underWay.read(reading, new FileSource(ref, this.#workers), PACE);
  }

  async remove(name: string): Promise<void> {
    await unlink(join(this.#deps.directory, blobPath(name))).catch(unlessMissing);
  }

  async *list(): AsyncIterable<StoredBlob> {
    for await (const { name: sub } of await opendir(this.#deps.directory)) {
      if (!/^[0-9a-z]{2}$/.test(sub)) continue;
      const directory = join(this.#deps.directory, sub);
      for await (const { name } of await opendir(directory)) {
        if (!isId('blob', name)) continue;
        const found = await stat(join(directory, name)).catch(unlessMissing);
        if (found) yield { name, storedBytes: found.size, modifiedAt: Math.floor(found.mtimeMs) };
      }
    }
  }

  /** The mark in the directory is checked by metadata/identity.ts. */
  async isOurs(): Promise<boolean> {
    return true;
  }

  /** An unfinished file is listed like a finished one. */
  async removeUnfinished(): Promise<number> {
    return 0;
  }

  raw(name: string): RawBlob {
    const path = blobPath(name);
    const absolutePath = join(this.#deps.directory, path);
    const openFile = async () =>
      (await open(absolutePath).catch(unlessMissing))?.createReadStream({ highWaterMark: READ_BYTES });
    return { path: `blobs/${path}`, absolutePath, open: openFile };
  }

  async storedBytes(name: string): Promise<number | undefined> {
    return (await stat(join(this.#deps.directory, blobPath(name))).catch(unlessMissing))?.size;
  }

  async storeRaw(copy: RawCopy): Promise<void> {
    this.#underWay.assertOpen();
    this.#assertWritable();
    this.#deps.diskSpace.assertSpace(copy.storedBytes);
    await writeRawFile(this.#deps.directory, copy);
  }

  isBeingWritten(name: string): boolean {
    return this.#underWay.isBeingWritten(name);
  }

  async close(): Promise<void> {
    await this.#underWay.close();
    await this.#workers.close();
  }

  #onFault(error: unknown): void {
    if (!(error instanceof BlobFault) || !isDiskFailure(error)) return;
    this.#syncFailed = true;
    this.#deps.alarms.raise(
      'blob_fsync_failed',
      `The disk failed to store bytes (${error.code}); the store is read-only until a restart`,
      CHECK_DISK,
    );
  }

  #assertWritable(): void {
    if (!this.#syncFailed) return;
    throw new AppError('read_only', 'The disk failed to store bytes earlier; the store is read-only.');
  }
}

/** A failed fsync or write, except on a full disk. */
function isDiskFailure(fault: BlobFault): boolean {
  const { kind, code } = fault;
  return (kind === 'sync' && !isFullDisk(fault)) || (kind === 'write' && code === 'EIO');
}

/** Attempts, on other threads if one dies. */
const MAX_TRIES = 3;

/**
 * Reads a blob through the threads: the first that reads opens the file, and all use its descriptor. Rejects
 * with an AppError.
 */
class FileSource implements SlotSource {
  readonly #ref: BlobRef;
  readonly #workers: FileThreads;
  /** All requests that may still use the file. */
  readonly #outstanding = new Set<Promise<unknown>>();
  #opener: FileThread | null = null;
  #fd: number | null = null;

  constructor(ref: BlobRef, workers: FileThreads) {
    this.#ref = ref;
    this.#workers = workers;
  }

  read({ slot, firstChunk, chunks, endChunk }: SlotRequest): Promise<number> {
    const thread = this.#workers.pick();
    // The descriptor's number may belong to another file by now.
    const isLost = this.#opener !== null && !this.#opener.isAlive;
    const fd = isLost ? null : this.#fd;
    const isAll = firstChunk + chunks === endChunk;
    const close = isLost || (fd === null && isAll);
    if (fd === null && !close) this.#opener = thread;
    const { name, sizeBytes, dataKey } = this.#ref;
    const file = { name, sizeBytes, dataKey, fd, close };
    const request = { op: 'read', ...file, slot: slot.memory, firstChunk, chunks } as const;
    const reply = this.#ask(thread, request).then(
      (answer) => {
        this.#fd ??= answer.fd ?? null;
        return answer.goodChunks ?? 0;
      },
      (error) => {
        throw faultError(asFault(error, 'read'));
      },
    );
    const forget = () => this.#outstanding.delete(reply);
    this.#outstanding.add(reply);
    reply.then(forget, forget);
    return reply;
  }

  /**
   * When a thread dies, its open files close before this is noticed: failed reads through such a
   * descriptor do not count, and are repeated.
   */
  async #ask(thread: FileThread, request: ReadRequest): Promise<BlobReply> {
    const isOwn = request.fd === null;
    try {
      const answer = await thread.request(request);
      if (isOwn || answer.goodChunks === request.chunks) return answer;
    } catch (error) {
      if (isOwn && thread.isAlive) throw error;
    }
    return this.#askAnew(request);
  }

  async #askAnew(request: ReadRequest): Promise<BlobReply> {
    for (let tries = 1; ; tries++) {
      const thread = this.#workers.pick();
      try {
        return await thread.request({ ...request, fd: null, close: true });
      } catch (error) {
        if (thread.isAlive || tries === MAX_TRIES) throw error;
      }
    }
  }

  /** Closes the file after the last read; need not be awaited. */
  close(): void {
    Promise.allSettled(this.#outstanding).then(() => {
      // Files of a dead thread are already closed.
      if (this.#fd !== null) this.#opener?.request({ op: 'close', fd: this.#fd }).catch(() => {});
    });
  }
}
