/** Stops what an account that is blocked may not use, and resumes or deletes it afterwards. */
import type { Awaitable } from '../metadata/metadata.ts';

/** An account that is blocked has nobody who could use what it has. */
export type StopCause = 'credits_exhausted' | 'account_suspended' | 'account_closed';

interface Identified {
  /** Of the row, which only grows. */
  readonly id: number;
}

/** What stopping means for one kind of resource. `row` is as it was read a moment before. */
export interface Stoppable<Row extends Identified> {
  readonly idOf: (row: Row) => string;
  readonly find: (id: string) => Awaitable<Row | undefined>;
  /** Those of the account after row `after`, in the order of their row ids. */
  readonly page: (accountId: number, after: number, limit: number) => Awaitable<Row[]>;
  /** How many are worked on at the same time. */
  readonly atOnce: number;
  /** Does nothing with one that is not in use. */
  readonly stop: (row: Row, cause: StopCause) => Promise<unknown>;
  /** Whether stop() stopped it, and nobody has touched it since. */
  readonly isStopped: (row: Row) => boolean;
  readonly resume: (row: Row) => Promise<unknown>;
  /** Deletes it: its account is closed. */
  readonly remove: (row: Row) => Promise<unknown>;
  readonly onError: (id: string, what: string, error: unknown) => void;
}

export class AccountStops<Row extends Identified> {
  readonly #kind: Stoppable<Row>;

  constructor(kind: Stoppable<Row>) {
    this.#kind = kind;
  }

  /**
   * Resolves when all that could be stopped are, and deleted when the account was closed: nobody could use
   * them any more. May be repeated; what failed is reported.
   */
  async stop(accountId: number, cause: StopCause): Promise<void> {
    const { stop, remove } = this.#kind;
    await this.#each(accountId, `it could not be stopped (${cause})`, (row) => stop(row, cause));
    if (cause !== 'account_closed') return;
    await this.#each(accountId, 'it could not be deleted with its account', remove);
  }

  /** Resumes what is stopped, unless the account was closed; `waiting`: how many still are. */
  async resume(accountId: number): Promise<{ readonly waiting: number }> {
    const { idOf, find, isStopped, resume } = this.#kind;
    let waiting = 0;
    await this.#each(accountId, 'it could not be resumed', async (row) => {
      if (!isStopped(row)) return;
      try {
        await resume(row);
      } finally {
        const after = await find(idOf(row));
        if (after !== undefined && isStopped(after)) waiting++;
      }
    });
    return { waiting };
  }

  async #each(accountId: number, failure: string, work: (row: Row) => Promise<unknown>): Promise<void> {
    const { page, atOnce, idOf, onError } = this.#kind;
    for (let after = 0; ; ) {
      const rows = await page(accountId, after, atOnce);
      const outcomes = await Promise.allSettled(rows.map(work));
      for (const [i, outcome] of outcomes.entries()) {
        const row = rows[i];
        if (outcome.status === 'rejected' && row) onError(idOf(row), failure, outcome.reason);
      }
      after = rows.at(-1)?.id ?? after;
      if (rows.length < atOnce) return;
    }
  }
}
