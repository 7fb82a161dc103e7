/**
 * One client's WebSocket, inside the child that has its database open: its streams, cursors and stored SQL
 * texts. Requests of one stream run one after the other, in the order in which they came.
 */
import { cursorEntries, stepsOf } from './batch.ts';
import { HranaError } from './error.ts';
import { type Answer, type JsonObject, type Output, type Piece, protocolError } from './format.ts';
import { isObject } from './json.ts';
import { type Stream, storeSql } from './stream.ts';

export interface SocketHost {
  /** Takes a connection; throws HranaError `TOO_MANY_STREAMS`. */
  begin(stored: Map<number, string>): Promise<Stream>;
  end(stream: Stream, reason: HranaError): void;
  /** The stream waits for its client from now on. */
  leave(stream: Stream): void;
  /** A cursor of the stream waits for its client. */
  pause(stream: Stream): void;
}

interface OpenStream {
  readonly id: number;
  readonly stream: Promise<Stream>;
  /** Resolves when the earlier requests have ended. */
  turn: Promise<void>;
  /** Open cursors, and those that wait, in order. */
  readonly cursors: Set<Promise<OpenCursor>>;
}

interface OpenCursor {
  readonly stream: Stream;
  readonly entries: AsyncGenerator<Piece>;
  /** Lets the next request of the stream run. */
  readonly release: () => void;
  fetching: Promise<unknown>;
}

const MAX_STREAMS = 1_000;
const MAX_CURSORS = 1_000;
/** Approximate size of the entries in one response, in characters or bytes. */
const FETCH_LENGTH = 64 * 1024;
export const STREAM_CLOSED = new HranaError('STREAM_CLOSED', 'The stream was closed');

export class HranaSocket {
  readonly #host: SocketHost;
  readonly #streams = new Map<number, OpenStream>();
  /** Clients ask for entries before they know that the cursor is open. */
  readonly #cursors = new Map<number, Promise<OpenCursor>>();
  readonly #stored = new Map<number, string>();

  constructor(host: SocketHost) {
    this.#host = host;
  }

