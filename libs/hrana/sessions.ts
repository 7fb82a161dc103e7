/**
 * Hrana for one database, inside the child that has it open: over HTTP `v2/pipeline`, and below `v3` and
 * `v3-protobuf` `pipeline` and `cursor`, and over WebSocket, as specified by HRANA_3_SPEC and HRANA_2_SPEC of
 * libsql. Authentication happens before, and durability of answers after this code.
 *
 * Writers wait here, not in SQLite, so that the current writer can proceed; the limits bound how long anyone
 * can block the database. A statement that never ends is killed with the child.
 */
import { cursorEntries, stepsOf } from './batch.ts';
import { Connections } from './connections.ts';
import type { HranaDatabase } from './database.ts';
import { HranaError } from './error.ts';
import {
  type Answer,
  type HranaFormat,
  type JsonObject,
  type Output,
  type Piece,
  protocolError,
} from './format.ts';
import { JSON_FORMAT, objectOf } from './json.ts';
import { HranaSocket, type SocketHost, STREAM_CLOSED } from './socket.ts';
import { Stream, type StreamDeps } from './stream.ts';
import { WriteTurn } from './write-turn.ts';

export interface HranaLimits {
  /** How long a statement waits for other writers, and a stream for a connection. */
  readonly busyMs: number;
  /** Limit between two requests in a transaction, and between two pieces of a cursor. */
  readonly idleMs: number;
  /** Limit of a whole transaction or cursor. */
  readonly transactionMs: number;
  /** Limit between two requests of a stream outside a transaction. */
  readonly streamIdleMs: number;
  /** Limit of a response, and of a cursor's row, in characters. */
  readonly responseLength: number;
  /** WAL limit; above it, streams that prevent a checkpoint are ended. */
  readonly logBytes: number;
}

export const HRANA_LIMITS: HranaLimits = {
  busyMs: 5_000,
  idleMs: 5_000,
  transactionMs: 30_000,
  streamIdleMs: 30_000,
  responseLength: 16 * 2 ** 20,
  logBytes: 64 * 2 ** 20,
};

export interface HranaSessionsDeps {
  readonly database: HranaDatabase;
  readonly clock: { /** ms, of arbitrary origin. */ monotonic(): number };
  /** A secret that names a stream to its client. */
  readonly newBaton: () => string;
  /** After this time, ms, a running request yields to others. */
  readonly turnMs: number;
  readonly limits: HranaLimits;
}

export interface HranaRequest {
  /** Path after the database: `v2/pipeline`. */
  readonly path: string;
  readonly body: Uint8Array;
  /** Aborts when the client disconnects. */
  readonly signal?: AbortSignal;
}

export interface HranaResponse {
  readonly status: number;
  readonly contentType: string;
  /** Pieces are pulled one at a time; returning early stops the producer. */
  readonly body: Piece | AsyncIterable<Piece>;
}

/** A message of a client's WebSocket. */
export interface HranaMessage {
  /** Identifies the connection. */
  readonly socket: string;
  /** The encoding of its sub-protocol. */
  readonly encoding: 'json' | 'protobuf';
  readonly body: Uint8Array;
}

const SWEEP_MS = 250;
/** Batons of expired streams, kept for error messages. */
const MAX_ENDINGS = 1_000;
/** Approximate size of a cursor's pieces, characters. */
const PIECE_LENGTH = 32 * 1024;
const CALLS: ReadonlyMap<string, { readonly call: 'pipeline' | 'cursor'; readonly isProtobuf?: true }> =
  new Map([
    ['v2/pipeline', { call: 'pipeline' }],
    ['v3/pipeline', { call: 'pipeline' }],
    ['v3/cursor', { call: 'cursor' }],
    ['v3-protobuf/pipeline', { call: 'pipeline', isProtobuf: true }],
    ['v3-protobuf/cursor', { call: 'cursor', isProtobuf: true }],
  ]);
/** Loaded on demand: most processes never need it. */
const protobufFormat = async () => (await import('./protobuf.ts')).PROTOBUF_FORMAT;

export class HranaSessions {
  readonly #deps: HranaSessionsDeps;
  readonly #connections: Connections;
  readonly #streamDeps: StreamDeps;
  readonly #streams = new Set<Stream>();
  /** Idle streams, longest idle first. */
  readonly #byBaton = new Map<string, Stream>();
  readonly #endings = new Map<string, HranaError>();
  readonly #sockets = new Map<string, HranaSocket>();
  /** Streams of WebSockets that wait for their client, longest first. */
  readonly #resting = new Set<Stream>();

