/** Databases as their owners may access them: another account's database is not found. */

import { timingSafeEqual } from 'node:crypto';
import type { Principal } from '../../calls/principal.ts';
import type { Awaitable } from '../../metadata/metadata.ts';
import { formatTime } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { isId } from '../../platform/ids.ts';
import type { EngineDatabase } from '../engine.ts';
import type { Engines } from '../engines.ts';
import { hashPassword } from '../secrets.ts';
import type { DatabaseRow, DatabaseStore } from '../store.ts';
import type { Lifecycle } from './lifecycle.ts';
import { assertReadable } from './states.ts';

export class OwnedDatabases {
  readonly #store: DatabaseStore;

  constructor(store: DatabaseStore) {
    this.#store = store;
  }

  /** A database that is not deleted. Throws `database_not_found`. */
  async findLive(principal: Principal, databaseId: string): Promise<DatabaseRow> {
    const row = await this.#find(principal, databaseId);
    if (row !== undefined && row.state !== 'deleting') return row;
    throw notFound(row !== undefined && isKept(row) ? keptHint(row) : undefined);
  }

  /** A database that is not purged, deleted or not. Throws `database_not_found`. */
  async findAny(principal: Principal, databaseId: string): Promise<DatabaseRow> {
    const row = await this.#find(principal, databaseId);
    if (row !== undefined && (row.state !== 'deleting' || isKept(row))) return row;
    throw notFound();
  }

  /** A deleted database that can be undeleted. Throws `database_not_found`. */
  async findKept(principal: Principal, databaseId: string): Promise<DatabaseRow> {
    const row = await this.#find(principal, databaseId);
    if (row !== undefined && isKept(row)) return row;
    const isLive = row !== undefined && row.state !== 'deleting';
    throw notFound(isLive ? 'The database is not deleted' : undefined);
  }

  async #find({ accountId }: Principal, databaseId: string): Promise<DatabaseRow | undefined> {
    const row = isId('db', databaseId) ? await this.#store.find(databaseId) : undefined;
    return row?.account_id === accountId ? row : undefined;
  }
}

function isKept({ state, keep_left_ms }: DatabaseRow): boolean {
  return state === 'deleting' && (keep_left_ms ?? 0) > 0;
}

function keptHint({ database_id, deletes_at }: DatabaseRow): string {
  return `The database was deleted; POST /api/databases/${database_id}/undelete restores it until ${formatTime(deletes_at ?? 0)}`;
}

function notFound(hint?: string): AppError {
  return new AppError('database_not_found', 'You have no such database', hint === undefined ? {} : { hint });
}

/** Finds databases by password, for engines that drivers reach by HTTP: they have no logins of their own. */
export interface LoginsDeps {
  readonly store: Pick<DatabaseStore, 'find' | 'findByPassword'>;
  readonly lifecycle: Pick<Lifecycle, 'inEngine'>;
  readonly engines: Pick<Engines, 'about'>;
}

export class Logins {
  readonly #deps: LoginsDeps;

  constructor(deps: LoginsDeps) {
    this.#deps = deps;
  }

  /** If interrupted from here on, the engine is reconciled with the row. */
  async find(databaseId: string | null, password: string): Promise<EngineDatabase> {
    const { lifecycle, engines } = this.#deps;
    const hash = hashPassword(password);
    const row = await this.#row(databaseId, hash);
    const isRight =
      row !== undefined &&
      engines.about(row.engine).traits.transport === 'http' &&
      row.state !== 'deleting' &&
      timingSafeEqual(row.password_hash, hash);
    if (!isRight) {
      throw new AppError('invalid_database_password', 'Wrong password for this database', {
        hint: 'Read the password with GET /api/databases/{database_id}/credentials',
      });
    }
    assertReadable(row);
    return lifecycle.inEngine(row);
  }

  #row(databaseId: string | null, hash: Uint8Array): Awaitable<DatabaseRow | undefined> {
    const { store } = this.#deps;
    if (databaseId === null) return store.findByPassword(hash);
    return isId('db', databaseId) ? store.find(databaseId) : undefined;
  }
}
