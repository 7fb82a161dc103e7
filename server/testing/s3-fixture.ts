/**
 * An S3 for tests: s3rver behind a proxy that adds what s3rver lacks (the checks of Content-MD5 and
 * If-None-Match, aborted uploads, listings of several pages) and changes requests and answers on request of a
 * test.
 */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import * as http from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AwsV4Signer } from 'aws4fetch';

interface S3rver {
  run(): Promise<AddressInfo>;
  close(): Promise<void>;
  readonly store: { existsObject(bucket: string, key: string): Promise<boolean> };
}
type S3rverClass = new (options: Readonly<Record<string, unknown>>) => S3rver;
const S3rver = createRequire(import.meta.url)('@20minutes/s3rver') as S3rverClass;

const BUCKET = 'tests';
/** The keys that s3rver knows. */
const KEYS = 'S3RVER:S3RVER';

export interface SeenRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly bodyBytes: number;
}

/**
 * `status`: sends this answer instead. `lose`: S3 carries the request out, but the answer is lost. `cut`: the
 * answer ends in the middle of its body. `hurt`: a bit of the body is flipped; `hurt-upload`: in the
 * request's body. `hang`: no answer. `slow`: two seconds later. `lax`: conditions and checksums are ignored.
 */
export type Fault =
  | { readonly status: number; readonly code?: string; readonly date?: Date; readonly body?: string }
  | 'lose'
  | 'cut'
  | 'hurt'
  | 'hurt-upload'
  | 'hang'
  | 'slow'
  | 'lax';

interface Passed {
  readonly method: string;
  readonly path: string;
  readonly headers: http.IncomingHttpHeaders;
}

const NONE = Buffer.alloc(0);
const SLOW_MS = 2000;

export class S3Fixture {
  /** Called for each request; undefined: it is passed on unchanged. */
  fault: (request: SeenRequest) => Fault | undefined = () => undefined;
  readonly seen: SeenRequest[] = [];
  readonly #engine: S3rver;
  readonly #directory: string;
  readonly #upstream: AddressInfo;
  #front: http.Server;
  #port = 0;
  readonly #agent = new http.Agent({ keepAlive: true });
  /** Conditional requests in progress, by their path: each waits for the previous one. */
  readonly #conditional = new Map<string, Promise<void>>();

  private constructor(engine: S3rver, { directory, upstream }: { directory: string; upstream: AddressInfo }) {
    this.#engine = engine;
    this.#directory = directory;
    this.#upstream = upstream;
    this.#front = this.#newFront();
  }

  static async start(): Promise<S3Fixture> {
    const directory = mkdtempSync(join(tmpdir(), 'cloudlet-s3-'));
    const where = { address: '127.0.0.1', port: 0, silent: true, directory };
    const engine = new S3rver({ ...where, configureBuckets: [{ name: BUCKET }] });
    const fixture = new S3Fixture(engine, { directory, upstream: await engine.run() });
    await fixture.open();
    return fixture;
  }

  /** The URL for CLOUDLET_BLOBS_URL. */
  url(prefix: string, { bucket = BUCKET, keys = KEYS } = {}): string {
    return `s3://${keys}@127.0.0.1:${this.#port}/${bucket}/${prefix}?tls=off`;
  }

