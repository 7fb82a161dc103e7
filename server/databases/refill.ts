/**
 * Databases come back into their engine from a dump that is kept: one that was deleted and is wanted again,
 * and, after a restore of the whole cloud, each that the recovery point has. Such a row is `kept_dump_bytes`
 * without being deleted; until it is loaded its owner sees `error` with the reason.
 */
import { AppError } from '../platform/errors.ts';
import type { KeptDumps } from './database-deleter.ts';
import type { Engine } from './engine.ts';
import type { Engines } from './engines.ts';
import type { Lifecycle } from './lifecycle.ts';
import { ACCESS, type DatabaseTurns, openStateOf } from './states.ts';
import type { DatabaseRow, DatabaseStore } from './store.ts';

export interface RefillDeps {
  readonly store: DatabaseStore;
  readonly engines: Engines;
  readonly lifecycle: Lifecycle;
  readonly turns: DatabaseTurns;
  readonly kept: KeptDumps;
  /** Throws `out_of_space` when so many bytes more must not be stored. */
  readonly assertRoom: (bytes: number) => void;
}

/** What its owner is told while a database is not back. */
const WAITING = {
  engine_missing: 'Its engine is not available on this host; it is loaded as soon as it is',
  out_of_space: 'There is no room to load it; it is loaded as soon as there is',
  restore_failed: 'The database could not be loaded yet; your administrator finds the reason in the log',
};

export class Refill {
  readonly #deps: RefillDeps;

  constructor(deps: RefillDeps) {
    this.#deps = deps;
  }

  /** Makes it in its engine again, of the last dump. It may be done again until the dump is not kept. */
  async fill(row: DatabaseRow, engine: Engine): Promise<DatabaseRow> {
    const { lifecycle, kept, turns, assertRoom } = this.#deps;
    const database = lifecycle.inEngine(row);
    assertRoom(row.kept_dump_bytes ?? 0);
    const begun = await lifecycle.commit(row, { is_dropped: 0 });
    await engine.prepare();
    await engine.drop(row.engine_database);
    await engine.provision(database, lifecycle.passwordOf(row));
    await turns.during([row.database_id], (signal) =>
      kept.read(row.database_id, (dump) => engine.load(database, dump, signal)),
    );
    return begun;
  }

  /** One of a restored cloud, with the password it had. What fails is told in the row and tried again. */
  async restore(row: DatabaseRow): Promise<void> {
    try {
      await this.#restore(row);
    } catch (error) {
      const { store, lifecycle } = this.#deps;
      const code = waitingFor(error);
      const now = await store.find(row.database_id);
      if (code !== null && now?.state === 'error' && now.reason_code !== code) {
        await lifecycle.commit(now, { reason_code: code, reason_message: WAITING[code] });
      }
      throw error;
    }
  }

  async #restore(row: DatabaseRow): Promise<void> {
    const { engines, lifecycle, store, kept } = this.#deps;
    const { engine } = await engines.ready(row.engine);
    const begun = await this.fill(row, engine);
    const database = lifecycle.inEngine(row);
    const { sizeBytes } = await engine.measure(database);
    const { state, reason_code, reason_message } = row;
    const open =
      state === 'suspended'
        ? { state, reason_code, reason_message }
        : openStateOf({ ...begun, size_bytes: sizeBytes });
    await engine.restrict(database, ACCESS[open.state]);
    const settled = {
      ...open,
      sealed_password: row.sealed_next_password ?? row.sealed_password,
      sealed_next_password: null,
      is_dropped: 0,
      kept_dump_bytes: null,
      applied: begun.generation + 1,
    };
    await lifecycle.commit(begun, settled, {
      also: (change) => void change.add(store.setSize(row.id, sizeBytes)),
    });
    // One that stays is swept.
    await kept.remove(row.database_id).catch(() => {});
  }
}

/** null: nothing failed, the database was deleted or Cloudlet stops. */
function waitingFor(error: unknown): keyof typeof WAITING | null {
  if (!(error instanceof AppError)) return 'restore_failed';
  if (error.code === 'engine_unavailable') return 'engine_missing';
  return error.code === 'out_of_space' || error.code === 'host_disk_full' ? 'out_of_space' : null;
}
