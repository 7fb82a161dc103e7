/** Reads objects: finds them, checks conditions and ranges, and sends their bytes. */

import { S3Error } from '../../../libs/s3-wire/index.ts';
import { parseRange, type Read, streamBody } from '../../http/bodies/send-content.ts';
import type { BucketRow } from '../../storage/buckets/buckets.ts';
import type { Content } from '../../storage/objects/downloads.ts';
import { MAX_PARTS } from '../../storage/uploads/part-uploads.ts';
import type { ReceivedBytes, Upload } from '../../storage/uploads/upload.ts';
import { accessOf, contentOf, type S3Answer, type S3Call, type S3Request } from '../s3-call.ts';
import { assertReadsPlainly, shownEncryption, storedEncryption, unlocked } from './encryption-headers.ts';
import {
  checksumHeaders,
  checksumOf,
  expirationHeader,
  isNotModified,
  objectHeaders,
  overridden,
  versionHeader,
} from './object-headers.ts';

/** Copies the bytes of an object into an upload. */
export async function readAll(call: S3Call, content: Content, upload: Sink): Promise<ReceivedBytes> {
  return readRange(call, content, { upload, range: { start: 0, end: content.sizeBytes } });
}

export async function readRange(
  call: S3Call,
  content: Content,
  {
    upload,
    range,
  }: {
    readonly upload: Sink;
    readonly range: { readonly start: number; readonly end: number };
  },
): Promise<ReceivedBytes> {
  const gone = new AbortController();
  const leave = () => gone.abort(new S3Error('RequestTimeout'));
  call.tools.response.once('close', leave);
  try {
    const sink = (chunk: Uint8Array) => upload.write(chunk);
    await call.tools.storage.downloads.read(content, { range, sink, signal: gone.signal });
    return await upload.finish();
  } finally {
    call.tools.response.off('close', leave);
  }
}

type Sink = Pick<Upload, 'write' | 'finish'>;

interface Reading {
  readonly bucket: BucketRow;
  readonly content: Content;
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly range: { readonly start: number; readonly end: number };
}

/** GetObject. */
export async function sendObject(call: S3Call): Promise<S3Answer | undefined> {
  const reading = await prepare(call);
  if (!('range' in reading)) return reading;
  const { content, status, headers, range } = reading;
  const { downloads } = call.tools.storage;
  const { response } = call.tools;
  const head = { ...call.tools.common, ...headers };
  downloads.touch(content, call);
  if (content.inline !== null) {
    const bytes = content.inline.subarray(range.start, range.end);
    const isThere = !response.destroyed;
    response.writeHead(status, head);
    response.end(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1'), 'latin1');
    if (isThere) downloads.countSent(content, bytes.length);
    return undefined;
  }
  const read: Read = (sink, signal) => {
    const counting = async (chunk: Uint8Array) => {
      await sink(chunk);
      downloads.countSent(content, chunk.length);
    };
    return downloads.read(content, { range, sink: counting, signal });
  };
  await streamBody(response, read, () => response.writeHead(status, head));
  return undefined;
}

/** HeadObject. */
export async function headObject(call: S3Call): Promise<S3Answer> {
  const reading = await prepare(call);
  if (!('range' in reading)) return reading;
  return { status: reading.status, headers: reading.headers };
}

/** The response itself if the client's copy is current. */
async function prepare(call: S3Call): Promise<Reading | S3Answer> {
  const { query } = call.what.target;
  const { bucket } = accessOf(call);
  assertReadsPlainly(call);
  const content = unlocked(call, contentOf(call));
  const etag = `"${content.etag}"`;
  if (isNotModified(call.what.headers, content)) {
    const lastModified = new Date(content.createdAt).toUTCString();
    const headers = { etag, 'last-modified': lastModified, ...versionHeader(bucket, content.row) };
    return { status: 304, headers };
  }
  const whole = { start: 0, end: content.sizeBytes };
  const part = query.has('partNumber') ? await partOf(call, content) : undefined;
  const range = part?.range ?? rangeOf(call.what, content) ?? whole;
  // An empty range cannot be expressed.
  const isPartial = (part !== undefined || range !== whole) && range.end > range.start;
  const withChecksum = call.what.headers['x-amz-checksum-mode'] === 'ENABLED';
  const headers = {
    ...objectHeaders(bucket, content, withChecksum && (!isPartial || part?.count === 0)),
    ...(withChecksum && part && checksumHeaders(part.checksum)),
    ...shownEncryption(call, await storedEncryption(call, content)),
    ...(!query.has('versionId') && expirationHeader(bucket, content.row)),
    ...overridden(query),
    'content-length': String(range.end - range.start),
    ...(isPartial && { 'content-range': `bytes ${range.start}-${range.end - 1}/${content.sizeBytes}` }),
    ...(part && part.count > 0 && { 'x-amz-mp-parts-count': String(part.count) }),
  };
  return { bucket, content, status: isPartial ? 206 : 200, headers, range };
}

function rangeOf({ headers }: S3Request, { sizeBytes, etag, createdAt }: Content) {
  const condition = headers['if-range'];
  const isCurrent =
    condition === undefined || [`"${etag}"`, new Date(createdAt).toUTCString()].includes(String(condition));
  const range = isCurrent && headers.range ? parseRange(headers.range, sizeBytes) : undefined;
  if (range !== 'unsatisfiable') return range;
  throw new S3Error('InvalidRange', undefined, {
    fields: { RangeRequested: String(headers.range), ActualObjectSize: String(sizeBytes) },
    headers: { 'content-range': `bytes */${sizeBytes}` },
  });
}

/** The part with `partNumber`, and the number of parts. Throws S3Error InvalidPartNumber. */
async function partOf(call: S3Call, { row, sizeBytes }: Content) {
  const text = call.what.target.query.get('partNumber') ?? '';
  const number = Number(text);
  if (!/^\d{1,5}$/.test(text) || number < 1 || number > MAX_PARTS)
    throw new S3Error('InvalidArgument', 'Part number must be an integer between 1 and 10000, inclusive');
  if (call.what.headers.range !== undefined) {
    throw new S3Error('InvalidRequest', 'Cannot specify both Range header and partNumber query parameter');
  }
  const parts = row.upload === null ? [] : await call.tools.storage.partUploads.assembledFrom(row.upload);
  if (parts.length === 0) {
    if (number === 1) return { range: { start: 0, end: sizeBytes }, count: 0, checksum: null };
    throw new S3Error('InvalidPartNumber');
  }
  const at = number - 1;
  const part = parts[at];
  if (part === undefined) throw new S3Error('InvalidPartNumber');
  const start = parts.slice(0, at).reduce((sum, { size_bytes: bytes }) => sum + bytes, 0);
  const end = start + part.size_bytes;
  return { range: { start, end }, count: parts.length, checksum: partChecksum(part.checksum, row) };
}

/** A part's checksum, in the object's form; null: none. */
function partChecksum(value: string | null, row: Content['row']): string | null {
  const whole = checksumOf(row);
  return value === null || whole === null ? null : JSON.stringify({ ...whole, value });
}
