/**
 * Downloads: to a file beside the target, which a later run continues after a kill; it is verified
 * and then renamed.
 */
import { createHash } from 'node:crypto';
import { constants, createReadStream, createWriteStream } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { ClientError, EXIT } from '../failures.ts';
import { isStream } from '../own-files.ts';
import { type Expected, expectedChecksum } from '../s3/checksums.ts';
import type { S3Client } from '../s3/s3-client.ts';
import { S3Failure } from '../s3/s3-failure.ts';
import { type RemoteLocation, shown } from './locations.ts';
import { MTIME_HEADER, readMtime } from './mtime.ts';

const BATCH_BYTES = 1024 * 1024;
const BREAKS = 6;
const PAUSE_MS = 300;
/** Windows has neither symbolic links nor the flag. */
const PART_FLAGS = constants.O_RDWR | constants.O_CREAT | constants.O_APPEND | (constants.O_NOFOLLOW ?? 0);

export interface Download {
  readonly from: RemoteLocation & { readonly version?: string | undefined };
  /** Known from a list; only this version of the bytes is downloaded. */
  readonly etag: string;
  readonly path: string;
  /** The path as a folder and a name below it, which must not leave the folder. */
  readonly within?: { readonly folder: string; readonly name: string };
  /** The object is deleted afterwards: the file is then the only copy, and is synced. */
  readonly isMove?: boolean;
}

export interface DownloadMeans {
  readonly s3: S3Client;
  readonly written: WrittenFiles;
  readonly onMoved: (bytes: number) => void;
}

const ELSEWHERE = 'Copy this object separately, under another name';

/**
 * The files written by one command, by inode: no object replaces the file of another. Names may differ and be
 * one file: on macOS and Windows neither case nor the Unicode form counts.
 */
export class WrittenFiles {
  readonly #objects = new Map<string, string>();
  #last: Promise<unknown> = Promise.resolve();

  /** Renames a finished download, one at a time. Throws ClientError if the target is of another object. */
  place(part: string, { from, path }: Download): Promise<void> {
    const placed = this.#last.then(async () => {
      const there = await inodeOf(path);
      const other = there === undefined ? undefined : this.#objects.get(there);
      if (other !== undefined && other !== shown(from)) {
        await rm(part, { force: true });
        throw new ClientError(`${other} was just written to ${path}`, EXIT.conflict, ELSEWHERE);
      }
      const own = await inodeOf(part);
      await rename(part, path);
      if (own !== undefined) this.#objects.set(own, shown(from));
    });
    this.#last = placed.catch(() => {});
    return placed;
  }
}

async function inodeOf(path: string): Promise<string | undefined> {
  const found = await lstat(path, { bigint: true }).catch(() => undefined);
  return found && `${found.dev} ${found.ino}`;
}

/** Files of unfinished downloads; `sync` ignores them. */
export const PART_FILE = /^\.cloudlet-[0-9a-f]{16}\.part$/;

/**
 * The unfinished file: its name identifies the version, so that another version is never continued,
 * and no name is too long.
 */
function partPath({ from, etag, path }: Download): string {
  const of = [from.bucket, from.key, from.version ?? '', etag, path].join('\0');
  return join(dirname(path), `.cloudlet-${createHash('sha256').update(of).digest('hex').slice(0, 16)}.part`);
}

/**
 * Downloads an object, compares its checksum, keeps its time, and renames the file at the end. Throws
 * S3Failure for a refusal (412: the object changed meanwhile), ClientError for corrupt bytes, and write
 * errors (ENOSPC).
 *
 * There is no fsync but for a move, as in awscli, rclone and rsync: it took a quarter of the time of 5 GiB.
 * After a power failure, `sync` copies files of another length again.
 */
