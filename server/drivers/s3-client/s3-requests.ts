/**
 * Signed requests to one bucket, with time-outs and retries. Used by the event loop and by worker threads.
 */
import * as http from 'node:http';
import * as https from 'node:https';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathOf, queryText, signedHeaders } from '../../../libs/s3-wire/index.ts';
import type { S3Address } from '../../config/s3-address.ts';
import type { Clock } from '../../platform/clock.ts';
import { randomSecret } from '../../platform/ids.ts';
import type { BlobFault } from '../blob-frames/blob-fault.ts';
import type { S3Counters } from './s3-counters.ts';
import { faultOfAnswer, faultOfConnection, isS3Fault, s3Fault } from './s3-fault.ts';

export interface S3Request {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE';
  /** Key below the prefix; empty: the bucket itself. */
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: readonly Uint8Array[];
}

export interface S3RequestsDeps {
  readonly address: S3Address;
  readonly counters: S3Counters;
  readonly clock: Clock;
}

/** How long to retry transient failures. */
export interface S3Patience {
  /** Attempts in all; default 5. */
  readonly tries?: number;
  /** Silence, in either direction, after which a connection is closed, ms; default 20,000. */
  readonly silenceMs?: number;
  /** No further attempt this long after the first, ms; default 20,000. */
  readonly untilMs?: number;
}

export interface S3Limits extends S3Patience {
  /** No further attempt, and a body that was not sent yet is cut off. */
  readonly signal?: AbortSignal | undefined;
}

const CONNECT_MS = 5000;
const SILENCE_MS = 20_000;
const TRIES = 5;
/** A caller waits, and an operator should learn of the failure. */
const UNTIL_MS = 20_000;
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5000;
/** Answers other than objects. */
const MAX_TEXT_BYTES = 4 * 2 ** 20;
const IDLE_SOCKET_MS = 15_000;

export class S3Requests {
  readonly #address: S3Address;
  readonly #counters: S3Counters;
  readonly #clock: Clock;
  readonly #agent: http.Agent;
  readonly #origin: string;
  readonly #host: string;

  constructor({ address, counters, clock }: S3RequestsDeps) {
    this.#address = address;
    this.#clock = clock;
    this.#counters = counters;
    const options = { keepAlive: true, timeout: IDLE_SOCKET_MS, scheduling: 'lifo' } as const;
    this.#agent = address.tls ? new https.Agent(options) : new http.Agent(options);
    const { tls, host, port, style, bucket } = address;
    const name = host.includes(':') ? `[${host}]` : host;
    this.#origin = `${tls ? 'https' : 'http'}://${style === 'host' ? `${bucket}.` : ''}${name}:${port}`;
    this.#host = new URL(this.#origin).host;
  }

  /**
   * The successful response, whose body the caller must read or destroy. Rejects with a BlobFault of kind
   * `s3`, or with the reason of the signal.
   */
  async send(request: S3Request, limits: S3Limits = {}): Promise<http.IncomingMessage> {
    const { tries = TRIES, untilMs = UNTIL_MS, signal } = limits;
    const started = this.#clock.monotonic();
    for (let tried = 1; ; tried++) {
      signal?.throwIfAborted();
      const began = this.#clock.monotonic();
      try {
        this.#counters.add('requests', 1);
        return await this.#sendOnce(request, limits);
      } catch (error) {
        signal?.throwIfAborted();
        const fault = error as BlobFault;
        const mayPass = isS3Fault(fault, 'away', 'digest');
        if (mayPass) this.#counters.add('errors', 1);
        const isLate = this.#clock.monotonic() - started >= untilMs;
        if (!mayPass || tried >= tries || isLate) throw fault;
        this.#counters.add('retries', 1);
        await pause(tried, signal);
      } finally {
        this.#counters.add('microseconds', (this.#clock.monotonic() - began) * 1000);
      }
    }
  }

  /** The response's body as text. Rejects like send(); an interrupted body is retried too. */
  async sendForText(request: S3Request, limits: S3Limits = {}): Promise<string> {
    return (await this.sendForBytes(request, MAX_TEXT_BYTES, limits)).toString();
  }

