/**
 * Serializes work on a resource, a machine or a database. A second request for the action in
 * progress joins it, another action is refused in the meantime, and long work can be cancelled.
 */
import type { Awaitable } from '../metadata/metadata.ts';
import { KeyedMutex } from '../platform/concurrency.ts';
import { AppError } from '../platform/errors.ts';

/** A request for an action. */
export interface Wanted<Row, Action> {
  readonly id: string;
  readonly action: Action;
  /** Reads the resource. Throws if the caller has no such resource. */
  readonly find: () => Awaitable<Row>;
}

interface Running<Action> {
  readonly action: Action;
  readonly done: Promise<unknown>;
  readonly abort: AbortController;
}

export interface TurnsDeps<Row, Action> {
  /** Reads the row of a resource. */
  readonly find: (id: string) => Awaitable<Row | undefined>;
  /** Creates the error for an action while another one is in progress. */
  readonly locked?: (running: Action, asked: Action) => AppError;
}

export class Turns<Row, Action extends string = never> extends KeyedMutex {
  readonly #deps: TurnsDeps<Row, Action>;
  readonly #actions = new Map<string, Running<Action>>();
  /** Long work, by the resources that it needs. */
  readonly #long = new Map<string, Set<AbortController>>();
  #isClosing = false;

  constructor(deps: TurnsDeps<Row, Action>) {
    super();
    this.#deps = deps;
  }

  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** Runs `work` on the row after the work in progress. Does nothing if none is in progress. */
  async withRow(id: string, work: (row: Row) => Promise<unknown>): Promise<void> {
    await this.run(id, async () => {
      const row = await this.#deps.find(id);
      if (row !== undefined) await work(row);
    });
  }

  /**
   * Runs `work` on the resource that `find` reads, or joins the same action in progress and returns its
   * result. Throws the error of `find`, so that only callers who may see the resource learn about it, and the
   * error of `locked` while another action is in progress. The signal is aborted by abort().
   */
  async act(
    { id, action, find }: Wanted<Row, Action>,
    work: (row: Row, signal: AbortSignal) => Promise<Row>,
  ): Promise<Row> {
    for (;;) {
      const row = await find();
      const current = this.#actions.get(id);
      // Every action resolves with the resulting row, whoever started it.
      if (current?.action === action) return (await current.done) as Row;
      if (current !== undefined) throw (this.#deps.locked ?? shuttingDown)(current.action, action);
      if (!this.isBusy(id)) return this.#begin(id, action, (signal) => work(row, signal));
      await this.run(id, async () => {});
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

  #begin(id: string, action: Action, work: (signal: AbortSignal) => Promise<Row>): Promise<Row> {
    const abort = new AbortController();
    const done = this.run(id, async () => {
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