export async function downloadFile(download: Download, means: DownloadMeans): Promise<void> {
  if (await isStream(download.path)) return writeThrough(download, means);
  const part = partPath(download);
  await assertInside(download);
  await makeFolderFor(download);
  // The name is predictable: someone with access to the folder may have created a link there.
  const file = await open(part, PART_FLAGS, 0o666);
  let headers: Readonly<Record<string, unknown>>;
  try {
    headers = await fill(file, download, { ...means, part });
    const mtimeMs = readMtime(headers[MTIME_HEADER]) ?? Date.parse(String(headers['last-modified']));
    if (Number.isFinite(mtimeMs)) await file.utimes(new Date(), new Date(mtimeMs));
    if (download.isMove === true) await file.sync();
  } catch (error) {
    // A deleted or changed object cannot be resumed.
    const isGone = error instanceof S3Failure && (error.status === 404 || error.status === 412);
    if (isGone) await rm(part, { force: true });
    throw error;
  } finally {
    await file.close();
  }
  try {
    await means.written.place(part, download);
    if (download.isMove === true) await syncFolder(dirname(download.path));
  } catch (error) {
    // Created since, perhaps by another download: `a` beside `a/b`.
    await assertNoFolder(download);
    throw error;
  }
}

/** So that the name of a new file outlives a power failure. Windows opens no folder for that. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r').catch(() => undefined);
  try {
    await folder?.sync();
  } catch (error) {
    if (process.platform !== 'win32') throw error;
  } finally {
    await folder?.close();
  }
}

/** Writes an object into the existing file or device at the path. Such a download cannot be resumed. */
async function writeThrough(
  { from, path }: Download,
  { s3, onMoved }: Pick<DownloadMeans, 's3' | 'onMoved'>,
): Promise<void> {
  const response = await s3.get(from);
  const wanted = Number(response.headers['content-length']);
  let written = 0;
  const counted = async function* (pieces: AsyncIterable<Buffer>) {
    for await (const piece of pieces) {
      written += piece.length;
      onMoved(piece.length);
      yield piece;
    }
  };
  await pipeline(response, counted, createWriteStream(path, { flags: 'r+' }));
  if (written !== wanted)
    throw new ClientError(`the download of ${shown(from)} ended too early`, EXIT.unavailable);
}

/** Throws ClientError if a file has the folder's name, or a folder the file's: buckets can have both. */
async function makeFolderFor(download: Download): Promise<void> {
  const folder = dirname(download.path);
  try {
    await mkdir(folder, { recursive: true });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EEXIST' && code !== 'ENOTDIR') throw error;
    throw new ClientError(`${folder} is a local file, not a folder`, EXIT.partial, ELSEWHERE);
  }
  await assertNoFolder(download);
}

/** Removes the unfinished file. */
async function assertNoFolder(download: Download): Promise<void> {
  if (!(await isFolder(download.path))) return;
  await rm(partPath(download), { force: true });
  throw new ClientError(`${download.path} is a local folder`, EXIT.partial, ELSEWHERE);
}

/** A symbolic link below the folder may lead elsewhere; `sync` skips links when uploading. */
async function assertInside({ within }: Download): Promise<void> {
  if (within === undefined) return;
  let at = within.folder;
  for (const part of within.name.split('/').slice(0, -1)) {
    at = join(at, part);
    const found = await lstat(at).catch(() => undefined);
    if (found?.isSymbolicLink() === true)
      throw new ClientError(`${at} is a symbolic link, which could point outside ${within.folder}`);
  }
}

interface Filling extends DownloadMeans {
  readonly part: string;
}

/** The headers of the object, once all its bytes are in the file. */
async function fill(file: FileHandle, download: Download, means: Filling) {
  const { size: kept } = await file.stat();
  let at = kept;
  let expected: Expected | undefined;
  const batches = new Batches(file, download.path);
  means.onMoved(kept);
  for (let breaks = 0; ; breaks++) {
    const { headers, body, total } = await openAt(download, at, means.s3);
    if (expected === undefined) {
      expected = expectedChecksum(headers);
      if (at > 0) await readAgain(means.part, at, expected);
    }
    try {
      for await (const chunk of body) {
        if (at + chunk.length > total) throw wrongLength(download);
        await batches.add(chunk);
        expected?.running.update(chunk);
        at += chunk.length;
        means.onMoved(chunk.length);
      }
    } catch (error) {
      if (error instanceof ClientError) throw error;
      if (breaks >= BREAKS)
        throw new ClientError(`the connection was lost: ${(error as Error).message}`, EXIT.unavailable);
    } finally {
      // Throws the write error, if any.
      await batches.end();
    }
    if (at === total) {
      await assertRight(download, expected, means.part);
      return headers;
    }
    if (breaks >= BREAKS)
      throw new ClientError(`the download of ${shown(download.from)} ended too early`, EXIT.unavailable);
    await sleep(PAUSE_MS * (breaks + 1) * (0.5 + Math.random()));
  }
}

