/** Uploads: in one request, or in parts that are sent concurrently; a later run continues after a kill. */
import { createHash } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { textOf, xmlDocument } from '../../libs/s3-wire/index.ts';
import { cacheFolder } from '../environment.ts';
import { ClientError, EXIT } from '../failures.ts';
import { combinedCrc32, crc32Of, crc32OfFile } from '../s3/checksums.ts';
import type { FileRange, S3Answer } from '../s3/requests.ts';
import type { S3Client } from '../s3/s3-client.ts';
import { readAnswer, S3Failure } from '../s3/s3-failure.ts';
import { writePrivateFile } from '../sign-in/private-file.ts';
import type { RemoteLocation } from './locations.ts';
import type { Pool } from './pool.ts';

const PART_BYTES = 16 * 2 ** 20;
const MAX_PARTS = 10_000;
/** A file of at most this many bytes is read once and sent from memory. */
const SMALL_BYTES = 2 ** 20;
const CRC_HEADER = 'x-amz-checksum-crc32';

export interface Upload {
  readonly path: string;
  readonly size: number;
  /** Whole ms, rounded down. */
  readonly mtimeMs: number;
  readonly to: RemoteLocation;
  /** Metadata, type and conditions. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface UploadMeans {
  readonly s3: S3Client;
  /** Shared by all requests with bodies. */
  readonly pool: Pool;
  readonly onMoved: (bytes: number) => void;
  /** Receives notes for the user. */
  readonly onNote: (text: string) => void;
}

/** State of a multipart upload in the cache folder, to resume it. */
interface Remembered {
  readonly uploadId: string;
  readonly size: number;
  readonly mtimeMs: number;
  readonly partBytes: number;
}

interface Part {
  readonly number: number;
  readonly range: FileRange;
}

interface SentPart {
  readonly number: number;
  readonly etag: string;
  readonly crc: string;
  readonly bytes: number;
}

/**
 * Uploads a file. Its checksum is sent along, and compared with the response's. Throws S3Failure
 * for a refusal, and ClientError if the file has changed meanwhile.
 */
export async function uploadFile(upload: Upload, means: UploadMeans): Promise<void> {
  if (upload.size <= PART_BYTES) await means.pool.run(() => sendWhole(upload, means));
  else await sendInParts(upload, means);
}

/** If a file changed during its upload, the stored bytes would be a mix of both states. */
async function assertUnchanged({ path, size, mtimeMs }: Upload): Promise<void> {
  const now = await stat(path);
  if (now.size !== size || Math.abs(now.mtimeMs - mtimeMs) > 1) throw changed(path);
}

async function sendWhole({ path, size, to, headers }: Upload, means: UploadMeans): Promise<void> {
  const body = size <= SMALL_BYTES ? await readFile(path) : { path, start: 0, end: size };
  if (!('path' in body) && body.length !== size) throw changed(path);
  const crc = 'path' in body ? await crc32OfFile(body) : crc32Of(body);
  const asked = { method: 'PUT', ...to, body, headers: { ...headers, [CRC_HEADER]: crc } };
  const answer = await means.s3.requests.call({ ...asked, onSent: counting(means.onMoved) });
  assertSame(to, answer.headers[CRC_HEADER], crc);
}

/** Bytes that are sent again are subtracted first. */
function counting(onMoved: (bytes: number) => void): (bytes: number) => void {
  let sent = 0;
  return (bytes) => {
    onMoved(bytes === 0 ? -sent : bytes);
    sent = bytes === 0 ? 0 : sent + bytes;
  };
}

function assertSame({ key }: RemoteLocation, theirs: string | undefined, ours: string): void {
  if (theirs === undefined || theirs === ours) return;
  throw new ClientError(`${key}: checksum mismatch in the stored bytes`);
}

function changed(path: string): ClientError {
  return new ClientError(`${path} changed while it was being uploaded`, EXIT.conflict);
}