  /** Rolls back and closes everything. */
  close(): void {
    for (const { stream } of this.#streams.values()) {
      stream.then((opened) => this.#host.end(opened, STREAM_CLOSED)).catch(() => {});
    }
    for (const cursor of this.#cursors.values()) cursor.then(({ release }) => release()).catch(() => {});
    this.#streams.clear();
    this.#cursors.clear();
  }

  /** Answers a Request of the protocol. Throws the error for its `response_error`. */
  async answer(request: JsonObject, output: Output): Promise<Answer> {
    const { type } = request;
    switch (type) {
      case 'open_stream':
        await this.#openStream(idOf(request, 'stream_id'));
        return { type };
      case 'close_stream':
        await this.#closeStream(idOf(request, 'stream_id'));
        return { type };
      case 'store_sql':
        storeSql(this.#stored, request);
        return { type };
      case 'close_sql':
        this.#stored.delete(Number(request.sql_id));
        return { type };
      case 'open_cursor':
        await this.#openCursor(this.#withTexts(request), output);
        return { type };
      case 'fetch_cursor':
        return { type, ...(await this.#fetch(request)) };
      case 'close_cursor':
        await this.#closeCursor(idOf(request, 'cursor_id'));
        return { type };
      default:
        return this.#inTurn(this.#streamOf(request), answerOf(this.#withTexts(request), output));
    }
  }

  /** The request with the texts of its ids at this time: they may be closed before its turn comes. */
  #withTexts(request: JsonObject): JsonObject {
    if (this.#stored.size === 0) return request;
    const withText = (given: unknown) => {
      const id = isObject(given) && typeof given.sql !== 'string' ? given.sql_id : undefined;
      const sql = typeof id === 'number' ? this.#stored.get(id) : undefined;
      return sql === undefined ? given : { ...(given as JsonObject), sql };
    };
    const { stmt, batch } = request;
    const steps = isObject(batch) && Array.isArray(batch.steps) ? batch.steps : null;
    const inSteps = steps?.map((step) => (isObject(step) ? { ...step, stmt: withText(step.stmt) } : step));
    return {
      ...(withText(request) as JsonObject),
      stmt: withText(stmt),
      batch: steps === null ? batch : { ...(batch as JsonObject), steps: inSteps },
    };
  }

  async #openStream(id: number): Promise<void> {
    if (this.#streams.has(id)) throw protocolError(`stream_id ${id} is in use`);
    if (this.#streams.size >= MAX_STREAMS)
      throw protocolError(`A connection has at most ${MAX_STREAMS} streams`);
    const stream = this.#host.begin(this.#stored);
    const opened: OpenStream = { id, stream, turn: Promise.resolve(), cursors: new Set() };
    this.#streams.set(id, opened);
    try {
      this.#host.leave(await stream);
    } catch (error) {
      if (this.#streams.get(id) === opened) this.#streams.delete(id);
      throw error;
    }
  }

  /** Runs after the earlier requests and cursors of the stream. Uncommitted changes are rolled back. */
  async #closeStream(id: number): Promise<void> {
    const opened = this.#streams.get(id);
    if (opened === undefined) return;
    this.#streams.delete(id);
    for (const [cursor, begun] of this.#cursors) if (opened.cursors.has(begun)) this.#cursors.delete(cursor);
    for (const begun of opened.cursors) await finish(begun);
    await opened.turn;
    this.#host.end(await opened.stream, STREAM_CLOSED);
  }

  #streamOf(request: JsonObject): OpenStream {
    const id = idOf(request, 'stream_id');
    const opened = this.#streams.get(id);
    if (opened !== undefined) return opened;
    throw new HranaError('STREAM_NOT_FOUND', `No stream is open as stream_id ${id}`);
  }

  /** Runs `work` once the earlier requests have ended. */
  async #inTurn<T>(opened: OpenStream, work: (stream: Stream) => Promise<T>): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const before = opened.turn;
    opened.turn = promise;
    try {
      await before;
      const stream = await opened.stream;
      stream.enter(undefined);
      try {
        return await work(stream);
      } finally {
        this.#host.leave(stream);
      }
    } finally {
      resolve();
    }
  }

  /** Resolves when the cursor may be read. Requests of its stream wait until it ends. */
  async #openCursor(request: JsonObject, output: Output): Promise<void> {
    const id = idOf(request, 'cursor_id');
    const steps = stepsOf(request.batch);
    const opened = this.#streamOf(request);
    if (this.#cursors.has(id)) throw protocolError(`cursor_id ${id} is in use`);
    if (this.#cursors.size >= MAX_CURSORS)
      throw protocolError(`A connection has at most ${MAX_CURSORS} cursors`);
    const begun = Promise.withResolvers<OpenCursor>();
    this.#cursors.set(id, begun.promise);
    opened.cursors.add(begun.promise);
    void this.#inTurn(opened, async (stream) => {
      stream.assertOpen();
      const over = Promise.withResolvers<void>();
      stream.onEnd = over.resolve;
      const entries = cursorEntries(stream, steps, output);
      this.#host.pause(stream);
      begun.resolve({ stream, entries, release: over.resolve, fetching: Promise.resolve() });
      await over.promise;
      stream.onEnd = undefined;
    })
      .catch(begun.reject)
      .finally(() => opened.cursors.delete(begun.promise));
    await begun.promise;
  }

  async #fetch(request: JsonObject): Promise<Pick<Answer, 'entries' | 'isDone'>> {
    const id = idOf(request, 'cursor_id');
    const cursor = await this.#cursors.get(id);
    if (cursor === undefined)
      throw new HranaError('CURSOR_NOT_FOUND', `No cursor is open as cursor_id ${id}`);
    const most = Number(request.max_count);
    if (!(most >= 1)) throw protocolError('max_count must be a number of at least 1');
    const before = cursor.fetching;
    const fetched = before.then(() => this.#fetchFrom(cursor, most));
    cursor.fetching = fetched.catch(() => {});
    return fetched;
  }

  async #fetchFrom({ stream, entries, release }: OpenCursor, most: number) {
    const taken: Piece[] = [];
    let isDone = false;
    stream.idleSince = undefined;
    for (let length = 0; taken.length < most && length < FETCH_LENGTH; ) {
      const { value, done } = await entries.next();
      if (done) {
        isDone = true;
        release();
        break;
      }
      taken.push(value);
      length += value.length;
    }
    if (!isDone) this.#host.pause(stream);
    return { entries: taken, isDone };
  }

  async #closeCursor(id: number): Promise<void> {
    const begun = this.#cursors.get(id);
    if (begun === undefined) return;
    this.#cursors.delete(id);
    await finish(begun);
  }
}

const answerOf = (request: JsonObject, output: Output) => (stream: Stream) => stream.answer(request, output);

/** Ends a cursor after earlier requests for it; one that failed to open is already over. */
async function finish(begun: Promise<OpenCursor>): Promise<void> {
  const cursor = await begun.catch(() => null);
  if (cursor === null) return;
  await cursor.fetching;
  await cursor.entries.return(undefined);
  cursor.release();
}

/** Throws HranaError `PROTOCOL_ERROR`. */
function idOf(request: JsonObject, name: string): number {
  const id = request[name];
  if (typeof id === 'number' && Number.isSafeInteger(id)) return id;
  throw protocolError(`${name} must be a whole number`);
}
