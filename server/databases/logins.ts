/** Whose password it is: for engines that have no log-in of their own, and are reached through Cloudlet. */
import { timingSafeEqual } from 'node:crypto';
import type { Awaitable } from '../metadata/metadata.ts';
import { AppError } from '../platform/errors.ts';
import { isId } from '../platform/ids.ts';
import { hashPassword } from './database-secrets.ts';
import type { EngineDatabase, EngineName } from './engine.ts';
import type { Lifecycle } from './lifecycle.ts';
import { assertReadable } from './states.ts';
import type { DatabaseRow, DatabaseStore } from './store.ts';

export interface LoginsDeps {
  readonly store: Pick<DatabaseStore, 'find' | 'findByPassword'>;
  readonly lifecycle: Pick<Lifecycle, 'inEngine'>;
  readonly engine: EngineName;
}

export class Logins {
  readonly #deps: LoginsDeps;

  constructor(deps: LoginsDeps) {
    this.#deps = deps;
  }

  /**
   * The database, `databaseId` or, when that is null, the one that has this password. Throws
   * `invalid_database_password`, also when there is no such database, and `database_not_ready`.
   */
  async find(databaseId: string | null, password: string): Promise<EngineDatabase> {
    const { lifecycle, engine } = this.#deps;
    const hash = hashPassword(password);
    const row = await this.#row(databaseId, hash);
    const isRight =
      row?.engine === engine && row.state !== 'deleting' && timingSafeEqual(row.password_hash, hash);
    if (!isRight) {
      throw new AppError('invalid_database_password', 'The password is not the one of this database', {
        hint: 'GET /api/databases/{database_id}/credentials has it',
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
