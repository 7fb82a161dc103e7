/** Signed requests to the S3 endpoint, with retries. */
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest, Agent as TlsAgent } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathOf, queryText, type Signer, signedHeaders } from '../../libs/s3-wire/index.ts';
import { ClientError, certificateHint, EXIT } from '../failures.ts';
import { meant } from '../nearest.ts';
import { isProxied, proxyEnvironment } from '../proxies.ts';
import type { S3Keys } from '../sign-in/profiles.ts';
import { readFailure, S3Failure } from './s3-failure.ts';

const ATTEMPTS = 7;
const FIRST_PAUSE_MS = 150;
const LONGEST_PAUSE_MS = 10_000;
/** Delay from Retry-After. */
const LONGEST_ASKED_MS = 60_000;
/** A connection without traffic for this long is aborted. */
const IDLE_MS = 60_000;
const READ_BYTES = 512 * 1024;
/** From this difference on, this computer's clock is the reason for a refusal: S3 refuses at 15 minutes. */
const CLOCK_MS = 5 * 60_000;
/** A page has 1,000 entries with names of at most 1 KiB, each byte of which may take three characters. */
const MAX_ANSWER_BYTES = 16 * 2 ** 20;

/** Bytes `start` to `end` of a file, `end` exclusive. */
export interface FileRange {
  readonly path: string;
  readonly start: number;
  readonly end: number;
}

export interface S3Request {
  readonly method: string;
  readonly bucket?: string;
  readonly key?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | FileRange;
  /** Called with every number of bytes sent; negative if they are sent again. */
  readonly onSent?: (bytes: number) => void;
}

export interface S3Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

export class Requests {
  readonly keys: S3Keys;
  readonly #agent: Agent;
  readonly #url: URL;
  /** Names of all buckets, for suggestions. */
  #buckets: Promise<readonly string[]> | undefined;

  constructor(keys: S3Keys) {
    this.keys = keys;
    this.#url = new URL(keys.endpoint);
    const proxyEnv = isProxied(keys.endpoint) ? { proxyEnv: proxyEnvironment() } : {};
    const options = { keepAlive: true, maxSockets: 64, scheduling: 'lifo', ...proxyEnv } as const;
    this.#agent = this.#url.protocol === 'https:' ? new TlsAgent(options) : new Agent(options);
  }

  /** The whole response. Throws S3Failure for a refusal, ClientError if the cloud is unreachable. */
  async call(asked: S3Request): Promise<S3Answer> {
    return this.#again(asked, async () => {
      const response = await this.#open(asked);
      return answerOf(response, await textOf(response));
    });
  }

  /** A response whose body the caller reads; it may be interrupted. Throws like call(). */
  async stream(asked: S3Request): Promise<IncomingMessage> {
    return this.#again(asked, () => this.#open(asked));
  }

  async #again<T>(asked: S3Request, work: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        if (error instanceof S3Failure && error.code === 'NoSuchBucket')
          throw await this.#noBucket(asked, error);
        if (attempt === 1 && error instanceof S3Failure && error.isClockWrong) {
          asked.onSent?.(0);
          continue;
        }
        if (attempt === ATTEMPTS || !mayPass(error)) throw unreachable(error, this.keys.endpoint);
        asked.onSent?.(0);
        await sleep(pauseOf(error, attempt));
      }
    }
  }

  /** Names the bucket, and suggests a similar one. */
  async #noBucket({ bucket = '' }: S3Request, failure: S3Failure): Promise<S3Failure> {
    this.#buckets ??= this.call({ method: 'GET' }).then(
      ({ text }) => [...text.matchAll(/<Name>([^<]+)<\/Name>/g)].map(([, name]) => String(name)),
      () => [],
    );
    const message = `there is no bucket ${bucket}${meant(bucket, await this.#buckets)}`;
    return new S3Failure({ status: failure.status, code: failure.code, message, requestId: undefined });
  }

  async #open(asked: S3Request): Promise<IncomingMessage> {
    const { method, bucket, key, query = {}, headers = {}, body } = asked;
    const path = bucket === undefined ? '/' : pathOf(bucket, key);
    const lackedMs = clockLacksMs;
    const signed = signedHeaders({ method, path, query, headers }, this.#url.host, signerWith(this.keys));
    if (body !== undefined || method === 'PUT' || method === 'POST')
      signed['content-length'] = String(lengthOf(body));
    const search = queryText(query);
    const send = this.#url.protocol === 'https:' ? httpsRequest : httpRequest;
    const request = send({
      agent: this.#agent,
      hostname: this.#url.hostname.replace(/^\[|\]$/g, ''),
      port: this.#url.port,
      method,
      path: search === '' ? path : `${path}?${search}`,
      headers: signed,
      timeout: IDLE_MS,
    });
    // Errors after the response do not matter.
    request.on('error', () => {});
    request.on('timeout', () => request.destroy(new Error('the connection timed out (no data)')));
    const response = await answerTo(request, asked);
    if (response.statusCode !== undefined && response.statusCode < 300) return response;
    const text = await textOf(response);
    const { status, headers: given } = answerOf(response, '');
    const failure = readFailure(status, text, given['x-amz-request-id']);
    if (status === 403) setClockBy(given.date);
    // Another request may have set the clock meanwhile.
    const isClockWrong = status === 403 && clockLacksMs !== lackedMs;
    throw Object.assign(failure, { isClockWrong, retryAfter: Number(given['retry-after'] ?? Number.NaN) });
  }
}

