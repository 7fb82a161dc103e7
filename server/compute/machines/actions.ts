/** One action at a time on each machine. */
import type { Awaitable } from '../../metadata/metadata.ts';
import { AppError } from '../../platform/errors.ts';
import { allowedActions, type VmAction } from './transitions.ts';
import type { VmRow } from './vm-store.ts';

/** An action, of whoever asks for it. */
export interface Wanted {
  readonly vmId: string;
  readonly action: VmAction;
  /** Reads the machine. Throws when there is none for whoever asks. */
  readonly find: () => Awaitable<VmRow>;
}

interface Running {
  /** `exclusive`: short work of our own, which others wait for. */
  readonly action: VmAction | 'exclusive';
  readonly done: Promise<unknown>;
  readonly abort: AbortController;
}

export class Actions {
  readonly #running = new Map<string, Running>();

  /**
   * Runs `work` on the machine that `find` reads, or waits for the same action when it is under way and gives
   * its response. Throws what `find` throws, so that only who may see the machine learns anything of it, and
   * `vm_locked` while another action is under way. The signal is aborted by abort().
   */
  async run(
    { vmId, action, find }: Wanted,
    work: (row: VmRow, signal: AbortSignal) => Promise<VmRow>,
  ): Promise<VmRow> {
    for (;;) {
      const row = await find();
      const current = this.#running.get(vmId);
      if (current === undefined) return this.#begin(vmId, action, (signal) => work(row, signal));
      // Every action gives the row that it led to, whoever began it.
      if (current.action === action) return (await current.done) as VmRow;
      if (current.action !== 'exclusive') throw locked(current.action, action);
      await current.done.catch(() => {});
    }
  }

  /** Waits for what runs, then runs `work`. */
  async runExclusive<T>(vmId: string, work: () => Promise<T>): Promise<T> {
    for (let current = this.#running.get(vmId); current; current = this.#running.get(vmId)) {
      await current.done.catch(() => {});
    }
    return this.#begin(vmId, 'exclusive', work);
  }

  /** Tells this action, if it runs on the machine, that it is to end as soon as it can. */
  abort(vmId: string, action: VmAction): void {
    const current = this.#running.get(vmId);
    if (current?.action === action) current.abort.abort();
  }

  isRunning(vmId: string): boolean {
    return this.#running.has(vmId);
  }

  /** Resolves when nothing runs any more. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) {
      await Promise.allSettled([...this.#running.values()].map(({ done }) => done));
    }
  }

  #begin<T>(vmId: string, action: Running['action'], work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const abort = new AbortController();
    const done = work(abort.signal).finally(() => this.#running.delete(vmId));
    this.#running.set(vmId, { action, done, abort });
    return done;
  }
}

const STATES_UNDER = { start: 'starting', stop: 'stopping', delete: 'deleting' } as const;

function locked(running: VmAction, asked: VmAction): AppError {
  const state = STATES_UNDER[running];
  return new AppError('vm_locked', `Another action (${running}) is running on this machine`, {
    hint: 'Try again when it is done',
    retryAfterSeconds: 1,
    extra: { state, action: asked, allowed: allowedActions(state).filter((action) => action === running) },
  });
}
