/**
 * Deletes databases, and undeletes them while their last dump is kept.
 *
 * Steps of a deletion: sessions ended → last dump kept (`kept_dump_bytes`) → dropped from the engine
 * (`is_dropped`) → deleted for good once `keep_left_ms` has elapsed. That time counts only while Cloudlet
 * runs, so setting the clock forward does not shorten it. While there is no space for the dump, or the engine
 * is unavailable, the database stays in its engine, closed. undelete reverses these steps, and has no effect
 * if interrupted before its commit. An engine without dumps on this host keeps the database itself until the
 * time is up.
 */

import type { Readable } from 'node:stream';
import type { Call } from '../../calls/principal.ts';
import { BACKGROUND, type Change, type Changes } from '../../metadata/change.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError, isAppError } from '../../platform/errors.ts';
import { writeConflict } from '../../resources/row-change.ts';
import type { DatabaseViews } from '../database-view.ts';
import { DumpsMissing, type Engine } from '../engine.ts';
import { type Engines, usualFormat } from '../engines.ts';
import type { DatabaseBilling } from '../life/egress.ts';
import { databaseExists, type Lifecycle } from '../life/lifecycle.ts';
import type { OwnedDatabases } from '../life/owned-databases.ts';
import { ACCESS, type DatabaseTurns, deletedMeanwhile, openStateOf } from '../life/states.ts';
import type { Database, Undeletion } from '../schema.ts';
import type { DatabaseRow, DatabaseStore } from '../store.ts';
import { assertAvailable } from './creation.ts';
import type { Refill } from './refill.ts';

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
  /** Throws `out_of_space` when that many more bytes cannot be stored. */
  readonly assertSpace: (bytes: number) => void;
  /** Retention of a last dump, ms; 0: no dump is kept. */
  readonly keepMs: number;
  /** Maximum bytes of last dumps per account; above it, the oldest are deleted. */
  readonly keptBytes: number;
  /** Schedules the rest of a deletion without waiting. */
  readonly reconcileSoon: (databaseId: string) => void;
  readonly onError: (databaseId: string, what: string, error: unknown) => void;
}

interface Removal {
  /** False: keep no last dump, and delete an existing one. */
  readonly keep?: boolean;
}

/** Maximum deleted databases that an account can undelete; above it, the oldest are deleted for good. */
const MOST_KEPT = 50;
/** Interval of the countdown. */
const COUNT_MS = 60_000;

export class DatabaseDeleter {
  readonly #deps: DatabaseDeleterDeps;
  #countedAt: number;

  constructor(deps: DatabaseDeleterDeps) {
    this.#deps = deps;
    this.#countedAt = deps.clock.uptime();
  }

  /**
   * Ends the sessions, loads and copies of the database. Its last dump is kept afterwards unless `keep` is
   * false, which also purges a database deleted before. Throws `database_not_found`, `delete_protected`,
   * `write_conflict`, and `out_of_space` when there is no space for the dump.
   */
  async remove(call: Call, databaseId: string, { keep = true }: Removal = {}): Promise<Database> {
    const { owned, turns, views, store } = this.#deps;
    const find = () =>
      keep ? owned.findLive(call.principal, databaseId) : owned.findAny(call.principal, databaseId);
    const seen = await find();
    assertUnprotected(seen);
    turns.interrupt(databaseId, deletedMeanwhile());
    const response = await turns.run(databaseId, async () => {
      const now = seen.state === 'creating' ? await store.find(databaseId) : seen;
      // A database that was still being created was undone by the interruption.
      if (now === undefined || (seen.state === 'creating' && now.state === 'deleting'))
        return views.present({ ...seen, state: 'deleting' });
      // A database whose server never started has no data to keep.
      return this.#delete(call, await find(), { keep: keep && now.state !== 'creating' });
    });
    this.#deps.reconcileSoon(databaseId);
    return response;
  }