/** Region for signatures: a cloud has one region and accepts any name. */
const REGION = 'us-east-1';

/** Difference of the cloud's clock to the clock of this computer, ms; 0 while they agree. */
let clockLacksMs = 0;

/** Signs a request when it is sent, by the cloud's time where this computer's is known to be wrong. */
export function signerWith({ access_key_id: accessKeyId, secret_access_key: secret }: S3Keys): Signer {
  return { accessKeyId, secret, region: REGION, nowMs: Date.now() + clockLacksMs };
}

/** Sets the clock from a refusal, as SDKs do, if the difference is large enough to be the reason. */
function setClockBy(date: string | undefined): void {
  const lacksMs = Date.parse(date ?? '') - Date.now();
  if (Math.abs(lacksMs - clockLacksMs) >= CLOCK_MS) clockLacksMs = lacksMs;
}

/** The whole body. Throws ClientError if it is longer than any response of S3. */
async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) throw new ClientError('the response is too large; is this an S3 endpoint?');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** Sends the body until the response arrives: a refusal does not need the rest. */
async function answerTo(request: ClientRequest, { body, onSent }: S3Request): Promise<IncomingMessage> {
  const answered = once(request, 'response') as Promise<[IncomingMessage]>;
  if (body === undefined || !('path' in body)) {
    request.end(body);
    if (body !== undefined) onSent?.(body.length);
  } else if (body.end === body.start) {
    request.end();
  } else {
    const { path, start, end } = body;
    const file = createReadStream(path, { start, end: end - 1, highWaterMark: READ_BYTES });
    if (onSent !== undefined) file.on('data', (chunk) => onSent(chunk.length));
    // If a file ends early, the request stays incomplete; the file's error says more.
    file.on('error', (error) => request.destroy(error));
    request.on('close', () => file.destroy());
    file.pipe(request);
  }
  const [response] = await answered;
  return response;
}

function lengthOf(body: Buffer | FileRange | undefined): number {
  if (body === undefined) return 0;
  return 'path' in body ? body.end - body.start : body.length;
}

function answerOf(response: IncomingMessage, text: string): S3Answer {
  const headers = Object.fromEntries(
    Object.entries(response.headers).map(([name, value]) => [name, String(value)]),
  );
  return { status: response.statusCode ?? 0, headers, text };
}

const PASSING = new Set([429, 500, 502, 503, 504]);
/** Failures of this computer, which a retry does not fix. */
const LASTING = new Set(['ENOENT', 'EACCES', 'EISDIR', 'ENOTFOUND', 'ERR_INVALID_CHAR']);

function mayPass(error: unknown): boolean {
  if (error instanceof S3Failure) return PASSING.has(error.status) || error.code === 'RequestTimeout';
  if (error instanceof ClientError) return false;
  const { code = '', message } = error as NodeJS.ErrnoException;
  return !LASTING.has(code) && !/certificate|self.signed/i.test(message);
}

/** Retry-After, else a growing random delay, so that clients do not retry simultaneously. */
function pauseOf(error: unknown, attempt: number): number {
  const { retryAfter } = error as { readonly retryAfter?: number };
  const random = Math.random() * Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt);
  return retryAfter !== undefined && Number.isFinite(retryAfter)
    ? Math.min(LONGEST_ASKED_MS, retryAfter * 1000) + random
    : random;
}

function unreachable(error: unknown, endpoint: string): unknown {
  const { code, message, syscall } = error as NodeJS.ErrnoException;
  if (error instanceof ClientError || LOCAL.has(syscall ?? '')) return error;
  const hint = certificateHint(error);
  return new ClientError(`${endpoint} does not answer: ${message || code}`, EXIT.unavailable, hint);
}

const LOCAL = new Set(['open', 'read', 'stat']);