  /** The response's body, of at most `maxBytes`. Rejects like sendForText(). */
  async sendForBytes(request: S3Request, maxBytes: number, limits: S3Limits = {}): Promise<Buffer> {
    const { tries = TRIES, signal } = limits;
    for (let tried = 1; ; tried++) {
      try {
        return await readBody(await this.send(request, limits), maxBytes);
      } catch (error) {
        signal?.throwIfAborted();
        if (!isS3Fault(error, 'away') || tried >= Math.min(tries, 2)) throw error;
      }
    }
  }

  /** Closes idle connections. */
  close(): void {
    this.#agent.destroy();
  }

  async #sendOnce(request: S3Request, limits: S3Limits): Promise<http.IncomingMessage> {
    const { signal, silenceMs = SILENCE_MS } = limits;
    const { body = [] } = request;
    const { target, headers } = this.#sign(request);
    const length = body.reduce((sum, part) => sum + part.length, 0);
    if (request.method === 'PUT' || request.method === 'POST') headers['content-length'] = String(length);
    const make = this.#address.tls ? https.request : http.request;
    const outgoing = make(this.#origin, {
      path: target,
      method: request.method,
      headers,
      agent: this.#agent,
      timeout: silenceMs,
    });
    const answer = await new Promise<http.IncomingMessage>((resolve, reject) => {
      const give = (fault: unknown) => {
        reject(fault);
        outgoing.destroy();
      };
      // Once S3 has everything, its response shows whether something must be removed.
      const onAbort = () => {
        if (!outgoing.writableFinished || length === 0) give(signal?.reason);
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      outgoing.on('close', () => signal?.removeEventListener('abort', onAbort));
      outgoing.on('socket', (socket) => limitConnect(socket, give));
      outgoing.on('timeout', () => give(s3Fault('away', `no response for ${silenceMs / 1000} s`)));
      outgoing.on('error', (error) => reject(faultOfConnection(error)));
      outgoing.on('response', resolve);
      outgoing.cork();
      for (const part of body) outgoing.write(part);
      outgoing.end();
    });
    this.#counters.add('sentBytes', length);
    const { statusCode: status = 0 } = answer;
    if (status >= 200 && status < 300) return answer;
    const text = await readBody(answer, MAX_TEXT_BYTES).catch(() => '');
    throw faultOfAnswer(status, text.toString(), this.#skewOf(answer));
  }

  /** Seconds by which the clock of this host is ahead; null: unknown. */
  #skewOf({ headers: { date } }: http.IncomingMessage): number | null {
    const at = Date.parse(date ?? '');
    return Number.isNaN(at) ? null : (this.#clock.now() - at) / 1000;
  }

  /** The signature covers Content-MD5, and with it the bytes: they need no second hash. */
  #sign({ method, key, query = {}, headers = {} }: S3Request) {
    const { style, bucket, prefix, region, accessKeyId, secretAccessKey: secret } = this.#address;
    const inBucket = key === '' ? '' : `${prefix}${key}`;
    const path = pathOf(style === 'path' ? bucket : '', inBucket);
    const signer = { accessKeyId, secret, region, nowMs: this.#clock.now() };
    const search = queryText(query);
    return {
      target: search === '' ? path : `${path}?${search}`,
      headers: signedHeaders({ method, path, query, headers }, this.#host, signer),
    };
  }
}

/** Full jitter: clients that failed together do not retry together. */
async function pause(tried: number, signal: AbortSignal | undefined): Promise<void> {
  const most = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** tried);
  const ms = (most * randomSecret(2).readUInt16LE()) / 0xffff;
  await sleep(ms, undefined, signal === undefined ? {} : { signal }).catch(() => signal?.throwIfAborted());
}

function limitConnect(socket: Socket, give: (fault: unknown) => void): void {
  if (!socket.connecting) return;
  const late = () => give(s3Fault('away', `no connection within ${CONNECT_MS / 1000} s`));
  const timer = setTimeout(late, CONNECT_MS);
  const end = () => clearTimeout(timer);
  socket.once('connect', end).once('close', end);
}

/** The whole body of an answer. Rejects with a BlobFault. */
async function readBody(answer: http.IncomingMessage, maxBytes: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const piece of answer as AsyncIterable<Buffer>) {
      bytes += piece.length;
      if (bytes > maxBytes) throw new Error('the response is too large');
      pieces.push(piece);
    }
  } catch (error) {
    throw faultOfConnection(error);
  }
  return Buffer.concat(pieces);
}
