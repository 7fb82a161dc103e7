/**
 * Loads databases into their engine from a kept dump: undeleted ones, and after a restore of the
 * whole cloud every database of the recovery point. Their rows have `kept_dump_bytes` without being
 * deleted; until a database is loaded its state is `error` with the reason.
 */
import { AppError } from '../../platform/errors.ts';
import type { Engine } from '../engine.ts';
import type { Engines } from '../engines.ts';
import type { Lifecycle } from '../life/lifecycle.ts';
import { ACCESS, type DatabaseTurns, openStateOf } from '../life/states.ts';
import type { DatabaseRow, DatabaseStore } from '../store.ts';
import { assertAvailable } from './creation.ts';
import type { KeptDumps } from './database-deleter.ts';

export interface RefillDeps {
  readonly store: DatabaseStore;
  readonly engines: Engines;
  readonly lifecycle: Lifecycle;
  readonly turns: DatabaseTurns;
  readonly kept: KeptDumps;
  /** Throws `out_of_space` when that many more bytes cannot be stored. */
  readonly assertSpace: (bytes: number) => void;
}

/** Reasons shown to the owner while a database is not loaded. */
const WAITING = {
  engine_missing:
    'The engine is not available on this host; the database is loaded once the engine is available',
  out_of_space: 'There is not enough disk space to load the database; loading starts when there is enough',
  restore_failed: 'Loading the database failed and is retried; the operator can find the cause in the log',
};

export class Refill {
  readonly #deps: RefillDeps;

  constructor(deps: RefillDeps) {
    this.#deps = deps;
  }

  /** Recreates the database in its engine from the last dump. Idempotent while the dump is kept. */
  async fill(row: DatabaseRow, engine: Engine): Promise<DatabaseRow> {
    const { lifecycle, kept, turns, assertSpace } = this.#deps;
    const database = lifecycle.inEngine(row);
    assertSpace(row.kept_dump_bytes ?? 0);
    const begun = await lifecycle.commit(row, { is_dropped: 0 });
    await engine.prepare();
    await engine.drop(row.engine_database);
    await engine.provision(database, lifecycle.passwordOf(row));
    await turns.during([row.database_id], (signal) =>
      kept.read(row.database_id, (dump) => engine.load(database, dump, { signal })),
    );
    return begun;
  }

  /** Loads a database of a restored cloud, with its password. A failure is stored in the row and retried. */
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
    const engine = engines.get(row.engine);
    await assertAvailable(engine);
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
    // A dump that cannot be removed is swept later.
    await kept.remove(row.database_id).catch(() => {});
  }
}

/** null: not an error; the database was deleted or Cloudlet is stopping. */
function waitingFor(error: unknown): keyof typeof WAITING | null {
  if (!(error instanceof AppError)) return 'restore_failed';
  if (error.code === 'engine_unavailable') return 'engine_missing';
  return error.code === 'out_of_space' || error.code === 'host_disk_full' ? 'out_of_space' : null;
}