  /**
   * Restores a deleted database with its password. Throws `database_not_found`, `database_exists`
   * if the name is used again, `insufficient_credits`, `quota_exceeded`, `engine_unavailable`,
   * `out_of_space`.
   */
  async undelete(call: Call, databaseId: string, { name }: Undeletion): Promise<Database> {
    const { owned, turns, engines, billing, store } = this.#deps;
    const { principal } = call;
    await owned.findKept(principal, databaseId);
    await billing.assertCredit(principal.accountId);
    // The last dump need not be finished first: the database is still in the engine.
    turns.interrupt(databaseId, deletedMeanwhile());
    try {
      return await turns.run(databaseId, async () => {
        const row = await owned.findKept(principal, databaseId);
        const engine = engines.get(row.engine);
        await assertAvailable(engine);
        const newName = name ?? row.name;
        // The commit checks both again, but only after a long load.
        if (await store.hasName(principal.accountId, newName)) throw nameTaken(newName);
        await billing.created(row);
        return await this.#bringBack(call, { row, name: newName, engine });
      });
    } catch (error) {
      this.#deps.reconcileSoon(databaseId);
      throw error;
    }
  }

  /** Finishes a deletion. */
  async finish(row: DatabaseRow): Promise<void> {
    const { engines, lifecycle, billing, keepMs } = this.#deps;
    if ((row.keep_left_ms ?? 0) <= 0) return this.#endForGood(row);
    let last = row;
    if (row.is_dropped === 0) {
      if (row.kept_dump_bytes === null) {
        if (keepMs === 0) return this.#endForGood(row);
        const bytes = await this.#keep(row);
        if (bytes === null) return void (await lifecycle.commit(row, { applied: row.generation + 1 }));
        const also = (change: Change) => change.addAll(billing.dumpKept(row, bytes));
        last = await lifecycle.commit(row, { kept_dump_bytes: bytes }, { also });
      }
      await engines.get(row.engine).drop(row.engine_database);
    }
    await lifecycle.commit(last, { is_dropped: 1, applied: last.generation + 1 });
    await this.#boundKept(row.account_id);
  }