async function sendInParts(upload: Upload, means: UploadMeans): Promise<void> {
  const { s3 } = means;
  const { to, size } = upload;
  const memory = memoryOf(upload, s3.requests.keys.endpoint);
  const known = readMemory(memory, upload);
  const listed = known === undefined ? undefined : await s3.listParts(to.bucket, to.key, known.uploadId);
  const begun = listed === undefined ? undefined : known;
  const partBytes = begun?.partBytes ?? partBytesFor(size);
  const uploadId = begun?.uploadId ?? (await begin(upload, s3));
  if (begun === undefined) {
    const { mtimeMs } = upload;
    remember(memory, { uploadId, size, mtimeMs, partBytes }, means.onNote);
  }
  const there = new Map((listed ?? []).map((part) => [part.number, part]));
  const parts = partsOf(upload.path, size, partBytes);
  const send = async (part: Part): Promise<SentPart> => {
    const { number, range } = part;
    const bytes = range.end - range.start;
    const crc = await crc32OfFile(range);
    const kept = there.get(number);
    if (kept?.size === bytes && kept.crc32 === crc) {
      means.onMoved(bytes);
      return { number, etag: kept.etag, crc, bytes };
    }
    return { number, crc, bytes, etag: await sendPart(part, { crc, uploadId, to, means }) };
  };
  const sent = await Promise.all(parts.map((part) => means.pool.run(() => send(part))));
  await assertUnchanged(upload);
  await complete(upload, { uploadId, sent, s3 });
  forget(memory);
}

/** Large enough that at most 10,000 parts are needed. */
export function partBytesFor(size: number): number {
  const mebibytes = Math.ceil(size / MAX_PARTS / 2 ** 20);
  return Math.max(PART_BYTES, mebibytes * 2 ** 20);
}

function partsOf(path: string, size: number, partBytes: number): Part[] {
  return Array.from({ length: Math.ceil(size / partBytes) }, (_, at) => {
    const start = at * partBytes;
    return { number: at + 1, range: { path, start, end: Math.min(size, start + partBytes) } };
  });
}

function begin({ to, headers }: Upload, s3: S3Client): Promise<string> {
  const { 'if-match': _, 'if-none-match': __, ...kept } = headers;
  const checksums = { 'x-amz-checksum-algorithm': 'CRC32', 'x-amz-checksum-type': 'FULL_OBJECT' };
  return s3.beginUpload(to.bucket, to.key, { ...kept, ...checksums });
}

interface PartCall {
  readonly crc: string;
  readonly uploadId: string;
  readonly to: RemoteLocation;
  readonly means: UploadMeans;
}

async function sendPart({ number, range }: Part, { crc, uploadId, to, means }: PartCall): Promise<string> {
  const answer = await means.s3.requests.call({
    method: 'PUT',
    ...to,
    query: { partNumber: String(number), uploadId },
    headers: { [CRC_HEADER]: crc },
    body: range,
    onSent: counting(means.onMoved),
  });
  assertSame(to, answer.headers[CRC_HEADER], crc);
  return answer.headers.etag ?? '';
}

interface Completion {
  readonly uploadId: string;
  readonly sent: readonly SentPart[];
  readonly s3: S3Client;
}

async function complete({ to, headers }: Upload, { uploadId, sent, s3 }: Completion): Promise<void> {
  const listed = sent.map(({ number, etag, crc }) => {
    const part = { PartNumber: number, ETag: etag, ChecksumCRC32: crc };
    return ['Part', Object.entries(part)] as const;
  });
  const whole = combinedCrc32(sent);
  const conditions = Object.entries(headers).filter(([name]) => name.startsWith('if-'));
  let answer: S3Answer;
  try {
    answer = await s3.requests.call({
      method: 'POST',
      ...to,
      query: { uploadId },
      headers: Object.fromEntries(conditions),
      body: Buffer.from(xmlDocument('CompleteMultipartUpload', listed)),
    });
  } catch (error) {
    // The response to a successful attempt may have been lost.
    const isGone = error instanceof S3Failure && error.code === 'NoSuchUpload';
    const there = isGone ? await s3.head(to.bucket, to.key) : undefined;
    if (there?.[CRC_HEADER] === whole) return;
    throw error;
  }
  assertSame(to, textOf(readAnswer(answer.text), 'ChecksumCRC32'), whole);
}

