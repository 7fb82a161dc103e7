/**
 * Connections for reads. All reads of one turn of the event loop are sent together over one
 * connection: each write to a socket costs a system call and wakes the server, which costs more
 * than the rest of a short read.
 */
import type pg from 'pg';
import type { SqlValue } from '../../metadata/metadata.ts';
import { systemClock } from '../../platform/clock.ts';
import { unreachable } from './commit-answers.ts';
import { codeOf, heldBack, prepared, toSent } from './connections.ts';

/** Concurrent queries; connections pipeline further ones. */
const READERS = 4;
/** A read that lasts longer, such as one of a search, holds up those behind it. */
const LONG_MS = 10;

interface Reader {
  client: Promise<pg.Client> | null;
  /** Reads without a result. */
  waiting: number;
  /** When the server began with the first of them; monotonic, ms. */
  since: number;
}

interface Asked {
  readonly params: readonly SqlValue[];
  readonly rows: Promise<unknown[]>;
}

export class Readers {
  /** Rejects with `overloaded`. */
  readonly #connect: (onEnd: () => void) => Promise<pg.Client>;
  readonly #readers = Array.from({ length: READERS }, (): Reader => ({ client: null, waiting: 0, since: 0 }));
  /** The last read of each text in this turn, because concurrent requests (decisions/0013) repeat them. */
  readonly #asked = new Map<string, Asked>();
  #ofTurn: Reader | null = null;
  #isTurn = false;
  /** Connections with buffered reads of this turn, and the calls that send them. */
  readonly #held = new Map<pg.Client, () => void>();

  constructor(connect: (onEnd: () => void) => Promise<pg.Client>) {
    this.#connect = connect;
  }

  /** Rejects with `overloaded` if the connection is lost, and with pg's errors. */
  async get<T>(sql: string, params: readonly SqlValue[]): Promise<T | undefined> {
    const last = this.#asked.get(sql);
    if (last !== undefined && areEqual(last.params, params)) return (await last.rows)[0] as T | undefined;
    const rows = this.all(sql, params);
    this.#asked.set(sql, { params, rows });
    return (await rows)[0] as T | undefined;
  }

  /** Rejects like get(). */
  async all(sql: string, params: readonly SqlValue[]): Promise<unknown[]> {
    const reader = this.#next();
    if (reader.waiting++ === 0) reader.since = systemClock.monotonic();
    try {
      const client = await this.#clientOf(reader);
      if (!this.#held.has(client)) this.#held.set(client, heldBack(client));
      this.#awaitTurn();
      return (await client.query({ ...prepared(sql), values: params.map(toSent) })).rows;
    } catch (error) {
      throw codeOf(error) === '' ? unreachable(error) : error;
    } finally {
      reader.waiting--;
      reader.since = systemClock.monotonic();
    }
  }

  /** Connections that are open or being opened. */
  get clients(): readonly Promise<pg.Client>[] {
    return this.#readers.flatMap(({ client }) => client ?? []);
  }

  /** The reader for this turn: the least busy one. */
  #next(): Reader {
    this.#ofTurn ??= leastBusy(this.#readers);
    this.#awaitTurn();
    return this.#ofTurn;
  }

  #awaitTurn(): void {
    if (this.#isTurn) return;
    this.#isTurn = true;
    setImmediate(() => {
      this.#isTurn = false;
      this.#ofTurn = null;
      // Taken before the reads are sent: a shared read must be newer than each commit that was settled by
      // then.
      this.#asked.clear();
      for (const send of this.#held.values()) send();
      this.#held.clear();
    });
  }

  /** Reconnects if the connection was lost. */
  #clientOf(reader: Reader): Promise<pg.Client> {
    const connecting =
      reader.client ??
      this.#connect(() => {
        reader.client = null;
      });
    reader.client = connecting;
    return connecting.catch((error: unknown) => {
      // Another read may be reconnecting.
      if (reader.client === connecting) reader.client = null;
      throw error;
    });
  }
}

function areEqual(some: readonly SqlValue[], others: readonly SqlValue[]): boolean {
  return some.length === others.length && some.every((param, i) => param === others[i]);
}

function leastBusy(readers: readonly Reader[]): Reader {
  const now = systemClock.monotonic();
  const heldMs = ({ waiting, since }: Reader) => (waiting > 0 && now - since > LONG_MS ? now - since : 0);
  return readers.reduce((least, other) => {
    const difference = heldMs(other) - heldMs(least);
    return difference < 0 || (difference === 0 && other.waiting < least.waiting) ? other : least;
  });
}
