/** Results that do not fit into one reply. */
import { type Document, Long } from 'bson';
import type { Clock } from '../clock.ts';
import { CommandError } from '../command-error.ts';
import { encodeDocument, type RawDocument } from '../values/bson-documents.ts';
import { plainNumber } from '../values/numbers.ts';
import { Tail } from './tail.ts';

/** Same as a real server's. */
const FIRST_BATCH = 101;
const MAX_BATCH_BYTES = 16 * 2 ** 20;
const IDLE_MS = 10 * 60_000;
/** Maximum cursors; above it, the one idle longest is closed. */
const MAX_CURSORS = 1000;
/** Maximum bytes of buffered results, of all cursors together. */
const MAX_HELD_BYTES = 100 * 2 ** 20;

/** Milliseconds that a client waits for documents: the default, as on a server, and the maximum. */
const DEFAULT_WAIT_MS = 1000;
const MAX_WAIT_MS = 10_000;

/** Replies without documents whose client waits for some, and how long, ms. */
export const waits = new WeakMap<Document, number>();

export interface Result {
  /** Documents, encoded or not; a Tail stays open when it has no more. */
  readonly documents: Iterator<RawDocument | Document>;
  /** The rest is in memory, not read on demand. */
  readonly isHeld: boolean;
}

interface Cursor {
  readonly id: Long;
  readonly namespace: string;
  readonly documents: Iterator<RawDocument>;
  readonly heldBytes: number;
  usedAt: number;
}

export class Cursors {
  readonly #clock: Clock;
  /** Ordered by last use. */
  readonly #open = new Map<string, Cursor>();
  #lastId: bigint;

  constructor(clock: Clock) {
    this.#clock = clock;
    // Ids must differ from those of an earlier process.
    this.#lastId = BigInt(clock.now()) << 20n;
  }

  get size(): number {
    return this.#open.size;
  }

  /** The reply with the first documents of a result, and the cursor for the rest if there is any. */
  first(result: Result, { namespace, batchSize, isSingle }: FirstBatch): Document {
    const documents =
      result.documents instanceof Tail
        ? result.documents
        : Iterator.from(result.documents).map((each) =>
            each instanceof Uint8Array ? each : encodeDocument(each),
          );
    const { batch, rest } = take(
      documents,
      batchSize === undefined ? FIRST_BATCH : plainNumber(batchSize),
      false,
    );
    if (rest === null || isSingle)
      return { cursor: { firstBatch: batch, id: Long.ZERO, ns: namespace }, ok: 1 };
    return {
      cursor: { firstBatch: batch, id: this.#keep(rest, result.isHeld, namespace), ns: namespace },
      ok: 1,
    };
  }

  #keep(rest: Iterator<RawDocument>, isHeld: boolean, namespace: string): Long {
    this.#endIdle();
    const { documents, bytes: heldBytes } = isHeld ? this.#hold(rest) : { documents: rest, bytes: 0 };
    const id = Long.fromBigInt(++this.#lastId);
    this.#open.set(id.toString(), { id, namespace, documents, heldBytes, usedAt: this.#clock.monotonic() });
    return id;
  }

  #endIdle(): void {
    const since = this.#clock.monotonic() - IDLE_MS;
    for (const [key, { usedAt }] of this.#open) {
      if (usedAt > since && this.#open.size < MAX_CURSORS) return;
      this.#open.delete(key);
    }
  }

  /** Buffers the rest of a computed result as bytes, so that its size is known. */
  #hold(rest: Iterator<RawDocument>): { documents: Iterator<RawDocument>; bytes: number } {
    let held = 0;
    for (const { heldBytes } of this.#open.values()) held += heldBytes;
    const list: RawDocument[] = [];
    let bytes = 0;
    for (let next = rest.next(); !next.done; next = rest.next()) {
      bytes += next.value.length + 64;
      if (held + bytes > MAX_HELD_BYTES)
        throw new CommandError(
          'QueryExceededMemoryLimitNoDiskUseAllowed',
          `Results of open cursors exceeded ${MAX_HELD_BYTES} bytes: read or kill the others first`,
        );
      list.push(next.value);
    }
    return { documents: list.values(), bytes };
  }

  more(command: Document, namespace: string): Document {
    const key = String(command.getMore);
    const cursor = this.#open.get(key);
    if (cursor === undefined || cursor.namespace !== namespace)
      throw new CommandError('CursorNotFound', `cursor id ${key} not found`);
    // It ends if the next part cannot be read.
    this.#open.delete(key);
    const { batch, rest } = take(
      cursor.documents,
      plainNumber(command.batchSize ?? 0) || Number.POSITIVE_INFINITY,
      true,
    );
    if (rest === null) return { cursor: { nextBatch: batch, id: Long.ZERO, ns: namespace }, ok: 1 };
    this.#open.set(key, { ...cursor, documents: rest, usedAt: this.#clock.monotonic() });
    const reply = { cursor: { nextBatch: batch, id: cursor.id, ns: namespace }, ok: 1 };
    if (batch.length === 0 && rest instanceof Tail && rest.awaitsData)
      waits.set(reply, Math.min(plainNumber(command.maxTimeMS ?? DEFAULT_WAIT_MS), MAX_WAIT_MS));
    return reply;
  }

  kill(ids: readonly Long[]): Document {
    const killed = ids.filter((id) => this.#open.delete(String(id)));
    const cursorsNotFound = ids.filter((id) => !killed.includes(id));
    return { cursorsKilled: killed, cursorsNotFound, cursorsAlive: [], cursorsUnknown: [], ok: 1 };
  }

  killAll(): void {
    this.#open.clear();
  }
}

interface FirstBatch {
  readonly namespace: string;
  readonly batchSize: unknown;
  /** No cursor is kept, even if documents remain. */
  readonly isSingle: boolean;
}

/** Takes as many documents as fit; `rest` is null at the end. */
function take(
  documents: Iterator<RawDocument>,
  count: number,
  isOpen: boolean,
): { batch: RawDocument[]; rest: Iterator<RawDocument> | null } {
  if (!(count >= 0))
    throw new CommandError('BadValue', `batchSize must be non-negative, but received: ${count}`);
  const batch: RawDocument[] = [];
  let bytes = 0;
  const isTail = documents instanceof Tail;
  while (batch.length < count) {
    const next = documents.next();
    // A tail that found nothing at its start is useless.
    if (next.done) return { batch, rest: isTail && (isOpen || batch.length > 0) ? documents : null };
    if (batch.length > 0 && bytes + next.value.length > MAX_BATCH_BYTES) {
      if (!isTail) return { batch, rest: withFirst(next.value, documents) };
      documents.putBack(next.value);
      return { batch, rest: documents };
    }
    batch.push(next.value);
    bytes += next.value.length;
  }
  return { batch, rest: documents };
}

function* withFirst(first: RawDocument, rest: Iterator<RawDocument>): Generator<RawDocument> {
  yield first;
  for (let next = rest.next(); !next.done; next = rest.next()) yield next.value;
}
