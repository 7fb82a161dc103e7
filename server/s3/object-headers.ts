/** Headers of S3 objects: what uploads store, and what reads show. */
import type { IncomingHttpHeaders } from 'node:http';
import type { BucketRow } from '../storage/buckets/buckets.ts';
import type { StoredChecksum } from '../storage/listing/name-listing.ts';
import { shownId } from '../storage/listing/name-listing.ts';
import type { Content } from '../storage/objects/downloads.ts';
import type { Naming } from '../storage/objects/objects.ts';
import { type ChecksumAlgorithm, checksumHeader } from './checksums.ts';
import { lockHeaders } from './lock.ts';
import { fromHeader, headerOf, toHeader } from './s3-call.ts';
import { S3Error } from './s3-error.ts';
import { tagsOf } from './tags.ts';

const META = 'x-amz-meta-';
const MAX_META_BYTES = 2048;
/** Headers that are stored with an object and sent with it. */
const STORED = ['cache-control', 'content-disposition', 'content-encoding', 'content-language', 'expires'];
/** Stored and shown too; no website here follows it. */
const REDIRECT = 'x-amz-website-redirect-location';
/** `response-…` parameters that replace a header of one answer. */
const OVERRIDES = [...STORED, 'content-type'].map((name) => [name, `response-${name}`] as const);
const UNKNOWN_TYPE = 'binary/octet-stream';
const TYPE_MAX_LENGTH = 255;

/**
 * Name, type, metadata and tags of an upload. Throws S3Error MetadataTooLarge, InvalidTag, InvalidArgument.
 */
export function labelsOf(name: string, headers: IncomingHttpHeaders): Naming {
  return { name, ...describedBy(headers), tags: tagsOf(headers) };
}

export function describedBy(headers: IncomingHttpHeaders): Omit<Naming, 'name' | 'tags'> {
  const type = headerOf({ headers }, 'content-type') ?? UNKNOWN_TYPE;
  if (type.length > TYPE_MAX_LENGTH) throw new S3Error('InvalidArgument', 'The Content-Type is too long');
  const storageClass = headers['x-amz-storage-class'];
  if (storageClass !== undefined && storageClass !== 'STANDARD') throw new S3Error('InvalidStorageClass');
  const meta: Record<string, string> = {};
  let bytes = 0;
  for (const [name, value] of Object.entries(headers)) {
    if (!name.startsWith(META) || typeof value !== 'string') continue;
    meta[name.slice(META.length)] = fromHeader(value);
    bytes += name.length - META.length + value.length;
  }
  if (bytes > MAX_META_BYTES) throw new S3Error('MetadataTooLarge');
  const metadata = Object.keys(meta).length === 0 ? null : JSON.stringify(meta);
  return { mimeType: type === '' ? UNKNOWN_TYPE : type, metadata, headers: storedHeaders(headers) };
}

function storedHeaders(headers: IncomingHttpHeaders): string | null {
  const stored: Record<string, string> = {};
  for (const name of [...STORED, REDIRECT]) {
    const value = headerOf({ headers }, name);
    const kept = name === 'content-encoding' ? withoutChunked(value) : value;
    if (kept !== undefined && kept !== '') stored[name] = kept;
  }
  if (stored[REDIRECT] !== undefined && !/^(?:\/|https?:\/\/)/.test(stored[REDIRECT])) {
    throw new S3Error('InvalidArgument', `${REDIRECT} must begin with /, http:// or https://`);
  }
  return Object.keys(stored).length === 0 ? null : JSON.stringify(stored);
}

/** Stored headers of a copy that keeps those of its source, but for its redirect. */
export function redirected(source: string | null, headers: IncomingHttpHeaders): string | null {
  const { [REDIRECT]: _, ...kept } = source === null ? {} : (JSON.parse(source) as Record<string, string>);
  const own = storedHeaders({ [REDIRECT]: headers[REDIRECT] });
  const stored = { ...kept, ...(own === null ? {} : JSON.parse(own)) };
  return Object.keys(stored).length === 0 ? null : JSON.stringify(stored);
}

/** `aws-chunked` describes the request, not the object. */
function withoutChunked(value: string | undefined): string | undefined {
  const codings = value?.split(',').map((coding) => coding.trim());
  return codings?.filter((coding) => coding.toLowerCase() !== 'aws-chunked').join(', ');
}

/** JSON for the row: a checksum of all bytes. */
export function fullObject({ algorithm, value }: { algorithm: ChecksumAlgorithm; value: string }): string {
  return JSON.stringify({ algorithm, type: 'FULL_OBJECT', value } satisfies StoredChecksum);
}

export function checksumOf({ checksum }: { readonly checksum: string | null }): StoredChecksum | null {
  return checksum === null ? null : (JSON.parse(checksum) as StoredChecksum);
}

/** The headers that show a checksum. */
export function checksumHeaders(checksum: string | null): Record<string, string> {
  const stored = checksumOf({ checksum });
  if (stored === null) return {};
  const name = checksumHeader(stored.algorithm as ChecksumAlgorithm);
  return { [name]: stored.value, 'x-amz-checksum-type': stored.type };
}

/** The version's id, where the bucket has or had versions. */
export function versionHeader(
  { versioning }: BucketRow,
  version: { readonly version_id: string; readonly is_null: number },
): Record<string, string> {
  return versioning === 0 ? {} : { 'x-amz-version-id': shownId(version) };
}

/** All headers of an object but those that depend on the part of it that is sent. */
export function objectHeaders(
  bucket: BucketRow,
  { row, etag, mimeType, createdAt }: Content,
  withChecksum: boolean,
): Record<string, string> {
  const stored = row.headers === null ? {} : (JSON.parse(row.headers) as Record<string, string>);
  const meta = row.metadata === null ? {} : (JSON.parse(row.metadata) as Record<string, unknown>);
  const tags = row.tags === null ? 0 : Object.keys(JSON.parse(row.tags)).length;
  const headers: Record<string, string> = {
    etag: `"${etag}"`,
    'last-modified': new Date(createdAt).toUTCString(),
    'content-type': toHeader(mimeType),
    'accept-ranges': 'bytes',
    ...versionHeader(bucket, row),
    ...lockHeaders(row),
  };
  for (const [name, value] of Object.entries(stored)) headers[name] = toHeader(value);
  for (const [name, value] of Object.entries(meta)) addMeta(headers, name, value);
  if (tags > 0) headers['x-amz-tagging-count'] = String(tags);
  if (withChecksum) Object.assign(headers, checksumHeaders(row.checksum));
  return headers;
}

/**
 * Metadata from REST may have names and values that no header can: values go as JSON, odd names are left
 * out.
 */
function addMeta(headers: Record<string, string>, name: string, value: unknown): void {
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) return;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: no header has them
  if (!/[\u0000-\u0008\u000a-\u001f\u007f]/.test(text)) headers[META + name.toLowerCase()] = toHeader(text);
}

/** Replaces headers by the `response-…` parameters of the request. */
export function overridden(query: ReadonlyMap<string, string>): Record<string, string> {
  const headers: Record<string, string> = {};
  if (query.size === 0) return headers;
  for (const [name, parameter] of OVERRIDES) {
    const value = query.get(parameter);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: no header has them
    if (value !== undefined && !/[\u0000-\u0008\u000a-\u001f\u007f]/.test(value))
      headers[name] = toHeader(value);
  }
  return headers;
}