  /** Removes the oldest last dumps of an account beyond the limit; the newest stays. */
  async #boundKept(accountId: number): Promise<void> {
    const { store, lifecycle, turns, keptBytes, reconcileSoon } = this.#deps;
    const rows = await store.keptOf(accountId);
    let count = rows.length;
    let bytes = rows.reduce((sum, row) => sum + keptSize(row), 0);
    for (const row of rows.slice(0, -1)) {
      if (count <= MOST_KEPT && bytes <= keptBytes) return;
      // Skips a database that is being undeleted or dumped.
      if (turns.isBusy(row.database_id) || row.is_dropped === 0) continue;
      const isOver = await lifecycle.commit(row, { keep_left_ms: 0 }).catch(() => null);
      if (isOver === null) continue;
      count--;
      bytes -= keptSize(row);
      reconcileSoon(row.database_id);
    }
  }

  /** Subtracts the time since the last call from the retention of last dumps. */
  async count(): Promise<void> {
    const { store, changes, clock } = this.#deps;
    const passed = clock.uptime() - this.#countedAt;
    if (passed < COUNT_MS) return;
    this.#countedAt += passed;
    if (!(await store.keepsAny())) return;
    await changes.run(BACKGROUND, (change) => void change.add(store.countKept(passed, clock.now())));
  }

  async #delete(call: Call, row: DatabaseRow, { keep }: Required<Removal>): Promise<Database> {
    const { lifecycle, engines, views, billing, clock, keepMs, onError } = this.#deps;
    assertUnprotected(row);
    const isKept = keep && keepMs > 0;
    if (isKept) this.#assertSpaceForDump(row);
    const wanted = {
      state: 'deleting',
      reason_code: null,
      reason_message: null,
      deletes_at: isKept ? clock.now() + keepMs : null,
      keep_left_ms: isKept ? keepMs : null,
    } as const;
    const response = await views.present({ ...row, ...wanted });
    const also = (change: Change) => {
      // A database that never opened has no charged storage.
      if (row.state === 'creating') change.addAll(billing.abandoned(row));
      else if (row.state !== 'deleting') change.addAll(billing.deleted(row));
    };
    const deleted = await lifecycle.commit(row, wanted, { also, recorded: { call, response } });
    try {
      await engines.get(row.engine).restrict(lifecycle.inEngine(deleted), 'none');
    } catch (error) {
      onError(row.database_id, 'ending its sessions failed', error);
    }
    return response;
  }

  #assertSpaceForDump({ engine, size_bytes }: DatabaseRow): void {
    const { engines, assertSpace } = this.#deps;
    if (engines.get(engine).dumpFormats.length === 0) return;
    try {
      assertSpace(size_bytes);
    } catch (error) {
      if (!isAppError(error) || error.code !== 'out_of_space') throw error;
      throw new AppError(
        'out_of_space',
        'The disk has no space for a last dump; the database was not deleted',
        {
          hint: 'Send DELETE with `?keep=false` to delete it immediately, without a last dump',
          cause: error,
        },
      );
    }
  }

  /** Resolves with the size of the dump; null: no dump is possible, so the database itself is kept. */
  async #keep(row: DatabaseRow): Promise<number | null> {
    const { engines, lifecycle, kept, turns, assertSpace } = this.#deps;
    const engine = engines.get(row.engine);
    const database = lifecycle.inEngine(row);
    await engine.restrict(database, 'none');
    assertSpace(row.size_bytes);
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
      change.addAll(billing.dumpRemoved(row));
      change.addAll(billing.opened({ ...row, name }, sizeBytes));
    };
    const refused = (reason: string) => (reason === 'unique' ? nameTaken(name) : writeConflict('database'));
    await lifecycle.commit(begun, ready, { also, refused, recorded: { call, response } });
    // A dump that cannot be removed is swept later.
    await kept
      .remove(row.database_id)
      .catch((error: unknown) => onError(row.database_id, 'removing its last dump failed', error));
    return response;
  }

  async #endForGood(row: DatabaseRow): Promise<void> {
    const { engines, changes, store, kept, billing } = this.#deps;
    if (row.is_dropped === 0) await engines.get(row.engine).drop(row.engine_database);
    await kept.remove(row.database_id);
    await changes.run(BACKGROUND, (change) => {
      change.expect(store.delete(row), () => writeConflict('database'));
      change.addAll(billing.dumpRemoved(row));
    });
  }
}

/** Bytes that a deleted database keeps: its last dump, or its own size if no dump can be made. */
function keptSize({ kept_dump_bytes, size_bytes }: DatabaseRow): number {
  return kept_dump_bytes ?? size_bytes;
}

function assertUnprotected({ name, is_protected }: DatabaseRow): void {
  if (is_protected === 0) return;
  throw new AppError('delete_protected', `The database ${name} is protected against deletion`, {
    hint: 'Set delete_protection to false first',
  });
}

function nameTaken(name: string): AppError {
  return databaseExists(name, 'Send {"name": "…"} to undelete it under another name');
}

/** Storage of the last dumps of deleted databases. */
export interface KeptDumps {
  /**
   * Stores the dump, replacing an earlier one of that database; resolves with its size when it is durable.
   * Throws `out_of_space` and the errors of `dump`, leaving nothing behind.
   */
  keep(databaseId: string, dump: Readable): Promise<number>;
  /**
   * Passes the dump to `take` and closes it afterwards. Throws if there is none, and the errors of
   * `take`.
   */
  read(databaseId: string, take: (dump: Readable) => Promise<void>): Promise<void>;
  /** No error if missing. */
  remove(databaseId: string): Promise<void>;
  /** Ids of the databases that have a kept dump. */
  list(): Promise<readonly string[]>;
}
