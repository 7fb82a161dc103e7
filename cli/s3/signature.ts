/**
 * Signature Version 4, for headers and for links. Our own page of code, because libraries build URLs, and
 * URLs tidy up `a//b` and `../x`, which are names of objects like any other.
 */
import { createHash, createHmac } from 'node:crypto';
import type { S3Keys } from '../sign-in/profiles.ts';

const ALGORITHM = 'AWS4-HMAC-SHA256';
const UNSIGNED = 'UNSIGNED-PAYLOAD';
const REGION = 'us-east-1';

export interface ToSign {
  readonly method: string;
  /** Encoded, with the bucket. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
}

/** Encoded as RFC 3986 says. */
function encoded(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (found) => `%${found.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** The path of an object or a bucket. */
export function pathOf(bucket: string, key = ''): string {
  return `/${bucket}${key === '' ? '' : `/${key.split('/').map(encoded).join('/')}`}`;
}

/** Sorted, as it is signed and sent. */
export function queryText(query: Readonly<Record<string, string>>): string {
  return Object.entries(query)
    .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
    .sort()
    .join('&');
}

/** Headers of a signed request; the body is not signed, its checksum is a header of its own. */
export function signedHeaders(asked: ToSign, host: string, keys: S3Keys): Record<string, string> {
  const time = timeText();
  const headers: Record<string, string> = {
    ...asked.headers,
    host,
    'x-amz-content-sha256': UNSIGNED,
    'x-amz-date': time,
  };
  const { names, signature, scope } = sign({ ...asked, headers }, time, keys);
  const credential = `${keys.access_key_id}/${scope}`;
  headers['authorization'] =
    `${ALGORITHM} Credential=${credential}, SignedHeaders=${names}, Signature=${signature}`;
  return headers;
}

/** A link that needs no key, for so many seconds. */
export function presignedUrl(asked: ToSign, seconds: number, keys: S3Keys): string {
  const { host } = new URL(keys.endpoint);
  const time = timeText();
  const query = {
    ...asked.query,
    'X-Amz-Algorithm': ALGORITHM,
    'X-Amz-Credential': `${keys.access_key_id}/${scopeOf(time)}`,
    'X-Amz-Date': time,
    'X-Amz-Expires': String(seconds),
    'X-Amz-SignedHeaders': 'host',
  };
  const { signature } = sign({ ...asked, query, headers: { host } }, time, keys);
  return `${keys.endpoint}${asked.path}?${queryText(query)}&X-Amz-Signature=${signature}`;
}

function timeText(): string {
  return new Date().toISOString().replace(/[-:]|\.\d+/g, '');
}

function scopeOf(time: string): string {
  return `${time.slice(0, 8)}/${REGION}/s3/aws4_request`;
}

function sign({ method, path, query, headers }: ToSign, time: string, keys: S3Keys) {
  const sorted = Object.entries(headers).sort(([a], [b]) => (a < b ? -1 : 1));
  const names = sorted.map(([name]) => name).join(';');
  const lines = sorted.map(([name, value]) => `${name}:${value.trim().replace(/ +/g, ' ')}\n`).join('');
  const canonical = [method, path, queryText(query), lines, names, UNSIGNED].join('\n');
  const scope = scopeOf(time);
  const digest = createHash('sha256').update(canonical, 'latin1').digest('hex');
  const text = [ALGORITHM, time, scope, digest].join('\n');
  return {
    names,
    scope,
    signature: createHmac('sha256', signingKey(scope, keys)).update(text).digest('hex'),
  };
}

let kept: { readonly of: string; readonly key: Buffer } | undefined;

/** The same for a whole day. */
function signingKey(scope: string, { secret_access_key: secret }: S3Keys): Buffer {
  const of = `${scope} ${secret}`;
  if (kept?.of !== of) {
    const steps = scope.split('/');
    const hmac = (key: string | Buffer, step: string) => createHmac('sha256', key).update(step).digest();
    kept = { of, key: steps.reduce<string | Buffer>(hmac, `AWS4${secret}`) as Buffer };
  }
  return kept.key;
}
