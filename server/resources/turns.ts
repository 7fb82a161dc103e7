/**
 * Who may work on a resource, a machine or a database: one at a time. An action that is asked for twice is
 * joined, another one is refused meanwhile, and long work can be ended from outside.
 */
import type { Awaitable } from '../metadata/metadata.ts';
import { AppError } from '../platform/errors.ts';
import { KeyedMutex } from '../platform/keyed-mutex.ts';

/** An action, whoever asks for it. */
export interface Wanted<Action, Row> {
  readonly id: string;
  readonly action: Action;
  /** Reads the resource. Throws when there is none for whoever asks. */
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
  /** Being worked on, or waited for, each with how often. */
  readonly #busy = new Map<string, number>();
  readonly #actions = new Map<string, Running<Action>>();
  /** Long work, by the resources that it needs. */
  readonly #long = new Map<string, Set<AbortController>>();
  readonly #running = new Set<Promise<unknown>>();
  #isClosing = false;

  /** `locked`: the error for an action while another one runs. */
  constructor(locked: (running: Action, asked: Action) => AppError = shuttingDown) {
    this.#locked = locked;
  }

  get isClosing(): boolean {
    return this.#isClosing;
  }

  isBusy(id: string): boolean {
    return this.#busy.has(id);
  }

  /** Waits for what runs, then runs `work` while nobody else works on the resource. */
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
   * Runs `work` on the resource that `find` reads, or waits for the same action when it is under way and
   * gives its result. Throws what `find` throws, so that only who may see the resource learns anything of
   * it, and what `locked` gives while another action is under way. The signal is aborted by abort().
   */
  async act(
    { id, action, find }: Wanted<Action, Row>,
    work: (row: Row, signal: AbortSignal) => Promise<Row>,
  ): Promise<Row> {
    for (;;) {
      const row = await find();
      const current = this.#actions.get(id);
      // Every action gives the row that it led to, whoever began it.
      if (current?.action === action) return (await current.done) as Row;
      if (current !== undefined) throw this.#locked(current.action, action);
      if (!this.isBusy(id)) return this.#begin(id, action, (signal) => work(row, signal));
      await this.alone(id, async () => {});
    }
  }

  /** Tells this action, if it runs on the resource, that it is to end as soon as it can. */
  abort(id: string, action: Action): void {
    const current = this.#actions.get(id);
    if (current?.action === action) current.abort.abort();
  }

  /**
   * Runs long work that needs these resources. Its signal aborts with `caller` (who left), when one of them
   * is interrupted, and when Cloudlet stops; the work then rejects with the reason, whatever it throws.
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

  /** Ends the long work that needs this resource. Does not wait for it. */
  interrupt(id: string, reason: AppError): void {
    for (const controller of this.#long.get(id) ?? []) controller.abort(reason);
  }

  /** Ends all long work and begins no more; resolves when nobody works on a resource. */
  async close(): Promise<void> {
    this.#isClosing = true;
    for (const controllers of this.#long.values()) {
      for (const controller of controllers) controller.abort(shuttingDown());
    }
    await this.idle();
  }

  /** Resolves when nobody works on a resource. */
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