/** If the folder is not writable, as in many containers, an interrupted upload starts over. */
function remember(memory: string, what: Remembered, onNote: (text: string) => void): void {
  try {
    writePrivateFile(memory, JSON.stringify(what));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    onNote(`${cacheFolder()} is not writable (${code}): an interrupted upload will start over`);
  }
}

function forget(memory: string): void {
  try {
    rmSync(memory, { force: true });
  } catch {
    // The file is missing if it could not be written.
  }
}

function memoryOf({ path, to }: Upload, endpoint: string): string {
  const name = createHash('sha256').update([endpoint, to.bucket, to.key, path].join('\0')).digest('hex');
  return join(cacheFolder(), 'uploads', `${name.slice(0, 32)}.json`);
}

/** The upload of the file in its current state; undefined: none known. */
function readMemory(memory: string, { size, mtimeMs }: Upload): Remembered | undefined {
  try {
    const known = JSON.parse(readFileSync(memory, 'utf8')) as Remembered;
    return known.size === size && known.mtimeMs === mtimeMs ? known : undefined;
  } catch {
    return undefined;
  }
}

/** Uploads a stream of any length; each request keeps only one part in memory. */
export async function uploadStream(
  input: AsyncIterable<Buffer>,
  { to, headers }: Pick<Upload, 'to' | 'headers'>,
  means: UploadMeans,
): Promise<void> {
  const { s3 } = means;
  let uploadId: string | undefined;
  const sent: Promise<SentPart>[] = [];
  try {
    for await (const { bytes, isLast } of piecesOf(input)) {
      if (isLast && uploadId === undefined) {
        const crc = crc32Of(bytes);
        const asked = { method: 'PUT', ...to, body: bytes, headers: { ...headers, [CRC_HEADER]: crc } };
        await s3.requests.call(asked);
        means.onMoved(bytes.length);
        return;
      }
      uploadId ??= await begin({ path: '-', size: 0, mtimeMs: 0, to, headers }, s3);
      const part = { number: sent.length + 1, bytes };
      // The next piece is read while this one is sent; more would only use memory.
      const id = uploadId;
      const one = means.pool.run(() => sendPiece(part, { uploadId: id, to, means }));
      one.catch(() => {});
      sent.push(one);
      await sent.at(-4);
    }
    if (uploadId === undefined) return;
    const all = await Promise.all(sent);
    await complete({ path: '-', size: 0, mtimeMs: 0, to, headers }, { uploadId, sent: all, s3 });
  } catch (error) {
    // The input is gone, so the upload cannot be continued, and its parts cost until it ends.
    await Promise.allSettled(sent);
    if (uploadId !== undefined) await s3.abortUpload(to.bucket, to.key, uploadId).catch(() => {});
    throw error;
  }
}

async function sendPiece(
  { number, bytes }: { readonly number: number; readonly bytes: Buffer },
  { uploadId, to, means }: Omit<PartCall, 'crc'>,
): Promise<SentPart> {
  const crc = crc32Of(bytes);
  const answer = await means.s3.requests.call({
    method: 'PUT',
    ...to,
    query: { partNumber: String(number), uploadId },
    headers: { [CRC_HEADER]: crc },
    body: bytes,
  });
  means.onMoved(bytes.length);
  return { number, etag: answer.headers.etag ?? '', crc, bytes: bytes.length };
}

/** Parts of this size, which grow so that 10,000 of them hold 5 TiB. */
async function* piecesOf(input: AsyncIterable<Buffer>) {
  let [chunks, length, count]: [Buffer[], number, number] = [[], 0, 0];
  const sizeNow = () => PART_BYTES * 2 ** Math.floor(count / 1000);
  for await (const chunk of input) {
    chunks.push(chunk);
    length += chunk.length;
    if (length < sizeNow()) continue;
    yield { bytes: Buffer.concat(chunks), isLast: false };
    [chunks, length, count] = [[], 0, count + 1];
  }
  if (length > 0 || count === 0) yield { bytes: Buffer.concat(chunks), isLast: true };
}
