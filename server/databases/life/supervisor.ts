/** Reconciles all databases: at the start of Cloudlet and at intervals. */

import type { SweepGuard } from '../../platform/background/sweep-guard.ts';
import type { Clock } from '../../platform/clock.ts';
import { isAppError } from '../../platform/errors.ts';
import { type Failure, type Orphan, Supervision } from '../../resources/supervision.ts';
import type { Creation } from '../creation/creation.ts';
import type { DatabaseDeleter, KeptDumps } from '../creation/database-deleter.ts';
import { isTold } from '../creation/first-start.ts';
import type { Refill } from '../creation/refill.ts';
import type { Engines } from '../engines.ts';
import type { DatabaseRow, DatabaseStore } from '../store.ts';
import type { Lifecycle } from './lifecycle.ts';
import { ACCESS, type DatabaseTurns, isOpen, openStateOf } from './states.ts';

export interface SupervisorDeps {
  readonly store: DatabaseStore;
  readonly clock: Clock;
  readonly engines: Engines;
  readonly kept: KeptDumps;
  readonly lifecycle: Lifecycle;
  readonly creation: Creation;
  readonly deleter: DatabaseDeleter;
  readonly refill: Refill;
  readonly turns: DatabaseTurns;
  readonly sweepGuard: SweepGuard;
  readonly onError: (databaseId: string, what: string, error: unknown) => void;
  /** How long orphans are kept after they were found, ms. */
  readonly orphanGraceMs: number;
}

/** Databases reconciled concurrently: each may involve a dump. */
const AT_ONCE = 4;
/** Consecutive failures of a database that its engine should have before its owner sees an error. */
const FAILURES_TO_ERROR = 3;

export class DatabaseSupervisor {
  readonly #deps: SupervisorDeps;
  readonly #supervision: Supervision;
  /** Whether this start's limits are applied to all databases. */
  #isLimited = false;

  constructor(deps: SupervisorDeps) {
    this.#deps = deps;
    this.#supervision = new Supervision({ ...deps, atOnce: AT_ONCE });
  }

  /**
   * Frees the names of creations that the end of the last run interrupted, before clients can reuse them,
   * except those whose owners were told that creation continues. check() does the rest.
   */
  async recover(): Promise<void> {
    for (const row of await this.#deps.store.listCreating())
      if (!isTold(row)) await this.#deps.creation.disown(row);
  }

  /** Finishes interrupted work. Failures are reported and retried. */
  async check(): Promise<void> {
    try {
      await this.#deps.deleter.count();
      await this.#reconcileAll(await this.#deps.store.listUnapplied());
      await this.#limitAll();
    } catch (error) {
      this.#deps.onError('', 'reconciling databases failed', error);
    }
  }

  /** Applies limits that changed since the last start. Failures are retried. */
  async #limitAll(): Promise<void> {
    const { store, engines, lifecycle, turns, onError } = this.#deps;
    if (this.#isLimited) return;
    this.#isLimited = true;
    for (const engine of engines.all()) {
      if (engine.isLimited === undefined) continue;
      for (const { database_id: id } of (await store.listIn(engine.name)).filter(isOpen)) {
        const limit = async (row: DatabaseRow) => {
          const database = lifecycle.inEngine(row);
          if (!isOpen(row) || (await engine.isLimited?.(database))) return;
          await engine.restrict(database, ACCESS[row.state]);
        };
        await turns.withRow(id, limit).catch((error: unknown) => {
          this.#isLimited = false;
          if (!isAppError(error)) onError(id, 'applying its limits failed', error);
        });
      }
    }
  }

  /** Same as reconcile(), without waiting for it. */
  reconcileSoon(databaseId: string): void {
    void this.reconcile(databaseId);
  }

  /** Applies the current row to the engine. Never rejects. */
  async reconcile(databaseId: string): Promise<void> {
    const { turns, onError } = this.#deps;
    if (turns.isClosing) return;
    const failure = await this.#supervision.attempt(databaseId, async () => {
      const done = turns.withRow(databaseId, (row) => this.#bringInLine(row));
      await done.catch(throwUnlessInterrupted);
    });
    if (failure === null) return;
    await this.#noteFailure(databaseId, failure).catch((error: unknown) =>
      onError(databaseId, 'could not store the error of a database', error),
    );
  }

  /** Removes databases and last dumps without a row. */
  async sweepOrphans(): Promise<void> {
    const { engines, kept, store } = this.#deps;
    const orphans = new Map<string, Orphan>();
    let count = 0;
    for (const engine of engines.all()) {
      try {
        // Rows are created before their database in the engine, and removed after it.
        const names = await engine.list();
        const known = await store.engineDatabases(engine.name);
        count += names.length;
        for (const name of names)
          if (!known.has(name)) orphans.set(name, { remove: () => engine.drop(name) });
      } catch (error) {
        this.#deps.onError('', `listing databases of ${engine.name} failed`, error);
      }
    }
    const ids = await kept.list();
    const known = await store.withKeptDump();
    count += ids.length;
    for (const id of ids) if (!known.has(id)) orphans.set(id, { remove: () => kept.remove(id) });
    const what = 'databases and last dumps';
    await this.#supervision.sweep({ folder: 'databases', what, count, orphans });
  }

  async #reconcileAll(rows: readonly DatabaseRow[]): Promise<void> {
    const ids = rows.map(({ database_id }) => database_id);
    await this.#supervision.each(ids, async (id) => {
      if (!this.#deps.turns.isBusy(id)) await this.reconcile(id);
    });
  }

  async #bringInLine(row: DatabaseRow): Promise<void> {
    const { creation, deleter, refill, lifecycle } = this.#deps;
    if (isTold(row)) await creation.resume(row);
    else if (row.state === 'creating') await creation.abandon(row);
    else if (row.state === 'deleting') await deleter.finish(row);
    else if (row.kept_dump_bytes !== null) await refill.restore(row);
    else if (row.state === 'error') await this.#tryAgain(row);
    else if (row.applied !== row.generation) await lifecycle.apply(row);
  }

  /** Clears the error once the engine works again. */
  async #tryAgain(row: DatabaseRow): Promise<void> {
    const { engines, lifecycle } = this.#deps;
    const engine = engines.get(row.engine);
    await engine.restrict(lifecycle.inEngine(row), 'full');
    await engine.measure(lifecycle.inEngine(row));
    await lifecycle.setDesired(row, openStateOf(row));
  }

  /** Notifies the owner after FAILURES_TO_ERROR failures; an unavailable engine does not count. */
  async #noteFailure(databaseId: string, { error, count }: Failure): Promise<void> {
    const { turns, lifecycle } = this.#deps;
    if (isAppError(error) || count < FAILURES_TO_ERROR || turns.isClosing) return;
    await turns.withRow(databaseId, async (row) => {
      if (!isOpen(row) || row.applied === row.generation) return;
      const reason_message =
        'The engine cannot open the database; the operator can find the cause in the log';
      await lifecycle.commit(row, { state: 'error', reason_code: 'engine_failed', reason_message });
    });
  }
}

/** Not an engine error: the database was deleted or undeleted, or Cloudlet is stopping. */
function throwUnlessInterrupted(error: unknown): void {
  if (isAppError(error, 'database_not_ready') || isAppError(error, 'shutting_down')) return;
  throw error;
}
