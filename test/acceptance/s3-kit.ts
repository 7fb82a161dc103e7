/**
 * Shared by the tests of S3: a client that signs according to Amazon's text and sends targets and bodies
 * unchanged, because URL parsers normalize `a//b` and `../x`.
 */
import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingHttpHeaders, request as sendRequest } from 'node:http';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';

export interface KeyPair {
  readonly access_key_id: string;
  readonly secret_access_key: string;
}

export interface S3Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly text: string;
}

/** The signing mode of a body. */
export type Mode = 'hash' | 'unsigned' | 'signed-chunks' | 'signed-trailer' | 'unsigned-trailer';

export interface S3Request {
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  readonly mode?: Mode;
  /** Trailers, in the modes that have them. */
  readonly trailers?: Readonly<Record<string, string>>;
  /** ms since 1970. */
  readonly at?: number;
  /** Seconds: signs in the query instead of the headers. */
  readonly presigned?: number;
}

/** A signed request as sent. */
export interface Prepared {
  readonly method: string;
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

const WORDS: Readonly<Record<Exclude<Mode, 'hash'>, string>> = {
  unsigned: 'UNSIGNED-PAYLOAD',
  'signed-chunks': 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD',
  'signed-trailer': 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER',
  'unsigned-trailer': 'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
};
const CHUNK_BYTES = 64 * 1024;
const sha256 = (text: string | Uint8Array) => createHash('sha256').update(text).digest('hex');
const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();
const EMPTY = sha256('');

/** Encoded according to RFC 3986. */
export function encoded(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (found) => `%${found.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** The path of a key. */
export function pathOf(bucket: string, key: string): string {
  return `/${bucket}/${key.split('/').map(encoded).join('/')}`;
}

interface Signing {
  readonly key: Buffer;
  readonly dateTime: string;
  readonly scope: string;
  readonly seed: string;
}

/** Encoded, and sorted by name; a name without a value has an empty one. */
function canonicalQuery(query: string): string {
  const pairs = query.split('&').filter((pair) => pair !== '');
  return pairs
    .map((pair) => {
      const [name = '', value = ''] = pair.split('=', 2).map((text) => encoded(decodeURIComponent(text)));
      return [name, value] as const;
    })
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map((pair) => pair.join('='))
    .join('&');
}

/** The body in chunks; each carries a signature if the mode requires it. */
function framed(body: Buffer, { mode, trailers = {} }: S3Request, { key, dateTime, scope, seed }: Signing) {
  const isSigned = mode !== 'unsigned-trailer';
  const pieces: Buffer[] = [];
  let before = seed;
  const sign = (kind: string, hashes: string) => {
    before = hmac(key, [kind, dateTime, scope, before, hashes].join('\n')).toString('hex');
    return before;
  };
  const starts = Array.from({ length: Math.ceil(body.length / CHUNK_BYTES) }, (_, at) => at * CHUNK_BYTES);
  for (const start of [...starts, body.length]) {
    const chunk = body.subarray(start, start + CHUNK_BYTES);
    const signature = isSigned
      ? `;chunk-signature=${sign('AWS4-HMAC-SHA256-PAYLOAD', `${EMPTY}\n${sha256(chunk)}`)}`
      : '';
    pieces.push(Buffer.from(`${chunk.length.toString(16)}${signature}\r\n`), chunk);
    if (chunk.length > 0) pieces.push(Buffer.from('\r\n'));
  }
  const lines = Object.entries(trailers).map(([name, value]) => `${name}:${value}`);
  if (mode === 'signed-trailer') {
    const hash = sha256(lines.map((line) => `${line}\n`).join(''));
    lines.push(`x-amz-trailer-signature:${sign('AWS4-HMAC-SHA256-TRAILER', hash)}`);
  }
  pieces.push(Buffer.from([...lines, '', ''].join('\r\n')));
  return Buffer.concat(pieces);
}

/** Headers of a body in chunks. */
function framing({ mode = 'hash', trailers = {} }: S3Request, body: Buffer): Record<string, string> {
  if (mode === 'hash' || mode === 'unsigned') return {};
  const names = Object.keys(trailers).join(',');
  return {
    'content-encoding': 'aws-chunked',
    'x-amz-decoded-content-length': String(body.length),
    ...(names !== '' && { 'x-amz-trailer': names }),
  };
}

export class S3Client {
  readonly base: string;
  readonly pair: KeyPair;
  readonly region = 'us-east-1';

  constructor(base: string, pair: KeyPair) {
    this.base = base;
    this.pair = pair;
  }

  /** `path`: encoded, as sent. */
  async call(method: string, path: string, request: S3Request = {}): Promise<S3Reply> {
    return transmit(this.base, this.prepare(method, path, request));
  }

  /** The body of a successful answer. */
  async ok(method: string, path: string, request: S3Request = {}): Promise<S3Reply> {
    const reply = await this.call(method, path, request);
    assert.ok(reply.status >= 200 && reply.status < 300, `${method} ${path}: ${reply.status} ${reply.text}`);
    return reply;
  }

  /** A refusal: its status, its code, and the request's id in headers and body. */
  async refused(status: number, code: string, call: Parameters<S3Client['call']>): Promise<S3Reply> {
    const reply = await this.call(...call);
    assertRefused(reply, status, code);
    return reply;
  }

  prepare(method: string, path: string, request: S3Request = {}): Prepared {
    const { mode = 'hash', at = Date.now(), presigned } = request;
    const body = Buffer.from(request.body ?? '');
    const dateTime = new Date(at).toISOString().replace(/[-:]|\.\d+/g, '');
    const scope = `${dateTime.slice(0, 8)}/${this.region}/s3/aws4_request`;
    const payload = mode === 'hash' ? sha256(body) : WORDS[mode];
    const common = { host: new URL(this.base).host, ...framing(request, body), ...request.headers };
    const headers: Record<string, string> =
      presigned === undefined
        ? { ...common, 'x-amz-content-sha256': payload, 'x-amz-date': dateTime }
        : common;
    const names = Object.keys(headers)
      .map((name) => name.toLowerCase())
      .sort();
    const credential = `${this.pair.access_key_id}/${scope}`;
    const inQuery =
      presigned === undefined
        ? []
        : [
            'X-Amz-Algorithm=AWS4-HMAC-SHA256',
            `X-Amz-Credential=${encoded(credential)}`,
            `X-Amz-Date=${dateTime}`,
            `X-Amz-Expires=${presigned}`,
            `X-Amz-SignedHeaders=${encoded(names.join(';'))}`,
          ];
    const query = [request.query ?? '', ...inQuery].filter((part) => part !== '').join('&');
    const lowered = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
    const canonical = [
      method,
      path,
      canonicalQuery(query),
      names.map((name) => `${name}:${(lowered.get(name) ?? '').trim().replace(/ +/g, ' ')}\n`).join(''),
      names.join(';'),
      presigned === undefined ? payload : 'UNSIGNED-PAYLOAD',
    ].join('\n');
    const steps = scope.split('/');
    const key = steps.reduce<string | Buffer>(hmac, `AWS4${this.pair.secret_access_key}`) as Buffer;
    const toSign = ['AWS4-HMAC-SHA256', dateTime, scope, sha256(Buffer.from(canonical, 'latin1'))].join('\n');
    const seed = hmac(key, toSign).toString('hex');
    const isFramed = mode !== 'hash' && mode !== 'unsigned';
    const sent = isFramed ? framed(body, request, { key, dateTime, scope, seed }) : body;
    if (presigned === undefined) {
      headers.authorization = `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=${names.join(';')}, Signature=${seed}`;
    }
    if (sent.length > 0 || method === 'PUT' || method === 'POST')
      headers['content-length'] = String(sent.length);
    const all = presigned === undefined ? query : `${query}&X-Amz-Signature=${seed}`;
    return { method, target: all === '' ? path : `${path}?${all}`, headers, body: sent };
  }
}

/** Sends a request unchanged. */
export async function transmit(base: string, { method, target, headers, body }: Prepared): Promise<S3Reply> {
  const { hostname, port } = new URL(base);
  const request = sendRequest({ hostname, port, method, path: target, headers, setDefaultHeaders: false });
  request.on('error', () => {});
  const answered = once(request, 'response');
  request.end(body);
  const [response] = await answered;
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  return { status: response.statusCode, headers: response.headers, bytes, text: bytes.toString() };
}

/** A refusal by S3. */
export function assertRefused(reply: S3Reply, status: number, code: string): void {
  const [found] = textsOf(reply.text, 'Code');
  assert.deepEqual([reply.status, found], [status, code], reply.text);
  assert.equal(reply.headers['content-type'], 'application/xml');
  assert.deepEqual(textsOf(reply.text, 'RequestId'), [reply.headers['x-amz-request-id']]);
  assert.doesNotMatch(reply.text, /\.ts:\d|node_modules|SQLITE|SELECT |INSERT /);
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"' };

/** The texts of all elements with that name, in order. */
export function textsOf(xml: string, name: string): string[] {
  return [...xml.matchAll(new RegExp(`<${name}(?: [^>]*)?>([^<]*)</${name}>`, 'g'))].map(([, text = '']) =>
    text.replace(/&(?:#x([0-9A-F]+)|(\w+));/gi, (_, code: string | undefined, entity: string) =>
      code === undefined ? (ENTITIES[entity] ?? '?') : String.fromCodePoint(Number.parseInt(code, 16)),
    ),
  );
}

/** The text of the only element with that name. */
export function textOf(xml: string, name: string): string {
  const found = textsOf(xml, name);
  assert.equal(found.length, 1, `${name} in ${xml}`);
  return found[0] ?? '';
}

/** The inner XML of all elements with that name that contain other elements. */
export function elementsOf(xml: string, name: string): string[] {
  return [...xml.matchAll(new RegExp(`<${name}>(.*?)</${name}>`, 'gs'))].map(([, inner = '']) => inner);
}

export function md5Of(bytes: string | Uint8Array): string {
  return createHash('md5').update(bytes).digest('hex');
}

export async function newKeyPair(
  user: Client,
  fields: Readonly<Record<string, unknown>> = {},
): Promise<KeyPair & { readonly id: string }> {
  const json = { name: 's3', scopes: ['storage:*'], ...fields };
  const { status, body } = await user.call('/api/account/access-keys', { json });
  assert.equal(status, 201, JSON.stringify(body));
  return body;
}

/** An account's S3 client, with a key for all of its storage. */
export async function newS3(data: string, user: Client): Promise<S3Client> {
  return new S3Client(data, await newKeyPair(user));
}

/** A cloud with one user, and its S3 client. */
export async function startS3() {
  const cloud = await CloudProcess.start();
  const user = await new Client(cloud.api).newUser();
  return { cloud, user, s3: await newS3(cloud.data, user) };
}

/** A new user of the shared cloud, and its S3 client. */
export async function sharedS3() {
  const cloud = await sharedCloud();
  const user = await new Client(cloud.api).newUser();
  return { cloud, user, s3: await newS3(cloud.data, user) };
}

let buckets = 0;

/** A bucket created over S3; returns its name. */
export async function newS3Bucket(s3: S3Client, versioning?: 'Enabled' | 'Suspended'): Promise<string> {
  const name = `s3-bucket-${++buckets}`;
  await s3.ok('PUT', `/${name}`);
  if (versioning !== undefined) await setVersioning(s3, name, versioning);
  return name;
}

export async function setVersioning(s3: S3Client, bucket: string, status: string): Promise<void> {
  const body = `<VersioningConfiguration><Status>${status}</Status></VersioningConfiguration>`;
  await s3.ok('PUT', `/${bucket}`, { query: 'versioning', body });
}

/** Completes an upload of these parts. */
export function completion(
  parts: readonly { number: number; etag: string | undefined; more?: string }[],
): string {
  const listed = parts.map(
    ({ number, etag, more = '' }) =>
      `<Part><PartNumber>${number}</PartNumber><ETag>${etag}</ETag>${more}</Part>`,
  );
  return `<CompleteMultipartUpload>${listed.join('')}</CompleteMultipartUpload>`;
}

/** Counted for each version, open upload and part. */
export const ROW_BYTES = 256;

/** Stored bytes of the row, name and type of an object or open upload without a Content-Type. */
export const metadataOf = (name: string) =>
  ROW_BYTES + Buffer.byteLength(name) + 'binary/octet-stream'.length;

/** Starts a multipart upload; returns its id. */
export async function newUpload(s3: S3Client, path: string, request: S3Request = {}): Promise<string> {
  const { text } = await s3.ok('POST', path, { query: 'uploads', ...request });
  return textOf(text, 'UploadId');
}

/** A request without a signature. */
export async function anonymously(
  base: string,
  ...[method, path, request = {}]: Parameters<S3Client['call']>
): Promise<S3Reply> {
  const { query = '', headers = {}, body = '' } = request;
  const bytes = Buffer.from(body);
  const length = bytes.length > 0 || method === 'PUT' ? { 'content-length': String(bytes.length) } : {};
  return transmit(base, {
    method,
    target: query === '' ? path : `${path}?${query}`,
    headers: { host: new URL(base).host, ...length, ...headers },
    body: bytes,
  });
}

/** A statement of a policy for the bucket and all its objects. */
export function statement(
  bucket: string,
  more: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  return {
    Effect: 'Allow',
    Principal: '*',
    Action: 's3:*',
    Resource: [`arn:aws:s3:::${bucket}`, `arn:aws:s3:::${bucket}/*`],
    ...more,
  };
}

export function policy(...statements: readonly Readonly<Record<string, unknown>>[]): string {
  return JSON.stringify({ Version: '2012-10-17', Statement: statements });
}

export async function setPolicy(s3: S3Client, bucket: string, body: string): Promise<void> {
  await s3.ok('PUT', `/${bucket}`, { query: 'policy', body });
}
