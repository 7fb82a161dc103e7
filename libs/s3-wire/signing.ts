/**
 * Signature Version 4, for headers and for links. Paths are signed unchanged: URLs would normalize
 * `a//b` and `../x`, which are valid object names.
 */
import { ALGORITHM, basicIso, UNSIGNED_PAYLOAD } from './credentials.ts';
import { scopeText, signatureFor } from './signature.ts';

/** Headers that proxies change or networks add. */
const NOT_SIGNED = ['connection', 'content-length', 'expect', 'range', 'user-agent'];

export interface ToSign {
  readonly method: string;
  /** Encoded, with the bucket. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface Signer {
  readonly accessKeyId: string;
  readonly secret: string;
  readonly region: string;
  /** Time of the request, ms since 1970. */
  readonly nowMs: number;
}

/** Encoded as in RFC 3986. */
function encoded(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (found) => `%${found.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** The path of an object or a bucket. `bucket`: empty if it is part of the host name. */
export function pathOf(bucket: string, key = ''): string {
  const parts = [bucket, key.split('/').map(encoded).join('/')];
  return `/${parts.filter((part) => part !== '').join('/')}`;
}

/** Sorted, as signed and sent. */
export function queryText(query: Readonly<Record<string, string>>): string {
  return Object.entries(query)
    .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
    .sort()
    .join('&');
}

/**
 * All headers of a signed request. The body is not signed; its checksum protects it, if there is
 * one.
 */
export function signedHeaders(asked: ToSign, host: string, signer: Signer): Record<string, string> {
  const stated = stateOf(signer);
  const headers: Record<string, string> = {
    ...asked.headers,
    host,
    'x-amz-content-sha256': UNSIGNED_PAYLOAD,
    'x-amz-date': stated.dateTime,
  };
  const names = Object.keys(headers)
    .filter((name) => !NOT_SIGNED.includes(name))
    .sort();
  const signature = sign({ ...asked, headers }, { ...stated, mode: 'header', signedHeaders: names }, signer);
  const credential = `${signer.accessKeyId}/${scopeText(stated)}`;
  headers.authorization = `${ALGORITHM} Credential=${credential}, SignedHeaders=${names.join(';')}, Signature=${signature}`;
  return headers;
}

/** A link that needs no key, valid for this many seconds. `origin`: scheme and host. */
export function presignedUrl(
  asked: Omit<ToSign, 'headers'>,
  { origin, seconds }: { readonly origin: string; readonly seconds: number },
  signer: Signer,
): string {
  const { host } = new URL(origin);
  const stated = stateOf(signer);
  const query = {
    ...asked.query,
    'X-Amz-Algorithm': ALGORITHM,
    'X-Amz-Credential': `${signer.accessKeyId}/${scopeText(stated)}`,
    'X-Amz-Date': stated.dateTime,
    'X-Amz-Expires': String(seconds),
    'X-Amz-SignedHeaders': 'host',
  };
  const signed = { ...stated, mode: 'presigned', signedHeaders: ['host'] } as const;
  const signature = sign({ ...asked, query, headers: { host } }, signed, signer);
  return `${origin}${asked.path}?${queryText(query)}&X-Amz-Signature=${signature}`;
}

function stateOf({ region, nowMs }: Signer) {
  const dateTime = basicIso(nowMs);
  return { dateTime, date: dateTime.slice(0, 8), region, signedPayload: UNSIGNED_PAYLOAD };
}

type Stated = ReturnType<typeof stateOf> & {
  readonly mode: 'header' | 'presigned';
  readonly signedHeaders: readonly string[];
};

function sign(
  { method, path, query, headers }: ToSign,
  stated: Stated,
  { accessKeyId, secret }: Signer,
): string {
  const values = Object.entries(headers).map(([name, value]) => [name, [value]] as const);
  const head = { method, rawPath: path, rawQuery: queryText(query), headers: new Map(values) };
  return signatureFor({ ...stated, accessKeyId }, head, secret);
}
