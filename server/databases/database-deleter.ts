/**
 * Databases go, and come back while a last dump of them is kept.
 *
 * A deleted row passes: sessions ended → last dump kept (`kept_dump_bytes`) → gone from its engine
 * (`is_dropped`) → when `keep_left_ms` has passed gone for good. That is counted while Cloudlet runs: a clock
 * that is set forward ends it no sooner. While there is no room for the dump, or its engine is away, the
 * database stays in its engine, closed to everybody. undelete goes the way back; cut off before its commit,
 * it has not happened. An engine that has no dumps on this host keeps the database until its time is up.
 */

import type { Readable } from 'node:stream';
import type { Call } from '../calls/principal.ts';
import { type Change, type Changes, UNASKED } from '../metadata/change.ts';
import type { Clock } from '../platform/clock.ts';
import { AppError, isAppError } from '../platform/errors.ts';
import { writeConflict } from '../resources/row-change.ts';
import type { DatabaseViews } from './database-view.ts';
import type { DatabaseBilling } from './egress.ts';
import { DumpsMissing, type Engine } from './engine.ts';
import type { Engines } from './engines.ts';
import { databaseExists, type Lifecycle } from './lifecycle.ts';
import type { OwnedDatabases } from './owned-databases.ts';
import type { Refill } from './refill.ts';
import type { Database, Undeletion } from './schema.ts';
import { ACCESS, type DatabaseTurns, deletedMeanwhile, openStateOf } from './states.ts';
import type { DatabaseRow, DatabaseStore } from './store.ts';

export interface DatabaseDeleterDeps {
  readonly store: DatabaseStore;
  readonly owned: OwnedDatabases;
  readonly changes: Changes;
  readonly engines: Engines;
  readonly lifecycle: Lifecycle;
  readonly turns: DatabaseTurns;
  readonly kept: KeptDumps;
  readonly refill: Refill;
  readonly views: DatabaseViews;
  readonly billing: DatabaseBilling;
  readonly clock: Clock;
  /** Throws `out_of_space` when so many bytes more must not be stored. */
  readonly assertRoom: (bytes: number) => void;
  /** How long a last dump is kept; 0: there is none. */
  readonly keepMs: number;
  /** Has the rest of a deletion done, without waiting for it. */
  readonly reconcileSoon: (databaseId: string) => void;
  readonly onError: (databaseId: string, what: string, error: unknown) => void;
}

interface Removal {
  /** False: without a last dump, and one that is kept already goes too. */
  readonly keep?: boolean;
}

/** Between two counts. */
const COUNT_MS = 60_000;

export class DatabaseDeleter {
  readonly #deps: DatabaseDeleterDeps;
  #countedAt: number;

  constructor(deps: DatabaseDeleterDeps) {
    this.#deps = deps;
    this.#countedAt = deps.clock.uptime();
  }

  /**
   * Ends its sessions, and what is being loaded into it or copied from it; its last dump is kept afterwards,
   * unless `keep` is false: then one that was deleted before goes for good. Throws `database_not_found`,
   * `delete_protected`, `write_conflict`, `out_of_space` when there is no room for the dump.
   */
  async remove(call: Call, databaseId: string, { keep = true }: Removal = {}): Promise<Database> {
    const { owned, turns, views, store } = this.#deps;
    const find = () =>
      keep ? owned.findLive(call.principal, databaseId) : owned.findAny(call.principal, databaseId);
    const seen = await find();
    assertUnprotected(seen);
    turns.interrupt(databaseId, deletedMeanwhile());
    const response = await turns.alone(databaseId, async () => {
      const isUndone = seen.state === 'creating' && (await store.find(databaseId))?.state !== 'ready';
      // What was still being made is gone by its interruption.
      if (isUndone) return views.present({ ...seen, state: 'deleting' });
      return this.#delete(call, await find(), { keep });
    });
    this.#deps.reconcileSoon(databaseId);
    return response;
  }

