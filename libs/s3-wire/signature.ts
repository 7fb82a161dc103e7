/**
 * AWS Signature Version 4: one check for all modes, before a body is read or an operation chosen.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html
 */
import { createHmac, hash, timingSafeEqual } from 'node:crypto';
import { type Payload, payloadOf, readHeaderCredentials, readQueryCredentials } from './credentials.ts';
import { S3Error } from './s3-error.ts';

/** The path of `/a?b` and of `http://host/a?b`, the form sent to proxies. */
function pathAndQuery(rawUrl: string): string {
  if (rawUrl.startsWith('/')) return rawUrl;
  const [origin] = /^https?:\/\/[^/?]*/i.exec(rawUrl) ?? [];
  const rest = origin === undefined ? '' : rawUrl.slice(origin.length);
  if (rest.startsWith('?')) return `/${rest}`;
  if (origin !== undefined && rest === '') return '/';
  if (!rest.startsWith('/')) throw new S3Error('InvalidURI');
  return rest;
}

/** Split at the first `?`: path and query, as sent. Throws InvalidURI for a target without a path (`*`). */
export function splitTarget(rawUrl: string): { readonly rawPath: string; readonly rawQuery: string } {
  const target = pathAndQuery(rawUrl);
  const mark = target.indexOf('?');
  if (mark < 0) return { rawPath: target, rawQuery: '' };
  return { rawPath: target.slice(0, mark), rawQuery: target.slice(mark + 1) };
}

/** A request before its body, as received by Node. */
export interface RawRequest {
  readonly method: string;
  /** The request target. */
  readonly rawUrl: string;
  /** Alternating names and values. */
  readonly rawHeaders: readonly string[];
}

/** The request, parsed. */
export interface RequestHead {
  readonly method: string;
  readonly rawPath: string;
  readonly rawQuery: string;
  readonly headers: RawHeaders;
}

/** Throws S3Error InvalidURI. */
export function readHead({ method, rawUrl, rawHeaders }: RawRequest): RequestHead {
  return { method, ...splitTarget(rawUrl), headers: readHeaders(rawHeaders) };
}

/** The claims of a request, unverified. */
export interface SignedRequest {
  readonly accessKeyId: string;
  readonly mode: 'header' | 'presigned';
  /** The day of the credential's scope, `YYYYMMDD`. */
  readonly date: string;
  readonly region: string;
  /** Lower-case, in the client's order. */
  readonly signedHeaders: readonly string[];
  readonly payload: Payload;
  /** The payload as the client signed it: a hash or a word. */
  readonly signedPayload: string;
  /** `YYYYMMDDTHHMMSSZ`, and the same time in ms since 1970. */
  readonly dateTime: string;
  readonly timeMs: number;
  /** Validity of a presigned request; null in header mode. */
  readonly expiresSeconds: number | null;
  readonly signature: string;
}

/** The start of the chunks' signature chain. */
export interface VerifiedSignature {
  readonly signingKey: Buffer;
  /** The request's own signature, hex. */
  readonly seed: string;
  /** `date/region/s3/aws4_request`. */
  readonly scope: string;
  readonly dateTime: string;
}

/** The sender named by a request. */
export interface Claim {
  readonly accessKeyId: string;
  readonly payload: Payload;
  /** Time of signing, ms since 1970, in version 4. */
  readonly timeMs?: number;
  /** Presigned: headers in the query count after verification. */
  readonly isPresigned?: boolean;
  /** null: its chunks are not signed. Throws the errors of verifySignature. */
  readonly verify: (secret: string, nowMs: number) => VerifiedSignature | null;
}

const MAX_SKEW_MS = 15 * 60_000;
const MAX_KEYS = 1000;

/** Signing keys by key id, date and region, each with its secret; the oldest is dropped first. */
const signingKeys = new Map<string, { readonly secret: string; readonly key: Buffer }>();

/**
 * The sender named by a request; null if it is anonymous. Throws S3Error for credentials that are
 * malformed, duplicate or of an unsupported kind.
 */
