/** Stops the resources of a blocked account, and resumes or deletes them afterwards. */
import type { Awaitable } from '../metadata/metadata.ts';
import type { Reason } from './row-change.ts';

/** A blocked account has no user who could use its resources. */
export type AccountBlock = 'account_suspended' | 'account_closed';
/**
 * Why an account's resources are stopped: `credits_exhausted` is the credit state `suspended`,
 * `spend_cap_reached` the account's cap of the month, `account_suspended` an administrator's decision.
 */
export type StopCause = 'credits_exhausted' | 'spend_cap_reached' | AccountBlock;

const BECAUSE: Readonly<Record<StopCause, string>> = {
  credits_exhausted: 'the account ran out of credits',
  spend_cap_reached: 'the account reached its spend cap of the month',
  account_suspended: 'its account was suspended',
  account_closed: 'its account was closed',
};

/** The reason that is shown; `what`: "The database is suspended". */
export function stopReason(what: string, cause: StopCause): Reason {
  return { code: cause, message: `${what} because ${BECAUSE[cause]}` };
}

interface Identified {
  /** Row id, ascending. */
  readonly id: number;
}

/** Operations on one kind of resource. `row` was read just before. */
export interface Stoppable<Row extends Identified> {
  readonly idOf: (row: Row) => string;
  readonly find: (id: string) => Awaitable<Row | undefined>;
  /** The account's resources after row id `after`, by row id. */
  readonly page: (accountId: number, after: number, limit: number) => Awaitable<Row[]>;
  /** Resources handled concurrently. */
  readonly atOnce: number;
  /** Does nothing for a resource that is not in use. */
  readonly stop: (row: Row, cause: StopCause) => Promise<unknown>;
  /** Whether stop() stopped it and nothing has changed it since. */
  readonly isStopped: (row: Row) => boolean;
  readonly resume: (row: Row) => Promise<unknown>;
  /** Deletes it, because its account is closed. */
  readonly remove: (row: Row) => Promise<unknown>;
  readonly onError: (id: string, what: string, error: unknown) => void;
}

export class AccountStops<Row extends Identified> {
  readonly #kind: Stoppable<Row>;

  constructor(kind: Stoppable<Row>) {
    this.#kind = kind;
  }

  /**
   * Resolves when all resources were stopped where possible, and deleted if the account was closed.
   * Idempotent; failures are reported.
   */
  async stop(accountId: number, cause: StopCause): Promise<void> {
    const { stop, remove } = this.#kind;
    await this.#each(accountId, `stopping a resource failed (${cause})`, (row) => stop(row, cause));
    if (cause !== 'account_closed') return;
    await this.#each(accountId, 'deleting a resource with its account failed', remove);
  }

  /** Resumes stopped resources unless the account was closed; `waiting`: how many are still stopped. */
  async resume(accountId: number): Promise<{ readonly waiting: number }> {
    const { idOf, find, isStopped, resume } = this.#kind;
    let waiting = 0;
    await this.#each(accountId, 'resuming a resource failed', async (row) => {
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
    const attempt = (row: Row) => work(row).catch((error: unknown) => onError(idOf(row), failure, error));
    for (let after = 0; ; ) {
      const rows = await page(accountId, after, atOnce);
      await Promise.all(rows.map(attempt));
      after = rows.at(-1)?.id ?? after;
      if (rows.length < atOnce) return;
    }
  }
}