  /**
   * Brings a deleted one back, with the password it had. Throws `database_not_found`, `database_exists` when
   * the name was given again, `insufficient_credits`, `quota_exceeded`, `engine_unavailable`, `out_of_space`.
   */
  async undelete(call: Call, databaseId: string, { name }: Undeletion): Promise<Database> {
    const { owned, turns, engines, billing, store } = this.#deps;
    const { principal } = call;
    await owned.findKept(principal, databaseId);
    await billing.assertCredit(principal.accountId);
    // Its last dump need not be finished first: the database is still there.
    turns.interrupt(databaseId, deletedMeanwhile());
    try {
      return await turns.alone(databaseId, async () => {
        const row = await owned.findKept(principal, databaseId);
        const { engine } = await engines.ready(row.engine);
        const newName = name ?? row.name;
        // Both are asked again by the commit, but after a long load.
        if (await store.hasName(principal.accountId, newName)) throw nameTaken(newName);
        await billing.created(row);
        return await this.#bringBack(call, { row, name: newName, engine });
      });
    } catch (error) {
      this.#deps.reconcileSoon(databaseId);
      throw error;
    }
  }

  /** Does what is left of a deletion. */
  async finish(row: DatabaseRow): Promise<void> {
    const { engines, lifecycle, keepMs } = this.#deps;
    if ((row.keep_left_ms ?? 0) <= 0) return this.#endForGood(row);
    let last = row;
    if (row.is_dropped === 0) {
      if (row.kept_dump_bytes === null) {
        if (keepMs === 0) return this.#endForGood(row);
        const bytes = await this.#keep(row);
        if (bytes === null) return void (await lifecycle.commit(row, { applied: row.generation + 1 }));
        last = await lifecycle.commit(row, { kept_dump_bytes: bytes });
      }
      await engines.get(row.engine).drop(row.engine_database);
    }
    await lifecycle.commit(last, { is_dropped: 1, applied: last.generation + 1 });
  }

  /** Takes the time since the last call from what last dumps are still kept for. */
  async count(): Promise<void> {
    const { store, changes, clock } = this.#deps;
    const passed = clock.uptime() - this.#countedAt;
    if (passed < COUNT_MS) return;
    this.#countedAt += passed;
    if (!(await store.keepsAny())) return;
    await changes.run(UNASKED, (change) => void change.add(store.countKept(passed, clock.now())));
  }