export function readCredentials(head: RequestHead): SignedRequest | null {
  const { headers } = head;
  const pairs = queryPairs(head.rawQuery);
  const authorization = headers.get('authorization');
  const inQuery = pairs.some(([name]) =>
    /^(?:X-Amz-(?:Algorithm|Credential|Signature)|Signature)$/.test(name),
  );
  if (authorization === undefined && !inQuery) return null;
  if ((authorization?.length ?? 0) + (inQuery ? 1 : 0) > 1) {
    throw new S3Error(
      'InvalidArgument',
      'Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, Signature query string ' +
        'parameter or the Authorization header should be specified',
    );
  }
  if (headers.has('x-amz-security-token') || pairs.some(([name]) => name === 'X-Amz-Security-Token')) {
    throw new S3Error('InvalidToken');
  }
  const [value] = authorization ?? [];
  return value === undefined ? readQueryCredentials(pairs, headers) : readHeaderCredentials(value, headers);
}

/** Whether a request may be signed by version 2: false for nearly all. */
export function mayBeOld({ rawQuery, headers }: RequestHead): boolean {
  return rawQuery.includes('AWSAccessKeyId') || /^AWS(?: |$)/.test(headers.get('authorization')?.[0] ?? '');
}

/** The claim of a request; null if it is anonymous. Throws as readCredentials does. */
export function claimOf(head: RequestHead): Claim | null {
  const signed = readCredentials(head);
  if (signed === null) return null;
  const { accessKeyId, payload, timeMs } = signed;
  const verify = (secret: string, nowMs: number) => verifySignature(signed, head, secret, nowMs);
  return { accessKeyId, payload, timeMs, isPresigned: signed.mode === 'presigned', verify };
}

/**
 * The kind of body of an anonymous request. Throws S3Error for a value that needs a signature, or
 * is unknown.
 */
export function anonymousPayload(head: RequestHead): Payload {
  const [value] = head.headers.get('x-amz-content-sha256') ?? [];
  const payload: Payload = value === undefined ? { kind: 'unsigned' } : payloadOf(value);
  if (payload.kind !== 'chunked' || !payload.signed) return payload;
  throw new S3Error('AccessDenied', 'Signed chunks need a signed request');
}

/** A presigned URL must do what its signer intended: no header with an effect in S3 may be added. */
function checkAllSigned(headers: RawHeaders, signedHeaders: readonly string[]): void {
  const mustBeSigned = (name: string) =>
    name === 'host' || (name.startsWith('x-amz-') && name !== 'x-amz-content-sha256');
  const missing = ['host', ...headers.keys()].filter(
    (name, at, all) => mustBeSigned(name) && !signedHeaders.includes(name) && all.indexOf(name) === at,
  );
  if (missing.length === 0) return;
  throw new S3Error('AccessDenied', 'There were headers present in the request which were not signed', {
    fields: { HeadersNotSigned: missing.join(', ') },
  });
}

