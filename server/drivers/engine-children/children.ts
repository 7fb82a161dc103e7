/**
 * The children of an engine: one per active database, within the limit of processes. An idle child ends after
 * a while.
 */
import type { Logger } from 'pino';
import type { EngineDatabase } from '../../databases/engine.ts';
import { type Beat, onBeat } from '../../platform/background/beat.ts';
import type { Clock } from '../../platform/clock.ts';
import { KeyedMutex } from '../../platform/concurrency.ts';
import { AppError, isAppError } from '../../platform/errors.ts';
import type { SizeLimit } from './child-call.ts';
import { dataDamaged } from './child-failures.ts';
import type { LaunchedChild } from './child-host.ts';
import type { BusyChild, ChildSlots, IdleChild, SlotUser } from './child-slots.ts';
import { HeavyAccounts } from './heavy-accounts.ts';
import {
  type CallHead,
  type CallOptions,
  type ChildAnswer,
  ChildGone,
  ChildRefused,
  TenantChild,
} from './tenant-child.ts';

/** Time to write everything back. */
const END_MS = 5000;
/** Time for a child to open its file: no statement runs yet, but the host may be busy. */
const OPEN_MS = 60_000;
const CHECK_MS = 1000;
const MAX_TRIES = 5;

export interface Figures {
  readonly connections: number;
  readonly statements: number;
  readonly rowsReturned: number;
  readonly rowsWritten: number;
  readonly sizeBytes: number;
}

interface RunningCall {
  /** A time of the monotonic clock. */
  readonly since: number;
  /** The call may be ended for another account. */
  readonly isStatement: boolean;
}

interface Entry {
  readonly child: TenantChild;
  readonly database: EngineDatabase;
  readonly accountId: number;
  /** Releases its slot. */
  readonly leave: () => void;
  /** A time of the monotonic clock. */
  usedAt: number;
  /** Running calls, the oldest first. */
  readonly calls: Set<RunningCall>;
  /** Totals since the child started. */
  figures: Figures;
}

export interface ChildrenDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly slots: ChildSlots;
  readonly idleMs: number;
  /** ChildEngineKind.spareMs. */
  readonly spareMs: number;
  /** Starts a process in the database's folder. `isLast`: with low priority until it is open. */
  readonly launch: (database: EngineDatabase, isLast: boolean) => Promise<LaunchedChild>;
  /** The process has ended as requested; no other starts before this resolves. */
  readonly ended: (database: EngineDatabase) => Promise<void>;
  /** The size that the file may grow to now. */
  readonly sizeLimitOf: (database: EngineDatabase) => Promise<SizeLimit>;
  /** Space to keep free on the host's disk. */
  readonly keepFreeBytes: () => number;
  readonly onDamage: (database: EngineDatabase, what: string) => void;
}

export const FILE = 'db.sqlite';
/** Copy of the database for a dump. */
export const COPY_FILE = 'copy';
/** Calls that do not serve their caller alone, such as a dump for a recovery point. */
const NO_STATEMENTS: ReadonlySet<string> = new Set(['copy', 'open', 'size_limit', 'keepFree']);
const NOTHING: Figures = { connections: 0, statements: 0, rowsReturned: 0, rowsWritten: 0, sizeBytes: 0 };

export class Children implements SlotUser {
  readonly #deps: ChildrenDeps;
  readonly #locks = new KeyedMutex();
  readonly #entries = new Map<string, Entry>();
  /** Totals of earlier children, by database. */
  readonly #before = new Map<string, Figures>();
  readonly #heavy: HeavyAccounts;
  readonly #beat: Beat;
  /** Databases whose child is being started. */
  readonly #starting = new Set<string>();
  #isClosed = false;
  #keepFreeBytes: number;

