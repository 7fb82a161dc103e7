/**
 * Bucket and key of a request, and the headers that a presigned link carries in its query. Read
 * from the raw request target: routers and `new URL()` would normalize `a//b`, `../x` and `%2F`,
 * which are valid keys.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { type AmzPair, amzPairs, S3Error, splitTarget } from '../../libs/s3-wire/index.ts';

export interface Target {
  /** The path exactly as sent, without the query: what signatures cover. */
  readonly rawPath: string;
  /** Null: the service itself. Not checked against the rules for names. */
  readonly bucket: string | null;
  /** Null: the bucket itself. Decoded once. */
  readonly key: string | null;
  /** Decoded, `+` as a space; of a name that comes twice, the first value. `?acl` has an empty value. */
  readonly query: ReadonlyMap<string, string>;
  /** The text after the first `?`, as sent; empty without one. */
  readonly rawQuery: string;
}

const MAX_KEY_BYTES = 1024;
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const PLAIN = /^[\x20-\x24\x26-\x7E]*$/;

/** Percent-decodes once. Throws InvalidURI if the result is not UTF-8 or contains U+0000. */
function decoded(raw: string): string {
  if (PLAIN.test(raw)) return raw;
  if (/%(?![0-9A-Fa-f]{2})|[\u0100-\uFFFF]/.test(raw)) throw new S3Error('InvalidURI');
  const bytes = raw.replace(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  try {
    const text = UTF8.decode(Buffer.from(bytes, 'latin1'));
    if (!text.includes('\0')) return text;
  } catch {
    // Not UTF-8.
  }
  throw new S3Error('InvalidURI');
}

function readQuery(rawQuery: string): Map<string, string> {
  const query = new Map<string, string>();
  for (const pair of rawQuery.split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const [name, value] = equals < 0 ? [pair, ''] : [pair.slice(0, equals), pair.slice(equals + 1)];
    const decodedName = decoded(name.replaceAll('+', ' '));
    if (!query.has(decodedName)) query.set(decodedName, decoded(value.replaceAll('+', ' ')));
  }
  return query;
}

/** The bucket in a host name: `<bucket>.<domain>`. */
export function bucketOfHost(host: string, domains: readonly string[]): string | null {
  const name = host.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase();
  for (const domain of domains) {
    const suffix = `.${domain.toLowerCase()}`;
    if (name.length > suffix.length && name.endsWith(suffix)) return name.slice(0, -suffix.length);
  }
  return null;
}

/**
 * Matches paths of buckets; not those of links, databases and invalid names. Buckets named `cdn` and `db`
 * exist there for signed requests only.
 */
const OF_BUCKET = /^\/(?!(?:cdn|db)\/)(?:[a-z0-9]*(?::|%3[Aa]))?[a-z0-9][a-z0-9._-]*(?:[/?]|$)/;

/** Whether a request without a signature is for a bucket. */
export function isForBucket(
  { url = '', headers }: Pick<IncomingMessage, 'url' | 'headers'>,
  domains: readonly string[],
): boolean {
  return OF_BUCKET.test(url) || bucketOfHost(headers.host ?? '', domains) !== null;
}

function readKey(raw: string): string | null {
  if (raw === '') return null;
  const key = decoded(raw);
  assertKey(key);
  return key;
}

/** Throws S3Error KeyTooLongError, InvalidURI. */
export function assertKey(key: string): void {
  if (key.includes('\0') || !key.isWellFormed()) throw new S3Error('InvalidURI');
  const sizeBytes = Buffer.byteLength(key);
  if (sizeBytes <= MAX_KEY_BYTES) return;
  throw new S3Error('KeyTooLongError', undefined, {
    fields: { Size: String(sizeBytes), MaxSizeAllowed: String(MAX_KEY_BYTES) },
  });
}

/**
 * `rawUrl` and `host` as from Node (one character per byte). With a host of `<bucket>.<domain>`,
 * that is the bucket; otherwise the first part of the path is. Throws S3Error: InvalidURI,
 * KeyTooLongError, and InvalidBucketName for a key without a bucket (`//key`).
 */
export function readTarget(rawUrl: string, host: string, domains: readonly string[]): Target {
  const { rawPath, rawQuery } = splitTarget(rawUrl);
  const query = readQuery(rawQuery);
  const hostBucket = bucketOfHost(host, domains);
  if (hostBucket !== null) {
    return { rawPath, rawQuery, query, bucket: hostBucket, key: readKey(rawPath.slice(1)) };
  }
  const slash = rawPath.indexOf('/', 1);
  const rawBucket = slash < 0 ? rawPath.slice(1) : rawPath.slice(1, slash);
  const key = slash < 0 ? null : readKey(rawPath.slice(slash + 1));
  if (rawBucket === '' && key !== null) throw new S3Error('InvalidBucketName');
  return { rawPath, rawQuery, query, bucket: rawBucket === '' ? null : decoded(rawBucket), key };
}

/**
 * Parameters of the signature itself, and those that Amazon does not support in links: checksums of
 * the body, which some signers compute of an empty one, and its framing.
 */
const NOT_ACTED_ON =
  /^x-amz-(?:algorithm|credential|date|expires|signedheaders|signature|security-token|content-sha256|checksum-.*|sdk-.*|trailer|decoded-content-length|user-agent)$/;
const COPY_SOURCE = 'x-amz-copy-source';

/**
 * The effective headers of a request: those sent, and those in the query of a presigned URL whose
 * signature was verified. Throws S3Error AccessDenied for a header that contradicts the URL,
 * InvalidArgument for a parameter that comes twice or that cannot be a header, InvalidRequest for a
 * copy requested by the query of another request.
 */
export function headersThatCount(
  { method, headers }: Pick<IncomingMessage, 'method' | 'headers'>,
  rawQuery: string,
  isPresigned: boolean,
): IncomingHttpHeaders {
  if (!rawQuery.includes('=')) return headers;
  const pairs = amzPairs(rawQuery);
  if (isPresigned) return withPairs(headers, pairs);
  // Unknown query parameters are ignored, but must not turn a PUT into an empty object.
  if (method === 'PUT' && pairs.some(([name]) => name === COPY_SOURCE)) {
    throw new S3Error(
      'InvalidRequest',
      `${COPY_SOURCE} must be a header; as a query parameter it is allowed only in presigned URLs`,
    );
  }
  return headers;
}

function withPairs(headers: IncomingHttpHeaders, pairs: readonly AmzPair[]): IncomingHttpHeaders {
  const found: Record<string, string> = {};
  for (const [name, value] of pairs) {
    if (NOT_ACTED_ON.test(name)) continue;
    const text = headerText('parameter', name, value);
    if (Object.hasOwn(found, name)) {
      throw new S3Error('InvalidArgument', `The parameter ${name} may be given only once`, {
        fields: { ArgumentName: name },
      });
    }
    if (headers[name] !== undefined && headers[name] !== text) {
      throw new S3Error('AccessDenied', `The header ${name} differs from the presigned URL`);
    }
    found[name] = text;
  }
  return Object.keys(found).length === 0 ? headers : { ...headers, ...found };
}

/**
 * `text` has one character per byte, and loses the spaces around it, like headers. Throws S3Error
 * InvalidArgument for characters that headers cannot have.
 */
export function headerText(kind: 'field' | 'parameter', name: string, text: string): string {
  const trimmed = text.trim();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: no header has them
  if (!/[\u0000-\u0008\u000a-\u001f\u007f]/.test(trimmed) && /^[\w!#$%&'*+.^`|~-]+$/.test(name)) {
    return trimmed;
  }
  throw new S3Error('InvalidArgument', `The ${kind} ${name} has characters that headers cannot contain`);
}
