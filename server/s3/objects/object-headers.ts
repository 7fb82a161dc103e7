/** Headers of S3 objects: stored by uploads, shown by reads, and the conditions of both (RFC 9110 §13). */
import type { IncomingHttpHeaders } from 'node:http';
import { type ChecksumAlgorithm, checksumHeader, S3Error } from '../../../libs/s3-wire/index.ts';
import { settingsOf } from '../../storage/buckets/bucket-settings.ts';
import type { BucketRow } from '../../storage/buckets/buckets.ts';
import { currentExpiry, type Filtered, uploadExpiry } from '../../storage/lifecycle/lifecycle-rules.ts';
import type { Condition, Tagged } from '../../storage/listing/entries.ts';
import type { StoredChecksum } from '../../storage/listing/name-listing.ts';
import { shownId } from '../../storage/listing/name-listing.ts';
import type { Content } from '../../storage/objects/downloads.ts';
import type { LockRow, WantedLock } from '../../storage/objects/object-lock.ts';
import type { Naming } from '../../storage/objects/objects.ts';
import { VERSIONING } from '../../storage/schema.ts';
import { accessOf, fromHeader, headerOf, isoTime, keyOf, type S3Call, toHeader } from '../s3-call.ts';
import { assertLockable, invalidLock, isMode, readUntil } from './lock.ts';
import { type Tags, tagText } from './tags.ts';

const LOCK = 'x-amz-object-lock-';
const META = 'x-amz-meta-';
const MAX_META_BYTES = 2048;
/** Headers that are stored with an object and returned with it. */
const STORED = ['cache-control', 'content-disposition', 'content-encoding', 'content-language', 'expires'];
/** Stored and shown too; there are no websites here that follow it. */
const REDIRECT = 'x-amz-website-redirect-location';
/** `response-…` parameters that override a response header. */
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
  // A Map, because `x-amz-meta-__proto__` is a valid header.
  const meta = new Map<string, string>();
  let bytes = 0;
  for (const [name, value] of Object.entries(headers)) {
    if (!name.startsWith(META) || typeof value !== 'string') continue;
    meta.set(name.slice(META.length), fromHeader(value));
    bytes += name.length - META.length + value.length;
  }
  if (bytes > MAX_META_BYTES) throw new S3Error('MetadataTooLarge');
  const metadata = meta.size === 0 ? null : JSON.stringify(Object.fromEntries(meta));
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

/** Stored headers of a copy, like the source's except for the redirect. */
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

/** JSON for the row: a checksum of the whole object. */
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

/** The version's id, if the bucket has or had versions. */
export function versionHeader(
  { versioning }: BucketRow,
  version: { readonly version_id: string; readonly is_null: number },
): Record<string, string> {
  return versioning === 0 ? {} : { 'x-amz-version-id': shownId(version) };
}

/** The id of a new version; none is shown if the bucket's versioning is suspended. */
export function newVersionHeader(bucket: BucketRow, versionId: string): Record<string, string> {
  return bucket.versioning === VERSIONING.on ? { 'x-amz-version-id': versionId } : {};
}

/** All headers of an object except those of the requested range. */
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
 * Metadata from REST may have names and values that headers cannot: such values are sent as JSON,
 * such names are omitted.
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

type Prefix = '' | 'x-amz-copy-source-';

const seconds = (ms: number) => Math.floor(ms / 1000);

