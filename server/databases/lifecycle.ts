/**
 * Brings engines in line with the rows. The row says what is wanted, `generation` counts its wishes, and
 * `applied` is the one that the engine was brought in line with. Every step may be done again, so a crash
 * between any two is mended by doing them again: at the start of Cloudlet and from time to time.
 *
 * A creation that was cut off is undone: nobody was answered, and whoever asks again finds the name free.
 */
import type { Call } from '../accounts/principal.ts';
import type { Clock } from '../clock.ts';
import { AppError } from '../errors.ts';
import { KeyLocks } from '../key-locks.ts';
import { type Change, type Changes, type Refusal, UNASKED } from '../metadata/change.ts';
import type { DatabaseBilling } from './database-billing.ts';
import type { DatabaseSecrets } from './database-secrets.ts';
import type { EngineDatabase, EngineLimits } from './engine.ts';
import type { Engines } from './engines.ts';
import { ACCESS } from './states.ts';
import type { DatabaseRow, DatabaseStore } from './store.ts';

export interface LifecycleDeps {
  readonly store: DatabaseStore;
  readonly changes: Changes;
  readonly engines: Engines;
  readonly secrets: DatabaseSecrets;
  readonly clock: Clock;
  readonly billing: Pick<DatabaseBilling, 'abandoned'>;
  readonly limits: EngineLimits;
  readonly report: (databaseId: string, what: string, error: unknown) => void;
}

interface Commit {
  /** What belongs to the same commit. */
  readonly also?: (change: Change) => void;
  /** Default: `write_conflict`. */
  readonly refused?: Refusal;
  /** Whose call this answers. */
  readonly recorded?: { readonly call: Call; readonly answer: unknown } | undefined;
}

export class Lifecycle {
  readonly #deps: LifecycleDeps;
  readonly #locks = new KeyLocks();
  /** Being worked on by a request: not for the look-over. */
  readonly #busy = new Set<string>();
  #isClosing = false;

  constructor(deps: LifecycleDeps) {
    this.#deps = deps;
  }

  /** Runs `work` while nobody else changes this database or its engine's side. */
  alone<T>(databaseId: string, work: () => Promise<T>): Promise<T> {
    return this.#locks.run(databaseId, async () => {
      this.#busy.add(databaseId);
      try {
        return await work();
      } finally {
        this.#busy.delete(databaseId);
      }
    });
  }

  /** The database as its engine knows it. */
  inEngine(row: DatabaseRow): EngineDatabase {
    return {
      databaseId: row.database_id,
      number: row.id,
      database: row.engine_database,
      username: row.username,
      sizeLimitBytes: row.size_limit_bytes,
      limits: this.#deps.limits,
    };
  }

  /**
   * Stores what is wanted of the database, then has its engine follow. Resolves with the row, settled. What
   * the engine cannot do now it does later: this throws, and the wish stays.
   */
  async wish(
    before: DatabaseRow,
    wanted: Partial<DatabaseRow>,
    recorded?: Commit['recorded'],
  ): Promise<DatabaseRow> {
    return this.apply(await this.commit(before, wanted), recorded);
  }

  /** One change of the row. Throws `write_conflict` when it has changed since it was read. */
  async commit(before: DatabaseRow, wanted: Partial<DatabaseRow>, how: Commit = {}): Promise<DatabaseRow> {
    const { changes, store, clock } = this.#deps;
    const state = wanted.state ?? before.state;
    const isMoved = state !== before.state;
    const row: DatabaseRow = {
      ...before,
      ...wanted,
      generation: before.generation + 1,
      state_changed_at: isMoved ? clock.now() : before.state_changed_at,
    };
    await changes.run(how.recorded?.call ?? UNASKED, (change) => {
      change.expect(store.update(row), how.refused ?? writeConflict);
      how.also?.(change);
      return how.recorded?.answer;
    });
    return row;
  }

  /** Has the engine do what the row says, and notes that it did, with the answer to whoever asked for it. */
  async apply(row: DatabaseRow, recorded?: Commit['recorded']): Promise<DatabaseRow> {
    const { engines, secrets } = this.#deps;
    const engine = engines.get(row.engine);
    const database = this.inEngine(row);
    const next = row.sealed_next_password;
    if (next !== null) await engine.rotate(database, secrets.unseal(row.database_id, next));
    await engine.restrict(database, ACCESS[row.state]);
    const settled = {
      sealed_password: next ?? row.sealed_password,
      sealed_next_password: null,
      applied: row.generation + 1,
    };
    return this.commit(row, settled, { recorded });
  }

  /** A creation that failed or was cut off: nothing is left of it. */
  async abandon(row: DatabaseRow): Promise<void> {
    const { billing } = this.#deps;
    const abandoned = await this.commit(
      row,
      { state: 'deleting' },
      { also: (change) => change.addAll(billing.abandoned(row)) },
    );
    await this.#finishDeletion(abandoned);
  }

  /** Settles all that was left half-way. What fails is reported, and done at the next call. */
  async check(): Promise<void> {
    for (const row of await this.#deps.store.listUnsettled()) {
      if (this.#isClosing) return;
      if (!this.#busy.has(row.database_id)) await this.settle(row.database_id);
    }
  }

  /** Brings the engine in line with what the row says by the time of its turn. */
  async settle(databaseId: string): Promise<void> {
    try {
      await this.alone(databaseId, async () => {
        const row = await this.#deps.store.find(databaseId);
        if (row === undefined) return;
        if (row.state === 'creating') await this.abandon(row);
        else if (row.state === 'deleting') await this.#finishDeletion(row);
        else if (row.applied !== row.generation) await this.apply(row);
      });
    } catch (error) {
      this.#deps.report(databaseId, 'the engine could not be brought in line with it', error);
    }
  }

  /** Begins nothing more. */
  close(): void {
    this.#isClosing = true;
  }

  async #finishDeletion(row: DatabaseRow): Promise<void> {
    const { engines, changes, store } = this.#deps;
    await engines.get(row.engine).drop(row.engine_database);
    await changes.run(UNASKED, (change) => change.expect(store.delete(row), writeConflict));
  }
}

export function writeConflict(): AppError {
  return new AppError('write_conflict', 'The database was changed meanwhile; try again');
}
