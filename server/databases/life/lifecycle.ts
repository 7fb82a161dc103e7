/**
 * Reconciles engines with the rows. A row holds the desired state, `generation` counts its changes, and
 * `applied` is the generation last applied to the engine. Every step is idempotent, so an interrupted one is
 * repeated by supervisor.ts, at the start of Cloudlet and at intervals.
 */
import { BACKGROUND, type Change, type Changes, type Recorder, type Refusal } from '../../metadata/change.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { type Announce, assertFollows, eventOf, nextRow, writeConflict } from '../../resources/row-change.ts';
import type { EngineDatabase, EngineLimits } from '../engine.ts';
import type { Engines } from '../engines.ts';
import type { DatabaseSecrets } from '../secrets.ts';
import type { DatabaseRow, DatabaseStore } from '../store.ts';
import { ACCESS, FOLLOWING, isOpening } from './states.ts';

export interface LifecycleDeps {
  readonly store: DatabaseStore;
  readonly changes: Changes;
  readonly engines: Engines;
  readonly secrets: DatabaseSecrets;
  readonly clock: Clock;
  readonly limits: EngineLimits;
  /** The call, with its response. */
  readonly announce: Announce<DatabaseEventType>;
}

interface Commit {
  /** Additional statements for the same commit. */
  readonly also?: (change: Change) => void | Promise<void>;
  /** Default: `write_conflict`. */
  readonly refused?: Refusal;
  /** The call to answer, with its response. */
  readonly recorded?: { readonly call: Recorder; readonly response: unknown } | undefined;
}

export class Lifecycle {
  readonly #deps: LifecycleDeps;

  constructor(deps: LifecycleDeps) {
    this.#deps = deps;
  }

  /** The database as its engine knows it. */
  inEngine(row: DatabaseRow): EngineDatabase {
    return {
      databaseId: row.database_id,
      number: row.id,
      accountId: row.account_id,
      database: row.engine_database,
      username: row.username,
      sizeLimitBytes: row.size_limit_bytes,
      limits: this.#deps.limits,
    };
  }

  /** The current password, or the next one once applied. */
  passwordOf({ database_id, sealed_password, sealed_next_password }: DatabaseRow): string {
    return this.#deps.secrets.unseal(database_id, sealed_next_password ?? sealed_password);
  }

  /**
   * Applies the wanted columns to row and engine. Resolves with the settled row. Throws when the engine
   * fails. Changes that close the database are then stored and applied later; changes that open it are not
   * stored, because the row must not say open before the engine does, so the caller has to retry.
   */
  async setDesired(before: DatabaseRow, wanted: Partial<DatabaseRow>): Promise<DatabaseRow> {
    if (!isOpening(before, wanted)) return this.apply(await this.commit(before, wanted));
    // If interrupted from here on, the engine is reconciled with the row.
    return this.apply(await this.commit(before, {}), { wanted });
  }

  /** Commits a change of the row. Throws `write_conflict` when it has changed since it was read. */
  async commit(before: DatabaseRow, wanted: Partial<DatabaseRow>, how: Commit = {}): Promise<DatabaseRow> {
    const { changes, store, clock, announce } = this.#deps;
    const row = nextRow(before, wanted, clock.now());
    assertFollows(FOLLOWING, before.state, row.state);
    const event = eventFor(before, row, clock.now());
    await changes.run(how.recorded?.call ?? BACKGROUND, async (change) => {
      change.expect(store.update(row), how.refused ?? (() => writeConflict('database')));
      await how.also?.(change);
      if (event !== undefined) change.addAll(announce(event));
      return how.recorded?.response;
    });
    return row;
  }

  /** Applies the row and `wanted` to the engine, then stores that with the response to the call. */
  async apply(
    row: DatabaseRow,
    { recorded, wanted = {} }: Pick<Commit, 'recorded'> & { readonly wanted?: Partial<DatabaseRow> } = {},
  ): Promise<DatabaseRow> {
    if (row.kept_dump_bytes !== null) throw notBack(row);
    const engine = this.#deps.engines.get(row.engine);
    const database = this.inEngine(row);
    const next = row.sealed_next_password;
    if (next !== null) await engine.rotate(database, this.passwordOf(row));
    await engine.restrict(database, ACCESS[wanted.state ?? row.state]);
    const settled = {
      ...wanted,
      sealed_password: next ?? row.sealed_password,
      sealed_next_password: null,
      applied: row.generation + 1,
    };
    return this.commit(row, settled, { recorded });
  }
}

/** Refusal for a database of a restored cloud that is not loaded yet. */
function notBack({ name }: DatabaseRow): AppError {
  return new AppError(
    'database_not_ready',
    `The database ${name} is still being restored from its recovery point`,
  );
}

/** Refusal of a name that the account already uses. */
export function databaseExists(name: string, hint?: string): AppError {
  const detail = `You already have a database named ${name}`;
  return new AppError('database_exists', detail, hint === undefined ? {} : { hint });
}

export type DatabaseEventType =
  `database.${'created' | 'deleted' | 'read_only' | 'suspended' | 'resumed' | 'failed' | 'tunnel_opened' | 'tunnel_closed'}`;

/** undefined: no event is sent for the change. */
function eventFor(before: DatabaseRow, after: DatabaseRow, at: number) {
  const type = typeOf(before, after);
  if (type === undefined) return undefined;
  const { database_id, engine, size_limit_bytes } = after;
  return eventOf(type, after, {
    at,
    database_id,
    engine,
    size_limit_mb: Math.floor(size_limit_bytes / 2 ** 20),
  });
}

function typeOf(before: DatabaseRow, after: DatabaseRow): DatabaseEventType | undefined {
  if (before.state === after.state) return undefined;
  if (after.state === 'deleting') return before.state === 'creating' ? undefined : 'database.deleted';
  if (after.state === 'read_only') return 'database.read_only';
  if (after.state === 'suspended') return 'database.suspended';
  if (after.state === 'error') return 'database.failed';
  // An undeleted database is announced as created.
  return before.state === 'creating' || before.state === 'deleting' ? 'database.created' : 'database.resumed';
}
