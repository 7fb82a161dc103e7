/** Queries that an account keeps with a database, by name. They end with the database. */
import type { Call, Principal } from '../../calls/principal.ts';
import { type Changes, turnAt } from '../../metadata/change.ts';
import { type Clock, formatTime } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { OwnedDatabases } from '../life/owned-databases.ts';
import type { NewSavedQuery, SavedQuery } from './saved-schema.ts';
import type { SavedRow, SavedSql } from './saved-sql.ts';

/** Maximum saved queries of a database; each has at most 100,000 characters. */
const MAX_SAVED = 200;
/** Total for all databases of an account: the texts are in the metadata, which all accounts share. */
const MAX_BYTES = 8 * 2 ** 20;

export interface SavedQueriesDeps {
  readonly saved: SavedSql;
  readonly owned: OwnedDatabases;
  readonly changes: Changes;
  readonly clock: Clock;
}

export class SavedQueries {
  readonly #deps: SavedQueriesDeps;

  constructor(deps: SavedQueriesDeps) {
    this.#deps = deps;
  }

  /** By name. Throws `database_not_found`. */
  async list(principal: Principal, databaseId: string): Promise<SavedQuery[]> {
    const { owned, saved } = this.#deps;
    const { id } = await owned.findLive(principal, databaseId);
    return (await saved.list(id)).map(presentSaved);
  }

  /** Creates it, or replaces the text of the one with this name. Throws `quota_exceeded`. */
  save(call: Call, databaseId: string, { name, text }: NewSavedQuery): Promise<SavedQuery> {
    const { owned, saved, changes, clock } = this.#deps;
    return changes.run(call, async (change) => {
      const { id: database_id, account_id } = await owned.findLive(call.principal, databaseId);
      const now = clock.now();
      const found = await saved.named(database_id, name);
      change.add(turnAt('accounts', account_id));
      const grown = Buffer.byteLength(text) - Buffer.byteLength(found?.text ?? '');
      if (grown > 0) change.add(saved.expectRoom(account_id, grown, MAX_BYTES), tooLarge);
      if (found !== undefined) {
        const row = { ...found, text, updated_at: now };
        change.add(saved.replace(row), () => unknown(found.saved_query_id));
        return presentSaved(row);
      }
      const row = { saved_query_id: newId('qry', clock), database_id, name, text, updated_at: now };
      // Another request may have saved a query of that name, or deleted the database.
      change.add(saved.insert(row, MAX_SAVED), (reason) => (reason === 'expectation' ? tooMany() : 'retry'));
      return presentSaved(row);
    });
  }

  /** Throws `not_found`. */
  remove(call: Call, databaseId: string, savedQueryId: string): Promise<SavedQuery> {
    const { owned, saved, changes } = this.#deps;
    return changes.run(call, async (change) => {
      const { id } = await owned.findLive(call.principal, databaseId);
      const row = await saved.find(savedQueryId);
      if (row?.database_id !== id) throw unknown(savedQueryId);
      change.add(saved.delete(row.id), () => unknown(savedQueryId));
      return presentSaved(row);
    });
  }
}

export function presentSaved({ saved_query_id, name, text, updated_at }: Omit<SavedRow, 'id'>): SavedQuery {
  return { saved_query_id, name, text, updated_at: formatTime(updated_at) };
}

function unknown(savedQueryId: string): AppError {
  return new AppError('not_found', `This database has no saved query ${savedQueryId}`);
}

function tooMany(): AppError {
  return new AppError('quota_exceeded', `A database has at most ${MAX_SAVED} saved queries`, {
    hint: 'Delete saved queries that you no longer need',
  });
}

function tooLarge(): AppError {
  return new AppError('quota_exceeded', 'Your saved queries together may have at most 8 MiB', {
    hint: 'Delete saved queries that you no longer need',
  });
}