  async #delete(call: Call, row: DatabaseRow, { keep }: Required<Removal>): Promise<Database> {
    const { lifecycle, engines, views, billing, clock, keepMs, onError } = this.#deps;
    assertUnprotected(row);
    const isKept = keep && keepMs > 0;
    if (isKept) this.#assertRoomForDump(row);
    const wanted = {
      state: 'deleting',
      reason_code: null,
      reason_message: null,
      deletes_at: isKept ? clock.now() + keepMs : null,
      keep_left_ms: isKept ? keepMs : null,
    } as const;
    const response = await views.present({ ...row, ...wanted });
    const also = (change: Change) => change.addAll(row.state === 'deleting' ? [] : billing.deleted(row));
    const deleted = await lifecycle.commit(row, wanted, { also, recorded: { call, response } });
    try {
      await engines.get(row.engine).restrict(lifecycle.inEngine(deleted), 'none');
    } catch (error) {
      onError(row.database_id, 'its sessions could not be ended yet', error);
    }
    return response;
  }

  #assertRoomForDump({ engine, size_bytes }: DatabaseRow): void {
    const { engines, assertRoom } = this.#deps;
    if (engines.get(engine).dumpFormats.length === 0) return;
    try {
      assertRoom(size_bytes);
    } catch (error) {
      if (!isAppError(error) || error.code !== 'out_of_space') throw error;
      throw new AppError('out_of_space', 'The disk has no room for its last dump; it was not deleted', {
        hint: 'Send DELETE with `?keep=false` to delete it at once, without a last dump',
        cause: error,
      });
    }
  }

  /** Resolves with its bytes; null: there can be no dump, so that the database itself is kept. */
  async #keep(row: DatabaseRow): Promise<number | null> {
    const { engines, lifecycle, kept, turns, assertRoom } = this.#deps;
    const engine = engines.get(row.engine);
    const database = lifecycle.inEngine(row);
    await engine.restrict(database, 'none');
    assertRoom(row.size_bytes);
    const work = async (signal: AbortSignal) => {
      const { stream } = await engine.dump(database, usualFormat(engine), { signal });
      return kept.keep(row.database_id, stream);
    };
    return turns.during([row.database_id], work).catch((error) => {
      if (error instanceof DumpsMissing || isAppError(error, 'data_missing')) return null;
      if (isAppError(error, 'data_damaged')) return null;
      throw error;
    });
  }

  async #bringBack(
    call: Call,
    { row, name, engine }: { readonly row: DatabaseRow; readonly name: string; readonly engine: Engine },
  ): Promise<Database> {
    const { lifecycle, views, billing, store, kept, refill, onError } = this.#deps;
    const database = lifecycle.inEngine(row);
    const begun = row.kept_dump_bytes === null ? row : await refill.fill(row, engine);
    const next = row.sealed_next_password;
    if (next !== null) await engine.rotate(database, lifecycle.passwordOf(row));
    const { sizeBytes } = await engine.measure(database);
    const open = openStateOf({ ...begun, size_bytes: sizeBytes });
    await engine.restrict(database, ACCESS[open.state]);
    const ready = {
      ...open,
      name,
      sealed_password: next ?? row.sealed_password,
      sealed_next_password: null,
      deletes_at: null,
      keep_left_ms: null,
      is_dropped: 0,
      kept_dump_bytes: null,
      applied: begun.generation + 1,
      size_bytes: sizeBytes,
    } as const;
    const response = await views.present({ ...begun, ...ready });
    const also = async (change: Change) => {
      change.add(store.setSize(row.id, sizeBytes));
      change.addAll(await billing.created(row), 'retry');
      change.addAll(billing.opened({ ...row, name }, sizeBytes));
    };
    const refused = (reason: string) => (reason === 'unique' ? nameTaken(name) : writeConflict('database'));
    await lifecycle.commit(begun, ready, { also, refused, recorded: { call, response } });
    // One that stays is swept.
    await kept
      .remove(row.database_id)
      .catch((error: unknown) => onError(row.database_id, 'its last dump was not removed', error));
    return response;
  }

  async #endForGood(row: DatabaseRow): Promise<void> {
    const { engines, changes, store, kept } = this.#deps;
    if (row.is_dropped === 0) await engines.get(row.engine).drop(row.engine_database);
    await kept.remove(row.database_id);
    await changes.run(UNASKED, (change) => change.expect(store.delete(row), () => writeConflict('database')));
  }
}

/** What load() takes. */
export function usualFormat({ dumpFormats }: Engine): string {
  return dumpFormats[0] ?? '';
}

function assertUnprotected({ name, is_protected }: DatabaseRow): void {
  if (is_protected === 0) return;
  throw new AppError('delete_protected', `The database ${name} is protected against deletion`, {
    hint: 'Set delete_protection to false first',
  });
}

function nameTaken(name: string): AppError {
  return databaseExists(name, 'Send {"name": "…"} to bring it back under another name');
}

/** What the databases domain needs of a place for the last dumps of deleted databases. */
export interface KeptDumps {
  /**
   * Resolves with its bytes when the whole dump is on disk, in place of an earlier one of that database.
   * Throws `out_of_space`, and what `dump` fails with; nothing of it is left then.
   */
  keep(databaseId: string, dump: Readable): Promise<number>;
  /** Has `take` read it, and closes it afterwards. Throws when there is none, and what `take` throws. */
  read(databaseId: string, take: (dump: Readable) => Promise<void>): Promise<void>;
  /** Fine when there is none. */
  remove(databaseId: string): Promise<void>;
  /** Ids of the databases of which there is one. */
  list(): Promise<readonly string[]>;
}
