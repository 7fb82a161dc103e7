/** Named work of a test, so that the test reports which work never ends. */
import { setTimeout as sleep } from 'node:timers/promises';
import { patienceMs } from '../../server/platform/host/host-facts.ts';

/** Longer than any single piece of work that gives up by itself. */
const STUCK_MS = 240_000;
const LOOK_MS = 500;

export class OpenWork {
  readonly #stuckMs: number;
  readonly #open = new Map<number, { readonly what: string; readonly since: number }>();
  #number = 0;
  #lastEndedAt = performance.now();

  constructor(stuckMs = STUCK_MS) {
    this.#stuckMs = stuckMs;
  }

  /** `work` itself; open under this name until it settles. */
  async named<T>(what: string, work: () => Promise<T>): Promise<T> {
    const id = ++this.#number;
    this.#open.set(id, { what, since: performance.now() });
    try {
      return await work();
    } finally {
      this.#open.delete(id);
      this.#lastEndedAt = performance.now();
    }
  }

  /** One line for each open piece of work, oldest first. */
  list(): string[] {
    const now = performance.now();
    return [...this.#open.values()].map(({ what, since }) => `${what}: for ${Math.round(now - since)} ms`);
  }

  /** Prints the list whenever this process gets SIGUSR2, until the returned function is called. */
  listOnSignal(): () => void {
    const print = () => console.error([`open (${this.#open.size}):`, ...this.list()].join('\n  '));
    process.on('SIGUSR2', print);
    return () => process.off('SIGUSR2', print);
  }

  /**
   * Resolves once all of `work` has succeeded. Rejects with the list when no work has ended for so long that
   * something must be stuck.
   */
  async all(work: readonly Promise<unknown>[]): Promise<void> {
    const done = Promise.all(work).then(() => 'done');
    this.#lastEndedAt = performance.now();
    for (;;) {
      const over = new AbortController();
      const look = sleep(LOOK_MS, 'look', { signal: over.signal }).catch(() => 'over');
      try {
        if ((await Promise.race([done, look])) === 'done') return;
      } finally {
        over.abort();
      }
      if (performance.now() - this.#lastEndedAt > patienceMs(this.#stuckMs))
        throw new Error(['nothing ends any more; open:', ...this.list()].join('\n  '));
    }
  }
}
