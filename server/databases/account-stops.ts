/** Closes the databases of an account that may not use any, and opens or deletes them afterwards. */
import type { DatabaseBilling } from './database-billing.ts';
import type { Lifecycle } from './lifecycle.ts';
import { isOpen, openStateOf } from './states.ts';
import type { DatabaseRow, DatabaseStore } from './store.ts';
import type { DatabaseTurns } from './turns.ts';

/** An account that is blocked has nobody who could use them. */
export type StopCause = 'credits_exhausted' | 'account_suspended' | 'account_closed';

export interface AccountStopsDeps {
  readonly store: DatabaseStore;
  readonly lifecycle: Pick<Lifecycle, 'commit' | 'setDesired'>;
  readonly billing: Pick<DatabaseBilling, 'deleted'>;
  readonly turns: Pick<DatabaseTurns, 'alone' | 'interrupt'>;
  /** Has the rest of a deletion done, without waiting for it. */
  readonly reconcileSoon: (databaseId: string) => void;
  readonly onError: (databaseId: string, what: string, error: unknown) => void;
}

const SUSPENDED: Readonly<Record<StopCause, string>> = {
  credits_exhausted: 'The database is suspended because no credits are left',
  account_suspended: 'The database is suspended because its account is',
  account_closed: 'The database is suspended because its account was closed',
};
const TOGETHER = 16;

export class AccountStops {
  readonly #deps: AccountStopsDeps;

  constructor(deps: AccountStopsDeps) {
    this.#deps = deps;
  }

  /**
   * Ends all sessions and lets nobody in. Those of a closed account are deleted, without a last dump: nobody
   * could have them back. May be repeated; what failed is reported.
   */
  async stop(accountId: number, cause: StopCause): Promise<void> {
    if (cause === 'account_closed') {
      await this.#removeAll(accountId);
      return;
    }
    const reason = { reason_code: cause, reason_message: SUSPENDED[cause] };
    await this.#each(accountId, async (row) => {
      if (!isOpen(row)) return;
      await this.#deps.lifecycle.setDesired(row, { state: 'suspended', ...reason });
    });
  }

  /** Opens what stop() closed; `waiting`: how many are still closed. */
  async resume(accountId: number): Promise<{ readonly waiting: number }> {
    let waiting = 0;
    await this.#each(accountId, async (row) => {
      if (row.state !== 'suspended') return;
      waiting++;
      // After a restore it is loaded first.
      if (row.kept_dump_bytes !== null) return;
      await this.#deps.lifecycle.setDesired(row, openStateOf(row));
      waiting--;
    });
    return { waiting };
  }

  async #removeAll(accountId: number): Promise<void> {
    const { lifecycle, billing, reconcileSoon } = this.#deps;
    await this.#each(accountId, async (row) => {
      if (row.state === 'deleting' && row.deletes_at === null) return;
      const wanted = {
        state: 'deleting',
        deletes_at: null,
        keep_left_ms: null,
        kept_dump_bytes: null,
      } as const;
      const isLive = row.state !== 'deleting';
      await lifecycle.commit(row, wanted, {
        also: (change) => change.addAll(isLive ? billing.deleted(row) : []),
      });
      reconcileSoon(row.database_id);
    });
  }

  /** Works on all databases of the account, the deleted ones too, each as it is when its turn comes. */
  async #each(accountId: number, work: (row: DatabaseRow) => Promise<void>): Promise<void> {
    const { store, turns, onError } = this.#deps;
    const one = async ({ database_id: id }: DatabaseRow) => {
      // A load or a copy that takes long must not hold up the end of the account.
      turns.interrupt(id);
      try {
        await turns.alone(id, async () => {
          const row = await store.find(id);
          if (row !== undefined) await work(row);
        });
      } catch (error) {
        onError(id, 'it could not be changed with its account', error);
      }
    };
    for (const isKept of [false, true]) {
      for (let after = 0; ; ) {
        const rows = await store.listOf(accountId, isKept, { after, limit: TOGETHER });
        await Promise.all(rows.map(one));
        after = rows.at(-1)?.id ?? after;
        if (rows.length < TOGETHER) break;
      }
    }
  }
}
