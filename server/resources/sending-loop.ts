/**
 * Sends queued items in the database to their receivers: one attempt at a time per receiver, several
 * receivers at once, in a fair order (ServingOrder). Items and outcomes are rows, so that a kill loses
 * nothing. The queues of webhooks and of mail are such loops.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Awaitable } from '../metadata/metadata.ts';
import type { Clock } from '../platform/clock.ts';
import { MAX_DELAY_MS } from './retry-schedule.ts';
import { type DueRow, ServingOrder } from './serving-order.ts';

export interface SendingLoopDeps {
  readonly clock: Clock;
  /** Whether this node of a cluster sends; `isBusy`: it has attempts in progress. */
  readonly mayBegin: (isBusy: boolean) => Promise<boolean>;
  readonly onError: (what: string, error: unknown) => void;
}

/** Batches of new deliveries before attempts are made: new ones must not starve attempts. */
const MAX_BATCHES = 10;
/** Pause after a result that could not be stored: the receiver must not get the same item again at once. */
const PAUSE_MS = 60_000;
/** Pause after a pass, so that passes take at most a tenth of the time. */
const REST_FACTOR = 9;
const MAX_PASS_REST_MS = 1000;

export abstract class SendingLoop {
  readonly #name: string;
  readonly #deps: SendingLoopDeps;
  readonly #busy = new Map<number, Promise<void>>();
  readonly #order: ServingOrder;
  /** Receiver → end of its pause, monotonic. */
  readonly #paused = new Map<number, number>();
  readonly #end = new AbortController();
  #isOpen = false;
  #pass: Promise<void> | null = null;
  #isWanted = false;

  /** `name`: of a delivery, for the log, such as `webhook delivery`. */
  constructor(name: string, deps: SendingLoopDeps) {
    this.#name = name;
    this.#deps = deps;
    this.#order = new ServingOrder(deps.clock);
  }

  /** Prepares one batch of new deliveries; false: there was none. */
  protected abstract prepare(): Promise<boolean>;

  /** The next delivery of each receiver that has any. */
  protected abstract nextOfEach(): Awaitable<DueRow[]>;

  /**
   * Makes the next attempt for this receiver, if it is due, and stores its result. Resolves with a pause of
   * the receiver, ms. Rejects when the result could not be stored.
   */
  protected abstract attempt(receiver: number, signal: AbortSignal): Promise<number>;

  /** Starts making attempts; before, `wake` does nothing. */
  start(): void {
    this.#isOpen = true;
    this.wake();
  }

  /** Call when something may be due. */
  wake(): void {
    if (!this.#isOpen) return;
    this.#isWanted = true;
    this.#pass ??= this.#run();
  }

  /** Makes all due attempts; resolves when they and their successors have ended. */
  async whenIdle(): Promise<void> {
    this.wake();
    while (this.#pass !== null || this.#busy.size > 0) {
      await (this.#pass ?? Promise.all([...this.#busy.values()]));
    }
  }

  /** Aborts running attempts, which are repeated at the next start. */
  async close(): Promise<void> {
    this.#isOpen = false;
    this.#end.abort(new Error('closed'));
    await this.#pass;
    await Promise.all([...this.#busy.values()]);
  }

  async #run(): Promise<void> {
    try {
      while (this.#isWanted && this.#isOpen) {
        this.#isWanted = false;
        if (!(await this.#deps.mayBegin(this.#busy.size > 0))) return;
        await this.#prepareBatches();
        const began = this.#deps.clock.monotonic();
        await this.#serve();
        await this.#rest(this.#deps.clock.monotonic() - began);
      }
    } catch (error) {
      // The next tick tries again.
      this.#deps.onError(`making the next ${this.#name} failed`, error);
    } finally {
      this.#pass = null;
    }
  }

  /** A pass takes longer the more receivers wait, and each ended attempt triggers one. */
  async #rest(tookMs: number): Promise<void> {
    const restMs = Math.min(tookMs * REST_FACTOR, MAX_PASS_REST_MS);
    if (restMs >= 1) await sleep(restMs, undefined, { signal: this.#end.signal }).catch(() => {});
  }

  async #prepareBatches(): Promise<void> {
    for (let batches = 0; this.#isOpen; batches++) {
      if (batches === MAX_BATCHES) {
        this.#isWanted = true;
        return;
      }
      if (!(await this.prepare())) return;
    }
  }

  /** Starts an attempt for each receiver whose turn it is. */
  async #serve(): Promise<void> {
    const { clock } = this.#deps;
    const rows = await this.nextOfEach();
    const due = rows.filter(({ receiver, next_at }) => isDue(next_at, clock.now()) && this.#isFree(receiver));
    if (due.length === 0) return;
    for (const [receiver, until] of this.#paused) {
      if (until <= clock.monotonic()) this.#paused.delete(receiver);
    }
    for (const row of this.#order.next(rows, due)) {
      const { receiver } = row;
      const end = this.#order.begin(row);
      const done = this.#serveOne(receiver).finally(() => {
        end();
        this.#busy.delete(receiver);
        this.wake();
      });
      this.#busy.set(receiver, done);
    }
  }

  #isFree(receiver: number): boolean {
    const until = this.#paused.get(receiver) ?? 0;
    return until <= this.#deps.clock.monotonic() && !this.#busy.has(receiver);
  }

  /** Never rejects. */
  async #serveOne(receiver: number): Promise<void> {
    const { clock, onError } = this.#deps;
    try {
      const pauseMs = await this.attempt(receiver, this.#end.signal);
      if (pauseMs > 0) this.#paused.set(receiver, clock.monotonic() + pauseMs);
    } catch (error) {
      if (this.#end.signal.aborted) return;
      this.#paused.set(receiver, clock.monotonic() + PAUSE_MS);
      onError(`storing the result of a ${this.#name} failed; it will be repeated`, error);
    }
  }
}

/** A time beyond the maximum delay means that the wall clock was set back. */
export function isDue(nextAt: number, now: number): boolean {
  return nextAt <= now || nextAt > now + MAX_DELAY_MS;
}
