/**
 * Serializes work on a resource, a machine or a database. A second request for the action in progress joins
 * it, another action is refused meanwhile, and long work can be cancelled.
 */
import type { Awaitable } from '../metadata/metadata.ts';
import { KeyedMutex } from '../platform/concurrency.ts';
import { AppError } from '../platform/errors.ts';

/** A request for an action. */
export interface Wanted<Action, Row> {
  readonly id: string;
  readonly action: Action;
  /** Reads the resource. Throws when the caller has no such resource. */
  readonly find: () => Awaitable<Row>;
}

interface Running<Action> {
  readonly action: Action;
  readonly done: Promise<unknown>;
  readonly abort: AbortController;
}

export class Turns<Action extends string = never, Row = never> {
  readonly #locked: (running: Action, asked: Action) => AppError;
  readonly #locks = new KeyedMutex();
  /** Resources in use or waited for, with their number of users. */
  readonly #busy = new Map<string, number>();
  readonly #actions = new Map<string, Running<Action>>();
  /** Long work, by the resources that it needs. */
  readonly #long = new Map<string, Set<AbortController>>();
  readonly #running = new Set<Promise<unknown>>();
  #isClosing = false;

  /** `locked`: creates the error for an action while another one is in progress. */
  constructor(locked: (running: Action, asked: Action) => AppError = shuttingDown) {
    this.#locked = locked;
  }

  get isClosing(): boolean {
    return this.#isClosing;
  }

  isBusy(id: string): boolean {
    return this.#busy.has(id);
  }

  /** Runs `work` with exclusive access to the resource, after the work in progress. */
  async alone<T>(id: string, work: () => Promise<T>): Promise<T> {
    this.#busy.set(id, (this.#busy.get(id) ?? 0) + 1);
    const run = this.#locks.run(id, work);
    this.#running.add(run);
    try {
      return await run;
    } finally {
      this.#running.delete(run);
      const left = (this.#busy.get(id) ?? 1) - 1;
      if (left > 0) this.#busy.set(id, left);
      else this.#busy.delete(id);
    }
  }

  /**
   * Runs `work` on the resource that `find` reads, or joins the same action in progress and returns its
   * result. Throws the error of `find`, so that only callers who may see the resource learn about it, and the
   * error of `locked` while another action is in progress. The signal is aborted by abort().
   */
  async act(
    { id, action, find }: Wanted<Action, Row>,
    work: (row: Row, signal: AbortSignal) => Promise<Row>,
  ): Promise<Row> {
    for (;;) {
      const row = await find();
      const current = this.#actions.get(id);
      // Every action resolves with the resulting row, whoever began it.
      if (current?.action === action) return (await current.done) as Row;
      if (current !== undefined) throw this.#locked(current.action, action);
      if (!this.isBusy(id)) return this.#begin(id, action, (signal) => work(row, signal));
      await this.alone(id, async () => {});
    }
  }

  /** Aborts this action's signal, if it is in progress on the resource. */
  abort(id: string, action: Action): void {
    const current = this.#actions.get(id);
    if (current?.action === action) current.abort.abort();
  }

  /**
   * Runs long work on these resources. Its signal aborts with `caller` (the client disconnected), when one of
   * them is interrupted, and when Cloudlet stops; the work then rejects with the abort reason, whatever it
   * throws.
   */
  async during<T>(
    ids: readonly string[],
    work: (signal: AbortSignal) => Promise<T>,
    caller?: AbortSignal,
  ): Promise<T> {
    if (this.#isClosing) throw shuttingDown();
    const controller = new AbortController();
    const signal = caller === undefined ? controller.signal : AbortSignal.any([controller.signal, caller]);
    for (const id of ids) this.#long.set(id, (this.#long.get(id) ?? new Set()).add(controller));
    try {
      return await work(signal);
    } catch (error) {
      throw controller.signal.aborted ? controller.signal.reason : error;
    } finally {
      for (const id of ids) this.#forget(id, controller);
    }
  }

  /** Cancels the long work on this resource. Does not wait for it. */
  interrupt(id: string, reason: AppError): void {
    for (const controller of this.#long.get(id) ?? []) controller.abort(reason);
  }

  /** Cancels all long work and accepts no more; resolves when no resource is in use. */
  async close(): Promise<void> {
    this.#isClosing = true;
    for (const controllers of this.#long.values()) {
      for (const controller of controllers) controller.abort(shuttingDown());
    }
    await this.idle();
  }

  /** Resolves when no resource is in use. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }

  #begin(id: string, action: Action, work: (signal: AbortSignal) => Promise<Row>): Promise<Row> {
    const abort = new AbortController();
    const done = this.alone(id, async () => {
      try {
        return await work(abort.signal);
      } finally {
        this.#actions.delete(id);
      }
    });
    this.#actions.set(id, { action, done, abort });
    return done;
  }

  #forget(id: string, controller: AbortController): void {
    const controllers = this.#long.get(id);
    controllers?.delete(controller);
    if (controllers?.size === 0) this.#long.delete(id);
  }
}

function shuttingDown(): AppError {
  return new AppError('shutting_down', 'Cloudlet is being stopped');
}
