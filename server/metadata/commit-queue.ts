/**
 * Commits that wait while the store writes a batch, and then form the next batch: one fsync for all
 * of them. Both engines use it.
 */
import { AppError } from '../platform/errors.ts';
import type { Statement, StatementResult } from './metadata.ts';
import type { StoreFigures } from './store-figures.ts';

/** A commit that waits for its result. */
export interface WaitingCommit {
  readonly statements: readonly Statement[];
  readonly bytes: number;
  readonly resolve: (results: StatementResult[]) => void;
  readonly reject: (error: Error) => void;
}

const MAX_BATCH_COMMITS = 128;
const MAX_BATCH_BYTES = 8 * 2 ** 20;
/** Limits of the queue for a slow disk; beyond them calls are refused. */
const MAX_QUEUED_COMMITS = 20_000;
const MAX_QUEUED_BYTES = 128 * 2 ** 20;

export interface CommitQueueDeps {
  readonly clock: { monotonic(): number };
  readonly figures: StoreFigures;
  /** Stores a batch, answers each of its commits, and then calls done(). It does not throw. */
  readonly send: (batch: readonly WaitingCommit[]) => void;
}

export class CommitQueue {
  readonly #deps: CommitQueueDeps;
  #sentAt = 0;
  #queue: WaitingCommit[] = [];
  #queuedBytes = 0;
  #inFlight: readonly WaitingCommit[] = [];
  #isSendScheduled = false;
  #onIdle: (() => void) | null = null;

  constructor(deps: CommitQueueDeps) {
    this.#deps = deps;
  }

  /** The batch that is being stored. */
  get inFlight(): readonly WaitingCommit[] {
    return this.#inFlight;
  }

  /** Rejects with `overloaded` while too many wait. */
  add(statements: readonly Statement[]): Promise<StatementResult[]> {
    if (this.#queue.length >= MAX_QUEUED_COMMITS || this.#queuedBytes >= MAX_QUEUED_BYTES) {
      return Promise.reject(storeBusy('too many commits are queued'));
    }
    return new Promise((resolve, reject) => {
      const bytes = sizeOf(statements);
      this.#queue.push({ statements, bytes, resolve, reject });
      this.#queuedBytes += bytes;
      this.#scheduleSend();
    });
  }

  /** The batch has ended: the next one may be sent. */
  done(): void {
    const { clock, figures } = this.#deps;
    figures.batchSeconds += (clock.monotonic() - this.#sentAt) / 1000;
    this.#inFlight = [];
    this.#scheduleSend();
    if (this.#queue.length === 0) this.#onIdle?.();
  }

  /** Removes all commits, those being stored first; the caller must answer them. */
  takeAll(): WaitingCommit[] {
    const all = [...this.#inFlight, ...this.takeWaiting()];
    this.#inFlight = [];
    this.#onIdle?.();
    return all;
  }

  /** Removes the commits that are not being stored yet; the caller must answer them. */
  takeWaiting(): WaitingCommit[] {
    const waiting = this.#queue;
    this.#queue = [];
    this.#queuedBytes = 0;
    return waiting;
  }

  /** Resolves once no commit waits or is being stored. */
  async idle(): Promise<void> {
    if (this.#queue.length === 0 && this.#inFlight.length === 0) return;
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve;
    });
  }

  /** At the end of the event loop's turn, so that all commits of one turn share a batch. */
  #scheduleSend(): void {
    if (this.#isSendScheduled || this.#inFlight.length > 0 || this.#queue.length === 0) return;
    this.#isSendScheduled = true;
    setImmediate(() => {
      this.#isSendScheduled = false;
      this.#sendNext();
    });
  }

  #sendNext(): void {
    let count = 0;
    let bytes = 0;
    for (const waiting of this.#queue) {
      if (count === MAX_BATCH_COMMITS || (count > 0 && bytes + waiting.bytes > MAX_BATCH_BYTES)) break;
      bytes += waiting.bytes;
      count++;
    }
    if (count === 0) return;
    this.#inFlight = this.#queue.slice(0, count);
    this.#queue = this.#queue.slice(count);
    this.#queuedBytes -= bytes;
    const { clock, figures, send } = this.#deps;
    figures.batches++;
    figures.commits += count;
    this.#sentAt = clock.monotonic();
    send(this.#inFlight);
  }
}

/** Approximate bytes of a commit, to bound memory. */
function sizeOf(statements: readonly Statement[]): number {
  let bytes = 0;
  for (const { params } of statements) {
    bytes += 64;
    for (const param of params) {
      if (param instanceof Uint8Array) bytes += param.byteLength;
      else if (typeof param === 'string') bytes += param.length;
    }
  }
  return bytes;
}

/** Nothing was stored; the same commit may succeed later. */
export function storeBusy(detail: string): AppError {
  const extras = { retryAfterSeconds: 1, cause: new Error(detail) };
  return new AppError('overloaded', 'The metadata store is busy; nothing was stored', extras);
}
