/**
 * Hrana over HTTP for one database, inside the child that has it open: `POST v2/pipeline`, `v3/pipeline` and
 * `v3/cursor`, as specified by HRANA_3_SPEC and HRANA_2_SPEC of libsql. Authentication happens before, and
 * durability of answers after this code.
 *
 * Writers wait here, not in SQLite, so that the current writer can proceed; the limits bound how long anyone
 * can block the database. A statement that never ends is killed with the child.
 */
import type { Clock } from '../../platform/clock.ts';
import { randomBase62 } from '../../platform/ids.ts';
import { cursorEntries, stepsOf } from './hrana-batch.ts';
import { Connections } from './hrana-connections.ts';
import { errorJson, HranaError } from './hrana-error.ts';
import { type JsonObject, objectOf, protocolError, readBody } from './hrana-json.ts';
import type { ResponseBudget } from './hrana-statement.ts';
import { Stream, type StreamDeps } from './hrana-stream.ts';
import { WriteTurn } from './hrana-write-turn.ts';
import type { TenantConnections } from './tenant-connections.ts';

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
  /** Limit of the WAL; beyond it, streams that prevent a checkpoint are ended. */
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
  readonly database: TenantConnections;
  readonly clock: Pick<Clock, 'monotonic'>;
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
  readonly body: string | AsyncIterable<string>;
}

const SWEEP_MS = 250;
const BATON_CHARACTERS = 32;
/** Batons of expired streams, kept for error messages. */
const MAX_ENDINGS = 1_000;
/** Approximate size of a cursor's pieces, characters. */
const PIECE_LENGTH = 32 * 1024;
const PIPELINES = new Set(['v2/pipeline', 'v3/pipeline']);

export class HranaSessions {
  readonly #deps: HranaSessionsDeps;
  readonly #connections: Connections;
  readonly #streamDeps: StreamDeps;
  readonly #streams = new Set<Stream>();
  /** Idle streams, longest idle first. */
  readonly #byBaton = new Map<string, Stream>();
  readonly #endings = new Map<string, HranaError>();

