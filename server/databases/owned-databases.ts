/** Databases as their owners may ask for them: another account's is as if it were not there. */
import type { Principal } from '../calls/principal.ts';
import { type Clock, formatTime } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import { isId } from '../platform/ids.ts';
import type { DatabaseRow, DatabaseStore } from './store.ts';

export interface OwnedDatabasesDeps {
  readonly store: DatabaseStore;
  readonly clock: Clock;
}

export class OwnedDatabases {
  readonly #deps: OwnedDatabasesDeps;

  constructor(deps: OwnedDatabasesDeps) {
    this.#deps = deps;
  }

  /** One that was not deleted. Throws `database_not_found`. */
  async findLive(principal: Principal, databaseId: string): Promise<DatabaseRow> {
    const row = await this.#find(principal, databaseId);
    if (row !== undefined && row.state !== 'deleting') return row;
    throw notFound(row !== undefined && this.#isKept(row) ? keptHint(row) : undefined);
  }

  /** One that was deleted and can be had back. Throws `database_not_found`. */
  async findKept(principal: Principal, databaseId: string): Promise<DatabaseRow> {
    const row = await this.#find(principal, databaseId);
    if (row !== undefined && this.#isKept(row)) return row;
    const isLive = row !== undefined && row.state !== 'deleting';
    throw notFound(isLive ? 'This one was not deleted: there is nothing to bring back' : undefined);
  }

  async #find({ accountId }: Principal, databaseId: string): Promise<DatabaseRow | undefined> {
    const row = isId('db', databaseId) ? await this.#deps.store.find(databaseId) : undefined;
    return row?.account_id === accountId ? row : undefined;
  }

  #isKept({ state, deletes_at }: DatabaseRow): boolean {
    return state === 'deleting' && deletes_at !== null && deletes_at > this.#deps.clock.now();
  }
}

function keptHint({ database_id, deletes_at }: DatabaseRow): string {
  return `The database was deleted: POST /api/databases/${database_id}/undelete brings it back until ${formatTime(deletes_at ?? 0)}`;
}

function notFound(hint?: string): AppError {
  return new AppError('database_not_found', 'You have no such database', hint === undefined ? {} : { hint });
}
