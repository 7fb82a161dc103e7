/**
 * Signature Version 4, for headers and for links. Paths are signed as they are: URLs tidy up `a//b` and
 * `../x`, which are names of objects like any other.
 */
import { createHash, createHmac } from 'node:crypto';

const ALGORITHM = 'AWS4-HMAC-SHA256';
const UNSIGNED = 'UNSIGNED-PAYLOAD';

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
  /** Of the request, ms since 1970. */
  readonly nowMs: number;
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
export function signedHeaders(asked: ToSign, host: string, signer: Signer): Record<string, string> {
  const time = timeText(signer);
  const headers: Record<string, string> = {
    ...asked.headers,
    host,
    'x-amz-content-sha256': UNSIGNED,
    'x-amz-date': time,
  };
  const { names, signature, scope } = sign({ ...asked, headers }, time, signer);
  const credential = `${signer.accessKeyId}/${scope}`;
  headers['authorization'] =
    `${ALGORITHM} Credential=${credential}, SignedHeaders=${names}, Signature=${signature}`;
  return headers;
}

/** A link that needs no key, for so many seconds. `origin`: scheme and host. */
export function presignedUrl(
  asked: ToSign,
  { origin, seconds }: { readonly origin: string; readonly seconds: number },
  signer: Signer,
): string {
  const { host } = new URL(origin);
  const time = timeText(signer);
  const query = {
    ...asked.query,
    'X-Amz-Algorithm': ALGORITHM,
    'X-Amz-Credential': `${signer.accessKeyId}/${scopeOf(time, signer)}`,
    'X-Amz-Date': time,
    'X-Amz-Expires': String(seconds),
    'X-Amz-SignedHeaders': 'host',
  };
  const { signature } = sign({ ...asked, query, headers: { host } }, time, signer);
  return `${origin}${asked.path}?${queryText(query)}&X-Amz-Signature=${signature}`;
}

function timeText({ nowMs }: Signer): string {
  return new Date(nowMs).toISOString().replace(/[-:]|\.\d+/g, '');
}

function scopeOf(time: string, { region }: Signer): string {
  return `${time.slice(0, 8)}/${region}/s3/aws4_request`;
}

function sign({ method, path, query, headers }: ToSign, time: string, signer: Signer) {
  const sorted = Object.entries(headers).sort(([a], [b]) => (a < b ? -1 : 1));
  const names = sorted.map(([name]) => name).join(';');
  const lines = sorted.map(([name, value]) => `${name}:${value.trim().replace(/ +/g, ' ')}\n`).join('');
  const canonical = [method, path, queryText(query), lines, names, UNSIGNED].join('\n');
  const scope = scopeOf(time, signer);
  const digest = createHash('sha256').update(canonical, 'latin1').digest('hex');
  const text = [ALGORITHM, time, scope, digest].join('\n');
  return {
    names,
    scope,
    signature: createHmac('sha256', signingKey(scope, signer)).update(text).digest('hex'),
  };
}

let kept: { readonly of: string; readonly key: Buffer } | undefined;

/** The same for a whole day. */
function signingKey(scope: string, { secret }: Signer): Buffer {
  const of = `${scope} ${secret}`;
  if (kept?.of !== of) {
    const steps = scope.split('/');
    const hmac = (key: string | Buffer, step: string) => createHmac('sha256', key).update(step).digest();
    kept = { of, key: steps.reduce<string | Buffer>(hmac, `AWS4${secret}`) as Buffer };
  }
  return kept.key;
}