function names(header: string, etag: string): boolean {
  const tags = header.split(',').map((tag) =>
    tag
      .trim()
      .replace(/^W\//, '')
      .replace(/^"(.*)"$/, '$1'),
  );
  return tags.includes('*') || tags.includes(etag);
}

/** True if the client's copy is current. Throws S3Error PreconditionFailed. */
export function isNotModified(
  headers: IncomingHttpHeaders,
  { etag, createdAt }: { readonly etag: string; readonly createdAt: number },
  prefix: Prefix = '',
): boolean {
  const text = (name: string) => headers[`${prefix}${name}`]?.toString();
  const [match, noneMatch] = [text('if-match'), text('if-none-match')];
  const since = Date.parse(text('if-modified-since') ?? '');
  const until = Date.parse(text('if-unmodified-since') ?? '');
  if (match !== undefined && !names(match, etag)) throw failed('If-Match');
  if (match === undefined && seconds(createdAt) > seconds(until)) throw failed('If-Unmodified-Since');
  if (noneMatch !== undefined) return names(noneMatch, etag);
  return seconds(createdAt) <= seconds(since);
}

/**
 * `If-Match` and `If-None-Match` of a write. Throws S3Error PreconditionFailed or, without an object,
 * NoSuchKey.
 */
export function writeCondition(headers: IncomingHttpHeaders): Condition | undefined {
  const { 'if-match': match, 'if-none-match': noneMatch } = headers;
  if (match === undefined && noneMatch === undefined) return undefined;
  return (current: Tagged | undefined) => {
    if (match !== undefined && current === undefined) throw new S3Error('NoSuchKey');
    if (match !== undefined && current !== undefined && !names(match, current.etag)) throw failed('If-Match');
    if (noneMatch !== undefined && current !== undefined && names(noneMatch, current.etag))
      throw failed('If-None-Match');
  };
}

/** Conditions of a delete. A missing object has neither size nor time, but no ETag either. */
export interface DeleteExpectation {
  readonly etag?: string | undefined;
  readonly size?: number | undefined;
  /** ms since 1970; whole seconds count. */
  readonly modifiedAt?: number | undefined;
}

export function deleteCondition({ etag, size, modifiedAt }: DeleteExpectation): Condition | undefined {
  if (etag === undefined && size === undefined && modifiedAt === undefined) return undefined;
  return (current, marker) => {
    const found = current ?? marker;
    if (found === undefined && etag !== undefined) throw new S3Error('NoSuchKey');
    if (found === undefined) return;
    const isOther =
      (etag !== undefined && (current === undefined || !names(etag, current.etag))) ||
      (size !== undefined && size !== found.size_bytes) ||
      (modifiedAt !== undefined && seconds(modifiedAt) !== seconds(found.created_at));
    if (isOther) throw failed('If-Match');
  };
}

function failed(condition: string): S3Error {
  return new S3Error('PreconditionFailed', undefined, { fields: { Condition: condition } });
}

/**
 * The lock in the headers of an upload. Throws S3Error InvalidArgument, InvalidRequest, and
 * AccessDenied if the caller may upload, but not lock.
 */
export function wantedLock(call: S3Call, bucket: BucketRow): WantedLock | undefined {
  const { headers } = call.what;
  const { now } = call.tools;
  const of = (name: string) => headers[LOCK + name]?.toString();
  const [mode, until, hold] = [of('mode'), of('retain-until-date'), of('legal-hold')];
  if (mode === undefined && until === undefined && hold === undefined) return undefined;
  assertLockable(bucket);
  const asked = { permission: 'storage:append', key: keyOf(call.what) } as const;
  if (mode !== undefined) accessOf(call).assert({ ...asked, action: 's3:PutObjectRetention' });
  if (hold !== undefined) accessOf(call).assert({ ...asked, action: 's3:PutObjectLegalHold' });
  if ((mode === undefined) !== (until === undefined)) {
    throw invalidLock(`${LOCK}retain-until-date and ${LOCK}mode must both be supplied`);
  }
  if (mode !== undefined && !isMode(mode)) throw invalidLock('Unknown wormMode directive.');
  if (hold !== undefined && hold !== 'ON' && hold !== 'OFF') {
    throw invalidLock("Legal Hold must be either of 'ON' or 'OFF'");
  }
  return {
    ...(mode !== undefined && { retention: { mode, until: readUntil(until ?? '', now()) } }),
    ...(hold !== undefined && { legalHold: hold === 'ON' }),
  };
}

/** The headers that show the lock of a version. */
function lockHeaders({ lock_mode, retain_until, legal_hold }: LockRow): Record<string, string> {
  const headers: Record<string, string> = {};
  if (lock_mode !== null && retain_until !== null) {
    headers[`${LOCK}mode`] = lock_mode;
    headers[`${LOCK}retain-until-date`] = isoTime(retain_until);
  }
  if (legal_hold !== null) headers[`${LOCK}legal-hold`] = legal_hold === 1 ? 'ON' : 'OFF';
  return headers;
}

/** The tags of `x-amz-tagging`, as JSON; null: none. Throws S3Error InvalidTag. */
export function tagsOf(headers: IncomingHttpHeaders): string | null {
  const text = headerOf({ headers }, 'x-amz-tagging');
  if (text === undefined || text === '') return null;
  const pairs = text.split('&').map((pair): [string, string] => {
    const equals = pair.indexOf('=');
    const [name, value] = equals < 0 ? [pair, ''] : [pair.slice(0, equals), pair.slice(equals + 1)];
    try {
      return [decodeURIComponent(name.replaceAll('+', ' ')), decodeURIComponent(value.replaceAll('+', ' '))];
    } catch {
      throw new S3Error('InvalidArgument', 'The header x-amz-tagging is not URL-encoded');
    }
  });
  return tagText(pairs);
}

/** The tags that a request assigns, for the access decision. */
export function requestedTags(headers: IncomingHttpHeaders): Tags | undefined {
  const tags = tagsOf(headers);
  return tags === null ? undefined : (JSON.parse(tags) as Tags);
}

/** The expiration header of a current version; none if no rule applies. */
export function expirationHeader(
  bucket: Pick<BucketRow, 'settings'>,
  object: Filtered,
): Record<string, string> {
  const { lifecycle } = settingsOf(bucket);
  const expiry = lifecycle && currentExpiry(lifecycle, object);
  if (expiry === undefined) return {};
  const date = new Date(expiry.at).toUTCString();
  return { 'x-amz-expiration': `expiry-date="${date}", rule-id="${encodeURIComponent(expiry.ruleId)}"` };
}

/** The headers with the abort date of a multipart upload; none if no rule applies. */
export function abortHeaders(
  bucket: Pick<BucketRow, 'settings'>,
  upload: Pick<Filtered, 'name' | 'created_at'>,
): Record<string, string> {
  const { lifecycle } = settingsOf(bucket);
  const expiry = lifecycle && uploadExpiry(lifecycle, upload);
  if (expiry === undefined) return {};
  const id = encodeURIComponent(expiry.ruleId);
  return { 'x-amz-abort-date': new Date(expiry.at).toUTCString(), 'x-amz-abort-rule-id': id };
}