export function checkTime(
  { timeMs, dateTime, expiresSeconds }: Pick<SignedRequest, 'timeMs' | 'dateTime' | 'expiresSeconds'>,
  nowMs: number,
): void {
  if (expiresSeconds === null && Math.abs(nowMs - timeMs) <= MAX_SKEW_MS) return;
  const ServerTime = new Date(nowMs).toISOString();
  if (expiresSeconds === null) {
    const fields = {
      RequestTime: dateTime,
      ServerTime,
      MaxAllowedSkewMilliseconds: String(MAX_SKEW_MS),
    };
    throw new S3Error('RequestTimeTooSkewed', undefined, { fields });
  }
  if (timeMs - nowMs > MAX_SKEW_MS) {
    throw new S3Error('AccessDenied', 'Request is not valid yet', { fields: { ServerTime } });
  }
  const endMs = timeMs + expiresSeconds * 1000;
  if (nowMs <= endMs) return;
  const Expires = new Date(endMs).toISOString();
  const fields = { 'X-Amz-Expires': String(expiresSeconds), Expires, ServerTime };
  throw new S3Error('AccessDenied', 'Request has expired', { fields });
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

export function deriveKey(secret: string, date: string, region: string): Buffer {
  return hmac(hmac(hmac(hmac(`AWS4${secret}`, date), region), 's3'), 'aws4_request');
}

/** The owner of a signing key, which is valid for a day. */
type Scope = Pick<SignedRequest, 'accessKeyId' | 'date' | 'region'>;

export function scopeText({ date, region }: Omit<Scope, 'accessKeyId'>): string {
  return `${date}/${region}/s3/aws4_request`;
}

const nameOf = ({ accessKeyId, date, region }: Scope) => `${accessKeyId}/${date}/${region}`;

function signingKeyOf(scope: Scope, secret: string): Buffer {
  const known = signingKeys.get(nameOf(scope));
  return known?.secret === secret ? known.key : deriveKey(secret, scope.date, scope.region);
}

function remember(scope: Scope, secret: string, key: Buffer): void {
  const name = nameOf(scope);
  if (signingKeys.get(name)?.key === key) return;
  signingKeys.delete(name);
  signingKeys.set(name, { secret, key });
  for (const oldest of signingKeys.keys()) {
    if (signingKeys.size <= MAX_KEYS) return;
    signingKeys.delete(oldest);
  }
}

/** Constant time. */
export function isSameText(expected: string, given: string): boolean {
  return (
    given.length === expected.length && timingSafeEqual(Buffer.from(expected), Buffer.from(given, 'latin1'))
  );
}

type Signed = Scope & Pick<SignedRequest, 'mode' | 'dateTime' | 'signedHeaders' | 'signedPayload'>;

function stringToSign(signed: Signed, canonicalRequest: string): string {
  const digest = hash('sha256', Buffer.from(canonicalRequest, 'latin1'), 'hex');
  return `AWS4-HMAC-SHA256\n${signed.dateTime}\n${scopeText(signed)}\n${digest}`;
}

/** The signature of a request with RFC 3986 encoding. */
export function signatureFor(signed: Signed, head: RequestHead, secret: string): string {
  const [canonicalRequest = ''] = canonicalRequests(signed, head);
  const key = signingKeyOf(signed, secret);
  remember(signed, secret, key);
  return hmac(key, stringToSign(signed, canonicalRequest)).toString('hex');
}

/** Every canonical request that the client may have signed, the usual one first. */
function* canonicalRequests(
  signed: Pick<Signed, 'mode' | 'signedHeaders' | 'signedPayload'>,
  { method, rawPath, rawQuery, headers }: RequestHead,
): Generator<string> {
  const pairs = queryPairs(rawQuery).filter(
    ([name]) => signed.mode === 'header' || name !== 'X-Amz-Signature',
  );
  const query = canonicalQuery(pairs);
  const names = signed.signedHeaders.join(';');
  for (const path of canonicalPaths(rawPath)) {
    for (const lines of canonicalHeaders(headers, signed.signedHeaders)) {
      yield [method, path, query, lines, names, signed.signedPayload].join('\n');
    }
  }
}

/**
 * Throws S3Error: AccessDenied (a header that is not signed, a presigned request outside its
 * validity), RequestTimeTooSkewed, SignatureDoesNotMatch. For an unknown key id, call it with a
 * random secret: it takes as long as for a wrong signature. `nowMs` is the time of day, in ms since
 * 1970.
 */
// biome-ignore lint/complexity/useMaxParams: the request, twice, and what it is checked against
export function verifySignature(
  signed: SignedRequest,
  head: RequestHead,
  secret: string,
  nowMs: number,
): VerifiedSignature {
  const { accessKeyId, dateTime, signature } = signed;
  checkAllSigned(head.headers, signed.signedHeaders);
  checkTime(signed, nowMs);
  const signingKey = signingKeyOf(signed, secret);
  const fields = { AWSAccessKeyId: accessKeyId, SignatureProvided: signature };
  let tried: Readonly<Record<string, string>> = fields;
  for (const CanonicalRequest of canonicalRequests(signed, head)) {
    const StringToSign = stringToSign(signed, CanonicalRequest);
    if (isSameText(hmac(signingKey, StringToSign).toString('hex'), signature)) {
      // After verification, so that unauthenticated requests cannot evict cached keys.
      remember(signed, secret, signingKey);
      return { signingKey, seed: signature, scope: scopeText(signed), dateTime };
    }
    if (tried === fields) tried = { ...fields, StringToSign, CanonicalRequest };
  }
  throw new S3Error('SignatureDoesNotMatch', undefined, { fields: tried });
}

/** Lower-case names, each with its values in order. */
export type RawHeaders = ReadonlyMap<string, readonly string[]>;

/** From Node's `rawHeaders`, because `headers` drops or joins repeated ones. */
function readHeaders(rawHeaders: readonly string[]): RawHeaders {
  const headers = new Map<string, string[]>();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase() ?? '';
    const value = rawHeaders[at + 1] ?? '';
    const values = headers.get(name);
    if (values === undefined) headers.set(name, [value]);
    else values.push(value);
  }
  return headers;
}