  constructor(deps: HranaSessionsDeps) {
    this.#deps = deps;
    const { database, limits, turnMs } = deps;
    const { busyMs } = limits;
    this.#connections = new Connections({ database, waitMs: busyMs, reclaim: () => this.#reclaim() });
    const now = () => this.#now();
    const { counters } = database;
    const beforeWrite = () => database.heedHost();
    this.#streamDeps = { turn: new WriteTurn<Stream>(), counters, beforeWrite, now, busyMs, turnMs };
    setInterval(() => this.#endOverdue(), SWEEP_MS).unref();
  }

  /** Always answers in the protocol's format; never throws. */
  async handle({ path, body, signal }: HranaRequest): Promise<HranaResponse> {
    const { call, isProtobuf } = CALLS.get(path) ?? {};
    const format = isProtobuf ? await protobufFormat() : JSON_FORMAT;
    const { contentType } = format;
    const output = format.output(this.#deps.limits.responseLength);
    try {
      if (call === 'cursor') {
        const entries = await this.#cursor(format.readCursor(body), { output, signal });
        return { status: 200, contentType, body: entries };
      }
      if (call === undefined) throw new HranaError('NOT_FOUND', `There is nothing at ${path}`);
      const answer = await this.#pipeline(format.readPipeline(body), { output, signal });
      return { status: 200, contentType, body: answer };
    } catch (error) {
      return { status: statusOf(error), contentType, body: output.error(error) };
    }
  }

  /** Answers a message of a WebSocket; null: invalid, and the connection must end. */
  async receive({ socket: id, encoding, body }: HranaMessage): Promise<Piece | null> {
    const format: HranaFormat = encoding === 'protobuf' ? await protobufFormat() : JSON_FORMAT;
    const output = format.output(this.#deps.limits.responseLength);
    let message: JsonObject;
    try {
      message = format.readMessage(body);
    } catch {
      return null;
    }
    const { type, request_id: requestId, request } = message;
    if (type !== 'request' || typeof requestId !== 'number' || !Number.isInteger(requestId)) return null;
    const socket = this.#sockets.get(id) ?? new HranaSocket(this.#socketHost);
    this.#sockets.set(id, socket);
    try {
      return output.response(requestId, await socket.answer(objectOf(request, 'request'), output));
    } catch (error) {
      return output.refusal(requestId, error);
    }
  }

  /** Ends the streams of a closed WebSocket. */
  closeSocket(id: string): void {
    this.#sockets.get(id)?.close();
    this.#sockets.delete(id);
    this.#connections.serveWaiting();
  }

  get #socketHost(): SocketHost {
    return {
      begin: (stored) => this.#begin(undefined, stored),
      end: (stream, reason) => this.#end(stream, reason),
      leave: (stream) => {
        stream.leave(this.#now());
        this.#resting.delete(stream);
        if (stream.ended === undefined) this.#resting.add(stream);
        this.#connections.serveWaiting();
      },
      pause: (stream) => {
        stream.idleSince = this.#now();
      },
    };
  }

  async #pipeline(
    body: JsonObject,
    { output, signal }: { readonly output: Output; readonly signal: AbortSignal | undefined },
  ): Promise<Piece> {
    if (!Array.isArray(body.requests)) throw protocolError('requests must be a list');
    const requests = body.requests.map((request) => objectOf(request, 'A request'));
    const stream = await this.#enter(body.baton, signal);
    const results: Piece[] = [];
    for (const request of requests) {
      try {
        results.push(output.succeeded(await this.#answer(stream, request, output)));
      } catch (error) {
        results.push(output.failed(error));
      }
    }
    if (signal?.aborted) this.#end(stream, STREAM_CLOSED);
    stream.leave(this.#now());
    const baton = this.#remember(stream);
    this.#connections.serveWaiting();
    return output.pipeline(baton, results);
  }

  async #answer(stream: Stream, request: JsonObject, output: Output): Promise<Answer> {
    const { type } = request;
    if (type !== 'close') return stream.answer(request, output);
    this.#end(stream, STREAM_CLOSED);
    return { type };
  }

  async #cursor(
    body: JsonObject,
    { output, signal }: { readonly output: Output; readonly signal: AbortSignal | undefined },
  ): Promise<AsyncIterable<Piece>> {
    const steps = stepsOf(body.batch);
    const stream = await this.#enter(body.baton, signal);
    // Starts the idle timeout in case the body is not read.
    stream.idleSince = this.#now();
    return this.#readCursor(stream, steps, output);
  }

  /** The client may use the baton after the first line; its requests wait until the cursor ends. */
  async *#readCursor(stream: Stream, steps: readonly unknown[], output: Output): AsyncGenerator<Piece> {
    let messages = [output.cursor(this.#remember(stream))];
    let length = 0;
    stream.idleSince = undefined;
    try {
      for await (const entry of cursorEntries(stream, steps, output)) {
        messages.push(entry);
        length += entry.length;
        if (length < PIECE_LENGTH) continue;
        stream.idleSince = this.#now();
        yield output.sequence(messages);
        stream.idleSince = undefined;
        messages = [];
        length = 0;
      }
      yield output.sequence(messages);
    } finally {
      stream.leave(this.#now());
      this.#connections.serveWaiting();
    }
  }

  async #enter(baton: unknown, signal: AbortSignal | undefined): Promise<Stream> {
    const stream = baton == null ? await this.#begin(signal) : await this.#resume(baton);
    stream.enter(signal);
    return stream;
  }

  async #begin(signal: AbortSignal | undefined, stored?: Map<number, string>): Promise<Stream> {
    const connection = await this.#connections.take();
    const stream = new Stream(connection, this.#streamDeps, stored);
    this.#streams.add(stream);
    this.#deps.database.counters.connections = this.#streams.size;
    if (signal?.aborted) this.#end(stream, STREAM_CLOSED);
    return stream;
  }

  async #resume(baton: unknown): Promise<Stream> {
    if (typeof baton !== 'string') throw unknownBaton();
    const stream = this.#byBaton.get(baton);
    if (stream === undefined) throw this.#endings.get(baton) ?? unknownBaton();
    while (stream.busy !== undefined) await stream.busy;
    // Another request may have used the same baton.
    if (this.#byBaton.get(baton) !== stream) throw stream.ended ?? unknownBaton();
    this.#byBaton.delete(baton);
    return stream;
  }

  /** Issues a new baton; null when the stream has ended. */
  #remember(stream: Stream): string | null {
    if (stream.ended !== undefined) return null;
    stream.baton = this.#deps.newBaton();
    this.#byBaton.set(stream.baton, stream);
    return stream.baton;
  }

  #end(stream: Stream, reason: HranaError): void {
    if (!this.#streams.delete(stream)) return;
    this.#deps.database.counters.connections = this.#streams.size;
    this.#resting.delete(stream);
    stream.end(reason);
    this.#connections.giveBack(stream.connection);
    if (!this.#byBaton.delete(stream.baton)) return;
    this.#endings.set(stream.baton, reason);
    const [oldest] = this.#endings.keys();
    if (this.#endings.size > MAX_ENDINGS && oldest !== undefined) this.#endings.delete(oldest);
  }

  /** Ends an idle stream without a transaction, because many clients never close theirs. */
  #reclaim(): boolean {
    for (const stream of [...this.#byBaton.values(), ...this.#resting]) {
      if (stream.busy !== undefined || !stream.isAutocommit) continue;
      this.#end(stream, expired('its connection was needed by another stream'));
      return true;
    }
    return false;
  }

  /** Readers of old snapshots prevent checkpoints: the oldest one is ended. */
  #shortenLog(): void {
    const streams = [...this.#streams];
    if (this.#deps.database.logBytes() <= this.#deps.limits.logBytes) return;
    if (streams.some(({ isWriting }) => isWriting)) return;
    const readers = streams.filter(({ readingSince }) => readingSince !== undefined);
    readers.sort((one, other) => (one.readingSince ?? 0) - (other.readingSince ?? 0));
    while (!this.#connections.writeLogBack()) {
      const oldest = readers.shift();
      if (oldest === undefined) return;
      this.#end(oldest, expired('it held an old snapshot while too much was written'));
    }
  }

  #endOverdue(): void {
    this.#shortenLog();
    const now = this.#now();
    const { idleMs, streamIdleMs, transactionMs } = this.#deps.limits;
    for (const stream of this.#streams) {
      const { readingSince, idleSince = now } = stream;
      const mayIdleMs = readingSince === undefined ? streamIdleMs : idleMs;
      if (now - idleSince > mayIdleMs) {
        this.#end(stream, expired(`it was idle for ${mayIdleMs / 1000} s`));
      } else if (readingSince !== undefined && now - readingSince > transactionMs) {
        this.#end(stream, expired(`its transaction or cursor was open for ${transactionMs / 1000} s`));
      }
    }
  }

  #now(): number {
    return this.#deps.clock.monotonic();
  }
}

function statusOf(error: unknown): number {
  if (!(error instanceof HranaError)) return 500;
  return error.hranaCode === 'TOO_MANY_STREAMS' ? 503 : 400;
}

function expired(why: string): HranaError {
  return new HranaError(
    'STREAM_EXPIRED',
    `The stream expired and its uncommitted changes were rolled back: ${why}`,
  );
}

function unknownBaton(): HranaError {
  return new HranaError(
    'BATON_INVALID',
    'Unknown baton: its stream has ended, or the baton was already used',
  );
}
