/** Preconditions of S3 requests, on what is stored now (RFC 9110 §13). */
import type { IncomingHttpHeaders } from 'node:http';
import type { Condition, Tagged } from '../storage/listing/entries.ts';
import { S3Error } from './s3-error.ts';

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

/** A delete's expectations of the object; a missing one meets it. */
export interface DeleteExpectation {
  readonly etag?: string | undefined;
  readonly size?: number | undefined;
  /** ms since 1970; whole seconds count. */
  readonly modifiedAt?: number | undefined;
}

export function deleteCondition({ etag, size, modifiedAt }: DeleteExpectation): Condition | undefined {
  if (etag === undefined && size === undefined && modifiedAt === undefined) return undefined;
  return (current) => {
    if (current === undefined) return;
    const isOther =
      (etag !== undefined && !names(etag, current.etag)) ||
      (size !== undefined && size !== current.size_bytes) ||
      (modifiedAt !== undefined && seconds(modifiedAt) !== seconds(current.created_at));
    if (isOther) throw failed('If-Match');
  };
}

function failed(condition: string): S3Error {
  return new S3Error('PreconditionFailed', undefined, { fields: { Condition: condition } });
}