  constructor(deps: HranaSessionsDeps) {
    this.#deps = deps;
    const { database, limits } = deps;
    const { busyMs } = limits;
    this.#connections = new Connections({ database, waitMs: busyMs, reclaim: () => this.#reclaim() });
    const now = () => this.#now();
    const { counters } = database;
    const beforeWrite = () => database.heedHost();
    this.#streamDeps = { turn: new WriteTurn<Stream>(), counters, beforeWrite, now, busyMs };
    setInterval(() => this.#endOverdue(), SWEEP_MS).unref();
  }

  /** Always answers in the protocol's format; never throws. */
  async handle({ path, body, signal }: HranaRequest): Promise<HranaResponse> {
    try {
      if (PIPELINES.has(path)) return json(200, await this.#pipeline(readBody(body), signal));
      if (path === 'v3/cursor') return await this.#cursor(readBody(body), signal);
      return json(404, errorJson(new HranaError('NOT_FOUND', `There is nothing at ${path}`)));
    } catch (error) {
      return json(statusOf(error), errorJson(error));
    }
  }

  async #pipeline(body: JsonObject, signal: AbortSignal | undefined): Promise<string> {
    if (!Array.isArray(body.requests)) throw protocolError('requests must be a list');
    const requests = body.requests.map((request) => objectOf(request, 'A request'));
    const stream = await this.#enter(body.baton, signal);
    const budget = { left: this.#deps.limits.responseLength };
    const results: string[] = [];
    for (const request of requests) {
      try {
        results.push(`{"type":"ok","response":${await this.#answer(stream, request, budget)}}`);
      } catch (error) {
        results.push(`{"type":"error","error":${errorJson(error)}}`);
      }
    }
    if (signal?.aborted) this.#end(stream, CLOSED);
    stream.leave(this.#now());
    const baton = JSON.stringify(this.#remember(stream));
    this.#connections.serveWaiting();
    return `{"baton":${baton},"base_url":null,"results":[${results.join(',')}]}`;
  }

  async #answer(stream: Stream, request: JsonObject, budget: ResponseBudget): Promise<string> {
    if (request.type !== 'close') return stream.answer(request, budget);
    this.#end(stream, CLOSED);
    return '{"type":"close"}';
  }

  async #cursor(body: JsonObject, signal: AbortSignal | undefined): Promise<HranaResponse> {
    const steps = stepsOf(body.batch);
    const stream = await this.#enter(body.baton, signal);
    // Starts the idle timeout in case nobody reads it.
    stream.idleSince = this.#now();
    return { status: 200, contentType: JSON_TYPE, body: this.#readCursor(stream, steps) };
  }

  /** The client may use the baton from the first line on; its requests wait until the cursor ends. */
  async *#readCursor(stream: Stream, steps: readonly unknown[]): AsyncGenerator<string> {
    let piece = `{"baton":${JSON.stringify(this.#remember(stream))},"base_url":null}\n`;
    stream.idleSince = undefined;
    try {
      for await (const entry of cursorEntries(stream, steps, this.#deps.limits.responseLength)) {
        piece += entry;
        if (piece.length < PIECE_LENGTH) continue;
        stream.idleSince = this.#now();
        yield piece;
        stream.idleSince = undefined;
        piece = '';
      }
      yield piece;
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

  async #begin(signal: AbortSignal | undefined): Promise<Stream> {
    const connection = await this.#connections.take();
    const stream = new Stream(connection, this.#streamDeps);
    this.#streams.add(stream);
    this.#deps.database.counters.connections = this.#streams.size;
    if (signal?.aborted) this.#end(stream, CLOSED);
    return stream;
  }

  async #resume(baton: unknown): Promise<Stream> {
    if (typeof baton !== 'string') throw unknownBaton();
    const stream = this.#byBaton.get(baton);
    if (stream === undefined) throw this.#endings.get(baton) ?? unknownBaton();
    while (stream.busy !== undefined) await stream.busy;
    // Another request may have used the same baton meanwhile.
    if (this.#byBaton.get(baton) !== stream) throw stream.ended ?? unknownBaton();
    this.#byBaton.delete(baton);
    return stream;
  }

  /** Issues a new baton; null when the stream has ended. */
  #remember(stream: Stream): string | null {
    if (stream.ended !== undefined) return null;
    stream.baton = randomBase62(BATON_CHARACTERS);
    this.#byBaton.set(stream.baton, stream);
    return stream.baton;
  }

  #end(stream: Stream, reason: HranaError): void {
    if (!this.#streams.delete(stream)) return;
    this.#deps.database.counters.connections = this.#streams.size;
    stream.end(reason);
    this.#connections.giveBack(stream.connection);
    if (!this.#byBaton.delete(stream.baton)) return;
    this.#endings.set(stream.baton, reason);
    const [oldest] = this.#endings.keys();
    if (this.#endings.size > MAX_ENDINGS && oldest !== undefined) this.#endings.delete(oldest);
  }

  /** Ends an idle stream without a transaction, because many clients never close theirs. */
  #reclaim(): boolean {
    for (const stream of this.#byBaton.values()) {
      if (stream.busy !== undefined || !stream.isAutocommit) continue;
      this.#end(stream, expired('its connection was needed by another stream'));
      return true;
    }
    return false;
  }

  /** Readers of an old snapshot prevent checkpoints: the oldest is ended. */
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

const JSON_TYPE = 'application/json';

function json(status: number, body: string): HranaResponse {
  return { status, contentType: JSON_TYPE, body };
}

function statusOf(error: unknown): number {
  if (!(error instanceof HranaError)) return 500;
  return error.hranaCode === 'TOO_MANY_STREAMS' ? 503 : 400;
}

const CLOSED = new HranaError('STREAM_CLOSED', 'The stream was closed');

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
