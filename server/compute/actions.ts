/** One action at a time on each machine. */
import { AppError } from '../errors.ts';
import type { VmRow } from './store.ts';
import { allowedActions, type VmAction } from './transitions.ts';

interface Running {
  /** `settle`: short work of our own, which others wait for. */
  readonly action: VmAction | 'settle';
  readonly done: Promise<unknown>;
  readonly hurry: AbortController;
}

export class Actions {
  readonly #running = new Map<string, Running>();

  /**
   * Runs `work`, or waits for the same action when it is under way and gives its answer.
   * Throws `vm_locked` while another one is. The signal is aborted by hurry().
   */
  async run(vmId: string, action: VmAction, work: (hurry: AbortSignal) => Promise<VmRow>): Promise<VmRow> {
    for (let current = this.#running.get(vmId); current; current = this.#running.get(vmId)) {
      // Every action gives the row that it led to, whoever began it.
      if (current.action === action) return (await current.done) as VmRow;
      if (current.action !== 'settle') throw locked(current.action, action);
      await current.done.catch(() => {});
    }
    return this.#begin(vmId, action, work);
  }

  /** Waits for what runs, then runs `work`. */
  async settle<T>(vmId: string, work: () => Promise<T>): Promise<T> {
    for (let current = this.#running.get(vmId); current; current = this.#running.get(vmId)) {
      await current.done.catch(() => {});
    }
    return this.#begin(vmId, 'settle', work);
  }

  /** Tells this action, if it runs on the machine, that it is to end as soon as it can. */
  hurry(vmId: string, action: VmAction): void {
    const current = this.#running.get(vmId);
    if (current?.action === action) current.hurry.abort();
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

  #begin<T>(vmId: string, action: Running['action'], work: (hurry: AbortSignal) => Promise<T>): Promise<T> {
    const hurry = new AbortController();
    const done = work(hurry.signal).finally(() => this.#running.delete(vmId));
    this.#running.set(vmId, { action, done, hurry });
    return done;
  }
}

const STATES_UNDER = { start: 'starting', stop: 'stopping', delete: 'deleting' } as const;

function locked(running: VmAction, asked: VmAction): AppError {
  const state = STATES_UNDER[running];
  return new AppError('vm_locked', `Another action (${running}) runs on this machine`, {
    hint: 'Try again when it is done',
    retryAfterSeconds: 1,
    extra: { state, action: asked, allowed: allowedActions(state).filter((action) => action === running) },
  });
}
