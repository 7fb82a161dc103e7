/**
 * Ways to schedule work: one after another, a limited number at once, or together in turns of the
 * event loop.
 */
import type { IncomingMessage } from 'node:http';
import { detachBuffer } from './buffers.ts';

/** Serializes work on the same key, in the order of the calls. */
export class KeyedMutex {
  readonly #tails = new Map<string, Promise<void>>();

  /** Whether work on the key runs or waits. */
  isBusy(key: string): boolean {
    return this.#tails.has(key);
  }

  /** Resolves when no work runs or waits, and the callers have its outcome. */
  async idle(): Promise<void> {
    while (this.#tails.size > 0) {
      await Promise.all(this.#tails.values());
      await endOfTick();
    }
  }

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key);
    let release = () => {};
    const mine = new Promise<void>((resolve) => {
      release = resolve;
    });
    this.#tails.set(key, mine);
    try {
      if (before) await before;
      return await work();
    } finally {
      release();
      if (this.#tails.get(key) === mine) this.#tails.delete(key);
    }
  }
}

/** Limits concurrency; waiting calls run in order. */
export class Semaphore {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(atOnce: number) {
    this.#free = atOnce;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Resolves with the result of `work`. Throws the signal's reason if it aborts first. */
  async run<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    await this.#turn(signal);
    try {
      return await work();
    } finally {
      this.#free++;
      const [next] = this.#waiting;
      next?.();
    }
  }

  #turn(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const take = () => {
        leave();
        this.#free--;
        resolve();
      };
      const giveUp = () => {
        leave();
        reject(signal?.reason);
      };
      const leave = () => {
        this.#waiting.delete(take);
        signal?.removeEventListener('abort', giveUp);
      };
      if (signal?.aborted) reject(signal.reason);
      else if (this.#free > 0) take();
      else {
        this.#waiting.add(take);
        signal?.addEventListener('abort', giveUp);
      }
    });
  }
}

/** A semaphore per key, kept while it is used. */
export class KeyedSemaphore<K> {
  readonly #atOnce: number;
  readonly #held = new Map<K, { readonly semaphore: Semaphore; users: number }>();

  constructor(atOnce: number) {
    this.#atOnce = atOnce;
  }

  /** Like Semaphore.run, per key. */
  async run<T>(key: K, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const held = this.#held.get(key) ?? { semaphore: new Semaphore(this.#atOnce), users: 0 };
    this.#held.set(key, held);
    held.users++;
    try {
      return await held.semaphore.run(signal, work);
    } finally {
      held.users--;
      if (held.users === 0) this.#held.delete(key);
    }
  }
}

/** A count per key; keys with a count of zero take no memory. */
export class Counts<K> {
  readonly #counts = new Map<K, number>();

  of(key: K): number {
    return this.#counts.get(key) ?? 0;
  }

  /** Adds one. The result subtracts it again; a second call does nothing. */
  add(key: K): () => void {
    this.#counts.set(key, this.of(key) + 1);
    let isCounted = true;
    return () => {
      if (!isCounted) return;
      isCounted = false;
      const left = this.of(key) - 1;
      if (left === 0) this.#counts.delete(key);
      else this.#counts.set(key, left);
    };
  }
}

/** Runs `work` for each item with limited concurrency; rejects with the first failure. */
export async function eachOf<T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = items.values();
  const worker = async () => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

let turn: Promise<void> | undefined;

/**
 * Resolves at the end of this turn of the event loop, for all callers at once. It batches the work
 * of many requests: all of them take their first step, then all the second. Otherwise each request
 * would run the whole program alone, and a small upload would spend half its time on code that has
 * just left the processor's caches (decisions/0013).
 */
export function endOfTick(): Promise<void> {
  turn ??= new Promise((resolve) => {
    setImmediate(() => {
      turn = undefined;
      resolve();
    });
  });
  return turn;
}

