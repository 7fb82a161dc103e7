/** Suspends the databases of a blocked account, and resumes or deletes them afterwards. */

import { AppError } from '../../platform/errors.ts';
import { AccountStops, type StopCause, stopReason } from '../../resources/account-stops.ts';
import type { DatabaseRow, DatabaseStore } from '../store.ts';
import type { DatabaseBilling } from './egress.ts';
import type { Lifecycle } from './lifecycle.ts';
import { type DatabaseTurns, deletedMeanwhile, isOpen, openStateOf } from './states.ts';

export interface DatabaseStopsDeps {
  readonly store: DatabaseStore;
  readonly lifecycle: Pick<Lifecycle, 'commit' | 'setDesired'>;
  readonly billing: Pick<DatabaseBilling, 'deleted'>;
  readonly turns: Pick<DatabaseTurns, 'withRow' | 'interrupt'>;
  /** Schedules the rest of a deletion without waiting. */
  readonly reconcileSoon: (databaseId: string) => void;
  readonly onError: (databaseId: string, what: string, error: unknown) => void;
}

const AT_ONCE = 16;

export function databaseStops(deps: DatabaseStopsDeps): AccountStops<DatabaseRow> {
  const { store, lifecycle, turns, onError } = deps;
  const inTurn = async (
    { database_id: id }: DatabaseRow,
    { why, work }: { readonly why: AppError; readonly work: (row: DatabaseRow) => Promise<unknown> },
  ) => {
    // A long load or copy must not delay closing the account.
    turns.interrupt(id, why);
    await turns.withRow(id, work);
  };
  const suspend = async (row: DatabaseRow, cause: StopCause) => {
    if (!isOpen(row)) return;
    const { code, message } = stopReason('The database is suspended', cause);
    await lifecycle.setDesired(row, { state: 'suspended', reason_code: code, reason_message: message });
  };
  const open = async (row: DatabaseRow) => {
    // After a restore the database is loaded first.
    if (row.state !== 'suspended' || row.kept_dump_bytes !== null) return;
    await lifecycle.setDesired(row, openStateOf(row));
  };
  return new AccountStops({
    idOf: ({ database_id }) => database_id,
    find: (id) => store.find(id),
    page: (accountId, after, limit) => store.listAllOf(accountId, { after, limit }),
    atOnce: AT_ONCE,
    stop: async (row, cause) => {
      // Databases of a closed account are deleted instead.
      if (cause === 'account_closed') return;
      const { message } = stopReason('The call was cancelled because the database is suspended', cause);
      const why = new AppError('database_not_ready', message);
      await inTurn(row, { why, work: (now) => suspend(now, cause) });
    },
    isStopped: ({ state }) => state === 'suspended',
    resume: (row) => inTurn(row, { why: deletedMeanwhile(), work: open }),
    remove: (row) => inTurn(row, { why: deletedMeanwhile(), work: (now) => remove(deps, now) }),
    onError,
  });
}

/** Keeps no last dump, because the account's owner could not restore it. */
async function remove({ lifecycle, billing, reconcileSoon }: DatabaseStopsDeps, row: DatabaseRow) {
  if (row.state === 'deleting' && row.deletes_at === null) return;
  const wanted = { state: 'deleting', deletes_at: null, keep_left_ms: null, kept_dump_bytes: null } as const;
  const isLive = row.state !== 'deleting';
  await lifecycle.commit(row, wanted, {
    also: (change) => change.addAll(isLive ? billing.deleted(row) : []),
  });
  reconcileSoon(row.database_id);
}