function hex(byte: number): string {
  return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
}

/** Decodes and encodes again by RFC 3986: upper-case digits, and no unnecessary encoding. */
function recoded(raw: string): string {
  return raw.replace(/%([0-9A-Fa-f]{2})|[^A-Za-z0-9\-._~]/g, (found, digits: string | undefined) => {
    const byte = digits === undefined ? found.charCodeAt(0) : Number.parseInt(digits, 16);
    const character = String.fromCharCode(byte);
    return /[A-Za-z0-9\-._~]/.test(character) ? character : hex(byte);
  });
}

/**
 * The possible forms of the path that the client signed: as sent, which is S3's own rule, or
 * encoded, if it sent characters plainly that it encoded for signing; some then write `/` for
 * `%2F`. All identify one key.
 */
export function* canonicalPaths(rawPath: string): Generator<string> {
  // Most requests match the first.
  yield rawPath;
  const encoded = rawPath.split('/').map(recoded).join('/');
  if (encoded !== rawPath) yield encoded;
  const plain = encoded.replaceAll('%2F', '/');
  if (plain !== encoded && plain !== rawPath) yield plain;
}

/** Name and value of each parameter, recoded. `+` is a space, as target.ts reads it: never a signed `%2B`. */
function queryPairs(rawQuery: string): [name: string, value: string][] {
  const pairs = rawQuery.split('&').filter((pair) => pair !== '');
  return pairs.map((pair) => {
    const spaced = pair.replaceAll('+', '%20');
    const equals = spaced.indexOf('=');
    if (equals < 0) return [recoded(spaced), ''];
    return [recoded(spaced.slice(0, equals)), recoded(spaced.slice(equals + 1))];
  });
}

export type AmzPair = readonly [name: string, value: string];

/** Parameters `x-amz-…`: names in lower case, values decoded as latin-1 like headers. */
export function amzPairs(rawQuery: string): AmzPair[] {
  const bytesOf = (text: string) =>
    text.replace(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return queryPairs(rawQuery)
    .map(([name, value]): AmzPair => [bytesOf(name).toLowerCase(), bytesOf(value)])
    .filter(([name]) => name.startsWith('x-amz-'));
}

const order = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0);

/** Sorted by name, then by value. */
function canonicalQuery(pairs: readonly (readonly [name: string, value: string])[]): string {
  const sorted = pairs.toSorted(([a, x], [b, y]) => order(a, b) || order(x, y));
  return sorted.map(([name, value]) => `${name}=${value}`).join('&');
}

function collapsed(value: string): string {
  return value.trim().replace(/\s+/g, ' ');
}

function collapsedOutsideQuotes(value: string): string {
  return value.trim().replace(/"[^"]*"|\s+/g, (found) => (found.startsWith('"') ? found : ' '));
}

/**
 * The lines of the signed headers, `name:value\n`, in the client's order. Clients collapse spaces
 * everywhere; in Amazon's older documentation, those within quotes are kept: both are possible. A
 * header that is signed but missing counts as empty.
 */
function* canonicalHeaders(headers: RawHeaders, names: readonly string[]): Generator<string> {
  const lines = (tidy: (value: string) => string) =>
    names.map((name) => `${name}:${(headers.get(name) ?? []).map(tidy).join(',')}\n`).join('');
  const usual = lines(collapsed);
  yield usual;
  const other = lines(collapsedOutsideQuotes);
  if (other !== usual) yield other;
}