/** Rows read at once. */
export const SCANNED_AT_ONCE = 1000;

/** Reads in its turn. */
export type InTurn = <T>(read: () => T | Promise<T>) => Promise<T>;

/** Accounts that read at once; a connection of PostgreSQL is left for other reads (readers.ts). */
const READING_AT_ONCE = 3;

/** Walks of an account of one kind, such as its searches. */
interface WalkOf {
  readonly accountId: number;
  readonly kind: string;
}

/**
 * Turns of walks over many rows, which search, sort or count. A read of SQLite is synchronous and blocks all
 * requests for some milliseconds: regardless of the number of walks, one read begins per turn of the event
 * loop. A read of PostgreSQL may last seconds: each account has one at a time, and others do not wait for it.
 */
export class ScanTurns {
  readonly #walks = new KeyedMutex();
  readonly #ofAccounts = new KeyedMutex();
  readonly #reading = new Semaphore(READING_AT_ONCE);
  readonly #beginnings = new KeyedMutex();

  /**
   * One walk of a kind and account at a time. Throws the reason of `signal`, which is aborted once nobody
   * waits for the walk.
   */
  walk<T>(
    { accountId, kind }: WalkOf,
    signal: AbortSignal | undefined,
    work: (inTurn: InTurn) => Promise<T>,
  ): Promise<T> {
    return this.#walks.run(`${kind} ${accountId}`, async () => {
      signal?.throwIfAborted();
      return work((read) => this.read(accountId, read, signal));
    });
  }

  /** A read of a walk that need not be alone. Throws the reason of the signal. */
  read<T>(accountId: number, read: () => T | Promise<T>, signal?: AbortSignal): Promise<T> {
    return this.#ofAccounts.run(`${accountId}`, () =>
      this.#reading.run(signal, async () => (await this.#begin(read, signal)).result),
    );
  }

  /** Resolves a turn of the event loop later. In an object, so that nobody waits for the result. */
  #begin<T>(
    read: () => T | Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<{ readonly result: Promise<T> }> {
    return this.#beginnings.run('', async () => {
      // A caller that has left does not wait for another turn.
      signal?.throwIfAborted();
      const result = (async () => read())();
      // It may fail within this turn.
      result.catch(() => {});
      await endOfTick();
      return { result };
    });
  }
}

export interface BodyPump {
  /** Must not keep a reference to the piece: its memory is freed. A promise pauses the sender. */
  readonly take: (piece: Buffer) => Promise<void> | undefined;
  /** Bytes taken before other requests run. */
  readonly turnBytes: number;
  /** The error for a client that disconnects. */
  readonly lost: () => Error;
}

/** Passes the pieces of a body on, one at a time. Rejects with the errors of `take`; the rest is left. */
export function pumpBody(request: IncomingMessage, { take, turnBytes, lost }: BodyPump): Promise<void> {
  return new Promise((resolve, reject) => {
    let taken = 0;
    const onData = (piece: Buffer) => {
      let waiting: Promise<void> | undefined;
      try {
        waiting = take(piece);
      } catch (error) {
        fail(error);
        return;
      }
      taken += piece.length;
      detachBuffer(piece);
      if (waiting === undefined && taken >= turnBytes) waiting = endOfTick();
      if (waiting === undefined) return;
      taken = 0;
      request.pause();
      waiting.then(() => request.resume(), fail);
    };
    const onEnd = () => {
      leave();
      resolve();
    };
    const onLost = () => fail(lost());
    const leave = () => {
      request.off('data', onData).off('end', onEnd).off('error', onLost).off('close', onLost);
    };
    const fail = (error: unknown) => {
      leave();
      request.pause();
      reject(error);
    };
    // Even after the whole body arrived: unread bytes are lost.
    if (request.destroyed) return onLost();
    if (request.readableEnded) return resolve();
    request.on('data', onData).on('end', onEnd).on('error', onLost).on('close', onLost);
  });
}