  constructor(deps: ChildrenDeps) {
    this.#deps = deps;
    deps.slots.join(this);
    this.#heavy = new HeavyAccounts(deps.clock);
    this.#keepFreeBytes = deps.keepFreeBytes();
    this.#beat = onBeat(CHECK_MS, () => {
      this.#endUnused();
      this.#tellKeepFree();
    });
  }

  /**
   * Sends a call to the database's child, starting it if needed. Rejects like TenantChild.call(),
   * and with `engine_unavailable` if no child can start, for example for lack of a slot.
   */
  async call(database: EngineDatabase, head: CallHead, options?: CallOptions): Promise<ChildAnswer> {
    for (let tries = 1; ; tries++) {
      const entry = await this.#entryOf(database, options?.signal);
      await entry.child.isCertain;
      try {
        return await this.#callIn(entry, head, options);
      } catch (error) {
        // Another call failed, or the process had just ended.
        const isUntouched = error instanceof ChildGone && error.isUntouched;
        if (!isUntouched || tries === MAX_TRIES) throw error;
        await entry.child.ended;
      }
    }
  }

  async #callIn(entry: Entry, head: CallHead, options?: CallOptions): Promise<ChildAnswer> {
    const since = this.#deps.clock.monotonic();
    const call = { since, isStatement: !NO_STATEMENTS.has(head.kind) };
    entry.usedAt = since;
    entry.calls.add(call);
    try {
      return await entry.child.call(head, options);
    } finally {
      entry.calls.delete(call);
      entry.usedAt = this.#deps.clock.monotonic();
    }
  }

  /** Sends a call to the database's process, if it has one. */
  async callIfThere(database: EngineDatabase, head: CallHead): Promise<void> {
    const entry = this.#entries.get(database.database);
    if (entry?.child.isUsable) await entry.child.call(head);
  }

  /** Runs `work` while no process of the database starts or ends; a running one continues. */
  alone<T>(name: string, work: () => Promise<T>): Promise<T> {
    return this.#locks.run(name, work);
  }

  /** Starts a child if a slot is free, because a call is expected. */
  warm(database: EngineDatabase): void {
    if (this.#deps.slots.isFree(database.accountId)) Promise.resolve(this.#entryOf(database)).catch(() => {});
  }

  /** Runs `work` while the database has no process; calls wait. */
  without<T>(name: string, work: () => Promise<T>, howEnded: 'kept' | 'killed' = 'kept'): Promise<T> {
    return this.#locks.run(name, async () => {
      await this.#end(name, howEnded);
      return work();
    });
  }

  /** Current figures of a database, and totals since Cloudlet started; null without a child. */
  figures(name: string): { readonly live: Figures | null; readonly total: Figures } {
    const live = this.#entries.get(name)?.figures ?? null;
    return { live, total: sum(this.#before.get(name) ?? NOTHING, live ?? NOTHING) };
  }

  processOf(name: string): number | null {
    return this.#entries.get(name)?.child.pid ?? null;
  }

  forgetFigures(name: string): void {
    this.#before.delete(name);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#beat.stop();
    // Includes children being started: the lock ends them once they run.
    const names = this.#starting.union(this.#entries);
    await Promise.all([...names].map((name) => this.without(name, async () => {})));
  }

  /** `signal`: of the waiting caller. */
  #entryOf(database: EngineDatabase, signal?: AbortSignal): Promise<Entry> | Entry {
    const name = database.database;
    const entry = this.#entries.get(name);
    if (entry?.child.isUsable) return entry;
    return this.#locks.run(name, async () => {
      const there = this.#entries.get(name);
      if (there?.child.isUsable) return there;
      if (there !== undefined) await this.#end(name, 'killed');
      const leave = await this.#deps.slots.take(database.accountId, signal);
      this.#starting.add(name);
      try {
        const entry = await this.#begin(database, leave);
        this.#entries.set(name, entry);
        void entry.child.ended.then(() => this.#forget(name, entry.child));
        return entry;
      } catch (error) {
        leave();
        throw error;
      } finally {
        this.#starting.delete(name);
      }
    });
  }

  async #begin(database: EngineDatabase, leave: () => void): Promise<Entry> {
    const { clock, log, spareMs, launch, sizeLimitOf, onDamage } = this.#deps;
    if (this.#isClosed) throw unavailable('Cloudlet is being stopped');
    const sizeLimit = await sizeLimitOf(database);
    const isLast = this.#heavy.startsLast(database.accountId);
    const launched = await launch(database, isLast).catch((error) => {
      if (isAppError(error)) throw error;
      log.error({ id: database.databaseId, err: error }, 'the process of a database cannot be started');
      throw unavailable('The process of the database cannot be started on this host', error);
    });
    let isOpen = false;
    const child = new TenantChild(launched, {
      clock,
      silenceMs: () => (isOpen ? database.limits.statementMs + spareMs : OPEN_MS),
      isOpening: () => !isOpen,
      onDamage: (what) => onDamage(database, what),
      onLong: () => this.#heavy.noteLong(database.accountId),
      isHeavy: () => this.#heavy.computes(database.accountId),
      onCounters: (counters) => {
        entry.figures = readFigures(counters);
      },
    });
    const { accountId } = database;
    const usedAt = clock.monotonic();
    const calls: Entry['calls'] = new Set();
    const entry: Entry = { child, database, accountId, leave, usedAt, calls, figures: NOTHING };
    try {
      const { database: name, limits } = database;
      const files = { at: launched.at, file: FILE, copy: COPY_FILE, keepFreeBytes: this.#keepFreeBytes };
      await child.call({ kind: 'open', name, limits, ...files, ...sizeLimit });
      isOpen = true;
      if (isLast) launched.yields('usual');
      return entry;
    } catch (error) {
      child.kill(new ChildGone('ended', 'opening the database failed'));
      await child.ended;
      log.error({ id: database.databaseId, err: error, said: launched.said() }, 'opening a database failed');
      if (error instanceof ChildRefused && error.isDamaged) throw dataDamaged(error.message, error);
      throw unavailable('The database cannot be opened now: its process ended, or did not answer', error);
    }
  }

  /** Idle children; those without open sessions end first. */
  idle(): readonly IdleChild[] {
    const idle = [...this.#entries].filter(([, { child }]) => child.isUsable && child.pending === 0);
    const now = this.#deps.clock.monotonic();
    return idle.map(([name, { accountId, figures, usedAt }]) => {
      const rank = (figures.connections > 0 ? Number.MAX_VALUE / 2 : 0) + usedAt;
      return { name, accountId, rank, restsMs: now - usedAt };
    });
  }

  /** Processes with running statements of one account only. */
  busy(): readonly BusyChild[] {
    return [...this.#entries].flatMap(([name, { child, accountId, calls }]) => {
      const [first, ...others] = calls;
      const isBusy = child.isUsable && first !== undefined;
      const mayEnd = isBusy && [first, ...others].every(({ isStatement }) => isStatement);
      return mayEnd ? { name, accountId, since: first.since } : [];
    });
  }

  async endBusy(name: string, why: string): Promise<void> {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    const [first] = entry.calls;
    const seconds = Math.round((this.#deps.clock.monotonic() - (first?.since ?? 0)) / 1000);
    const { child } = entry;
    child.kill(new ChildGone('displaced', `The statement was ended after ${seconds} s: ${why}`));
    await child.ended;
    this.#forget(name, child);
  }

  endIdle(name: string): Promise<void> {
    return this.#endWhere(name, () => true);
  }

  #endUnused(): void {
    const { clock, idleMs } = this.#deps;
    const since = clock.monotonic() - idleMs;
    for (const [name, { child, usedAt }] of this.#entries) {
      if (usedAt > since || child.pending > 0) continue;
      void this.#endWhere(name, (entry) => entry.usedAt <= since);
    }
  }

  #tellKeepFree(): void {
    const bytes = this.#deps.keepFreeBytes();
    if (bytes === this.#keepFreeBytes) return;
    this.#keepFreeBytes = bytes;
    for (const { child } of this.#entries.values())
      if (child.isUsable) child.call({ kind: 'keepFree', bytes }).catch(() => {});
  }

  /** Ends a child if it is still idle: another call may have come while this waited for the lock. */
  #endWhere(name: string, isRight: (entry: Entry) => boolean): Promise<void> {
    return this.#locks.run(name, async () => {
      const entry = this.#entries.get(name);
      if (entry !== undefined && entry.child.pending === 0 && isRight(entry)) await this.#end(name, 'kept');
    });
  }

  async #end(name: string, how: 'kept' | 'killed'): Promise<void> {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    const { child } = entry;
    if (how === 'killed') child.kill(new ChildGone('ended', 'the sessions of the database were terminated'));
    else await child.end(END_MS);
    await child.ended;
    this.#forget(name, child);
    await this.#deps.ended(entry.database);
  }

  #forget(name: string, child: TenantChild): void {
    const entry = this.#entries.get(name);
    if (entry?.child !== child) return;
    this.#entries.delete(name);
    const { figures, leave } = entry;
    leave();
    this.#before.set(name, sum(this.#before.get(name) ?? NOTHING, { ...figures, connections: 0 }));
  }
}

/** Adds counters; takes gauges from the second. */
function sum(before: Figures, now: Figures): Figures {
  return {
    connections: now.connections,
    statements: before.statements + now.statements,
    rowsReturned: before.rowsReturned + now.rowsReturned,
    rowsWritten: before.rowsWritten + now.rowsWritten,
    sizeBytes: now.sizeBytes,
  };
}

/** Validates figures from an untrusted process. */
function readFigures(counters: Readonly<Record<string, unknown>>): Figures {
  const read = (name: keyof Figures) => {
    const value = counters[name];
    return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0;
  };
  return {
    connections: read('connections'),
    statements: read('statements'),
    rowsReturned: read('rowsReturned'),
    rowsWritten: read('rowsWritten'),
    sizeBytes: read('sizeBytes'),
  };
}

function unavailable(detail: string, cause?: unknown): AppError {
  return new AppError('engine_unavailable', detail, { hint: 'Retry in a moment', cause });
}