  /** Listens, on the same port again after shut(). */
  async open(): Promise<void> {
    this.#front = this.#newFront();
    await new Promise<void>((resolve) => this.#front.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (this.#front.address() as AddressInfo).port;
  }

  /** Refuses connections, like a host whose S3 was stopped. */
  async shut(): Promise<void> {
    const closed = new Promise((resolve) => this.#front.close(resolve));
    this.#front.closeAllConnections();
    await closed;
  }

  /** Requests with that method whose path contains `part`. */
  count(method: string, part = ''): number {
    return this.seen.filter((request) => request.method === method && request.path.includes(part)).length;
  }

  async close(): Promise<void> {
    await this.shut();
    this.#agent.destroy();
    await this.#engine.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #newFront(): http.Server {
    return http.createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
  }

  async #serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const body = await readAll(request);
    const { method = '', url: path = '', headers } = request;
    const seen = { method, path, bodyBytes: body.length };
    this.seen.push(seen);
    const fault = this.fault(seen);
    if (fault === 'hang') return;
    if (fault === 'slow') await sleep(SLOW_MS);
    if (typeof fault === 'object') {
      const date = fault.date === undefined ? {} : { date: fault.date.toUTCString() };
      response.writeHead(fault.status, { 'content-type': 'application/xml', ...date });
      response.end(fault.body ?? (fault.code === undefined ? '' : errorXml(fault.code)));
      return;
    }
    if (fault === 'hurt-upload' && headers['content-md5'] !== undefined) flipOne(body);
    await using _ = await this.#turn(request);
    const refusal = fault === 'lax' ? undefined : await this.#refusal(request, body);
    if (refusal !== undefined) {
      response.writeHead(refusal.status, { 'content-type': 'application/xml' });
      response.end(refusal.status === 204 ? '' : errorXml(refusal.code));
      return;
    }
    const { answer, bytes } = await this.#pass({ method, path, headers }, body);
    if (fault === 'lose') {
      response.destroy();
      return;
    }
    if (fault === 'hurt') flipOne(bytes);
    response.writeHead(answer.statusCode ?? 500, answer.headers);
    if (fault === 'cut') {
      response.write(bytes.subarray(0, bytes.length >> 1), () => response.destroy());
    } else response.end(bytes);
  }

  async #pass(request: Passed, body: Buffer): Promise<{ answer: http.IncomingMessage; bytes: Buffer }> {
    const { address: host, port } = this.#upstream;
    const answer = await new Promise<http.IncomingMessage>((resolve, reject) => {
      const outgoing = http.request({ host, port, ...request, agent: this.#agent }, resolve);
      outgoing.on('error', reject);
      outgoing.end(body);
    });
    const bytes = await readAll(answer);
    const isPage = request.path.includes('list-type=2') && answer.statusCode !== 200;
    return isPage && answer.statusCode !== 403 ? this.#passPage(request.path) : { answer, bytes };
  }

  /** s3rver cannot create continuation tokens on this Node, but its older listing continues after a key. */
  async #passPage(path: string): Promise<{ answer: http.IncomingMessage; bytes: Buffer }> {
    const url = new URL(path, `http://127.0.0.1:${this.#upstream.port}`);
    const token = url.searchParams.get('continuation-token');
    for (const name of ['list-type', 'continuation-token']) url.searchParams.delete(name);
    if (token !== null) url.searchParams.set('marker', token);
    const [accessKeyId = '', secretAccessKey = ''] = KEYS.split(':');
    const keys = { accessKeyId, secretAccessKey, service: 's3', region: 'us-east-1' };
    const signed = await new AwsV4Signer({ url: url.href, ...keys }).sign();
    const headers = Object.fromEntries(signed.headers);
    const { pathname, search } = signed.url;
    const { answer, bytes } = await this.#pass(
      { method: 'GET', path: `${pathname}${search}`, headers },
      NONE,
    );
    const text = bytes.toString();
    const last = text.slice(text.lastIndexOf('<Key>') + 5, text.lastIndexOf('</Key>'));
    const next = `<NextContinuationToken>${last}</NextContinuationToken></ListBucketResult>`;
    const isEnd = !text.includes('<IsTruncated>true<');
    const page = isEnd ? bytes : Buffer.from(text.replace('</ListBucketResult>', next));
    answer.headers['content-length'] = String(page.length);
    return { answer, bytes: page };
  }

  /** Resolves when a conditional request for that path may check whether the object exists. */
  async #turn({ method, url = '', headers }: http.IncomingMessage): Promise<AsyncDisposable> {
    const turn = Promise.withResolvers<void>();
    if (method === 'PUT' && headers['if-none-match'] === '*') {
      const before = this.#conditional.get(url);
      this.#conditional.set(url, turn.promise);
      await before;
    }
    return { [Symbol.asyncDispose]: async () => turn.resolve() };
  }

  /** The answer of a stricter S3, where s3rver would continue. */
  async #refusal(
    { method, url = '', headers }: http.IncomingMessage,
    body: Buffer,
  ): Promise<{ readonly status: number; readonly code: string } | undefined> {
    const { pathname, searchParams } = new URL(url, 'http://localhost');
    const [bucket = '', ...parts] = decodeURIComponent(pathname).slice(1).split('/');
    const md5 = headers['content-md5'];
    if (md5 !== undefined && createHash('md5').update(body).digest('base64') !== md5) {
      return { status: 400, code: 'BadDigest' };
    }
    const isNew = method === 'PUT' && headers['if-none-match'] === '*';
    if (isNew && (await this.#engine.store.existsObject(bucket, parts.join('/')))) {
      return { status: 412, code: 'PreconditionFailed' };
    }
    // s3rver would remove the object with that key.
    if (method === 'DELETE' && searchParams.has('uploadId')) return { status: 204, code: '' };
    return undefined;
  }
}

/** Flips a bit in the middle. */
function flipOne(bytes: Buffer): void {
  if (bytes.length === 0) return;
  const at = Math.floor(bytes.length / 2);
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
}

function errorXml(code: string): string {
  return `<?xml version="1.0"?>\n<Error><Code>${code}</Code><Message>as the test said</Message></Error>`;
}

async function readAll(stream: http.IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of stream as AsyncIterable<Buffer>) pieces.push(piece);
  return Buffer.concat(pieces);
}