/**
 * Appends to a file in batches, each while the next one arrives: the processor time of a download is 0.83 of
 * that with a write for each chunk.
 */
class Batches {
  readonly #file: FileHandle;
  readonly #path: string;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #writing: Promise<void> = Promise.resolve();
  /** Why nothing more can be written. */
  #failure: unknown;

  /** `path`: the path named in errors. */
  constructor(file: FileHandle, path: string) {
    this.#file = file;
    this.#path = path;
  }

  /** Accepts a chunk; buffers at most two batches. Throws write errors. */
  async add(chunk: Buffer): Promise<void> {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes >= BATCH_BYTES) await this.#begin();
  }

  /** Afterwards all bytes are in the file. Throws write errors. */
  async end(): Promise<void> {
    if (this.#bytes > 0) await this.#begin();
    await this.#written();
  }

  async #begin(): Promise<void> {
    await this.#written();
    this.#writing = this.#write(this.#chunks, this.#bytes);
    this.#chunks = [];
    this.#bytes = 0;
  }

  async #written(): Promise<void> {
    await this.#writing;
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Never rejects, because the result may not be awaited. */
  async #write(chunks: Buffer[], bytes: number): Promise<void> {
    try {
      const { bytesWritten } = await this.#file.writev(chunks);
      // A full disk writes less without an error; writing the rest reports it.
      if (bytesWritten < bytes) await this.#file.appendFile(Buffer.concat(chunks).subarray(bytesWritten));
    } catch (error) {
      this.#failure = Object.assign(error as Error, { path: this.#path });
    }
  }
}

function wrongLength({ from }: Download): ClientError {
  return new ClientError(`${shown(from)} does not have the length that the server announced`);
}

interface Opened {
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: AsyncIterable<Buffer>;
  /** Bytes of the whole object. */
  readonly total: number;
}

async function openAt(download: Download, at: number, s3: S3Client): Promise<Opened> {
  const { from, etag } = download;
  const range = at === 0 ? {} : { range: `bytes=${at}-` };
  try {
    const response = await s3.get(from, { 'if-match': `"${etag}"`, ...range });
    const { headers, statusCode } = response;
    const whole = /\/(\d+)$/.exec(headers['content-range'] ?? '')?.[1] ?? headers['content-length'];
    const isContinued = at === 0 || statusCode === 206;
    if (isContinued && Number.isSafeInteger(Number(whole)))
      return { headers, body: response, total: Number(whole) };
    response.destroy();
    if (isContinued) throw wrongLength(download);
    await rm(partPath(download), { force: true });
    const why = 'the server does not support resuming';
    throw new ClientError(
      `${shown(from)} cannot be resumed: ${why}`,
      EXIT.failure,
      'Run the command again to start over',
    );
  } catch (error) {
    // Nothing is left to read if the client was killed between the last byte and the renaming.
    if (!(error instanceof S3Failure) || error.status !== 416) throw error;
    const headers = (await s3.head(from.bucket, from.key, from.version)) ?? {};
    const total = Number(headers['content-length']);
    if (!Number.isSafeInteger(total)) throw wrongLength(download);
    return { headers, body: nothing(), total };
  }
}

async function* nothing(): AsyncGenerator<Buffer> {}

async function readAgain(part: string, bytes: number, expected: Expected | undefined): Promise<void> {
  if (expected === undefined) return;
  for await (const chunk of createReadStream(part, { end: bytes - 1 })) expected.running.update(chunk);
}

async function assertRight({ from }: Download, expected: Expected | undefined, part: string): Promise<void> {
  if (expected === undefined || expected.running.digest().equals(expected.value)) return;
  // A later download must not resume from corrupt bytes.
  await rm(part, { force: true });
  throw new ClientError(`${shown(from)}: checksum mismatch in the downloaded bytes`, EXIT.failure);
}

/** Whether the path is a folder. */
export async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
