/**
 * The database server of one account: its databases, its listener, and its life. It sleeps
 * while nobody uses it, and its listener (server-proxy/) wakes it with the next connection.
 */
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { Access, EngineDatabase, Trouble } from '../../../databases/engine.ts';
import { AppError, hostDiskFull } from '../../../platform/errors.ts';
import { dialed } from '../../dialed.ts';
import { removeTree } from '../../host-process/foreign-files.ts';
import { KeptDatabases } from '../kept-databases.ts';
import { HeldBack, type Waits } from '../processes/held-back.ts';
import { ServerLife, ServerWork } from '../processes/server-life.ts';
import { withShare } from '../server-bytes.ts';
import { ServerUsage } from '../server-usage.ts';
import type { Moving } from '../shared-server.ts';
import type { AccountEngine } from '../sql-engine.ts';
import type { AccountServerDeps, Wish } from './account-kind.ts';
import { shareConnections } from './connection-shares.ts';

/** A server with sessions idle for this long may be stopped for another one. */
const SPARE_MS = 30_000;
const LOOPBACK = '127.0.0.1';

export class AccountServer {
  readonly engine: AccountEngine;
  readonly heldBack: HeldBack;
  readonly #deps: AccountServerDeps;
  readonly #databases: KeptDatabases;
  readonly #work: ServerWork;
  readonly #usage: ServerUsage;
  readonly #life: ServerLife;
  /** Databases that the server does not have yet, by name. */
  readonly #creating = new Map<string, PromiseWithResolvers<void>>();
  /** Last measured bytes on disk. */
  bytes = 0;

  constructor(deps: AccountServerDeps) {
    this.#deps = deps;
    this.engine = deps.engine;
    this.#work = new ServerWork(deps.clock);
    this.#usage = new ServerUsage(deps.clock);
    this.#databases = new KeptDatabases(join(deps.folder, 'databases'));
    this.heldBack = new HeldBack({ ...deps, databases: this.#databases, log: deps.engine.server.log });
    this.#life = new ServerLife({
      ...deps,
      work: this.#work,
      isWanted: () => this.#isWanted,
      begin: () => this.#begin(),
      onLeft: () => this.#usage.ended(),
      lastUse: () => this.#usage.now,
    });
  }

  get accountId(): number {
    return this.#deps.accountId;
  }

  /** Names of all databases on the server. */
  get names(): readonly string[] {
    return this.#databases.all().map(({ database }) => database.database);
  }

  get isWithoutGrowth(): boolean {
    return this.heldBack.isWithoutGrowth;
  }

  get limitBytes(): number {
    return this.#databases.all().reduce((sum, { database }) => sum + database.sizeLimitBytes, 0);
  }

  get isUp(): boolean {
    return this.#life.isUp;
  }

  /** Databases whose users may be admitted. */
  get #open(): readonly string[] {
    const open = this.#databases.all().filter(({ access, isMoving }) => access !== 'none' && !isMoving);
    return open.map(({ database }) => database.database);
  }

  /** Whether connections are accepted: the server refuses users of databases that it does not have yet. */
  get #isWanted(): boolean {
    return this.#open.some((name) => !this.#creating.has(name));
  }

  /** Listens for users; returns whether it did not before. Rejects if the port is taken. */
  open(): Promise<boolean> {
    return this.#life.open();
  }

  /** Adopts a server that an earlier Cloudlet left running. */
  takeOver(): Promise<void> {
    return this.#life.takeOver();
  }

  /** Keeps the server running while `work` runs. Throws `engine_unavailable`. */
  async using<T>(work: (engine: AccountEngine) => Promise<T>, { signal, isPatient }: Wish = {}): Promise<T> {
    const isStatement = signal !== undefined;
    return this.#work.run(async () => {
      await this.#life.wake({ signal, isPatient });
      return work(this.engine);
    }, isStatement);
  }

  /** A connection like a user's, limited to this server. Throws `engine_unavailable`. */
  connect(): Promise<Socket> {
    const { addresses, port } = this.#deps.listener;
    const isEverywhere = addresses.includes(LOOPBACK) || addresses.includes('*');
    return dialed(isEverywhere ? LOOPBACK : (addresses[0] ?? LOOPBACK), port);
  }

  /** Problem for users; null: it can start, and its databases may grow. */
  get trouble(): Trouble | null {
    const isHeldBack = asTrouble('host_disk_full', this.heldBack.why);
    return asTrouble('engine_unavailable', this.#life.trouble) ?? isHeldBack;
  }

  /** Starts one that failed before, when due, whether or not anyone waits. */
  tryAgain(): void {
    if (this.#life.isToTryAgain) void this.using(async () => {}).catch(() => {});
  }

  /** Admits a waiting connection, or refuses it with the reason. Never rejects. */
  async wanted(): Promise<void> {
    const { proxy, listener, refusal } = this.#deps;
    if (!this.#isWanted) await Promise.all([...this.#creating.values()].map(({ promise }) => promise));
    if (!this.#isWanted)
      return proxy.refuse(listener.name, refusal('the databases of this account are closed'));
    try {
      await this.#life.wake();
      // The server was up, unknown to the listener.
      await this.#life.lead();
    } catch (error) {
      const text = error instanceof AppError ? error.message : 'the database server does not start';
      proxy.refuse(listener.name, refusal(text));
    }
  }

  /** Records the database before it is created. Its users wait until it is, see provision(). */
  add(database: EngineDatabase): void {
    const before = this.#databases.get(database.database);
    const [access, ownBytes] = [before?.access ?? 'full', before?.ownBytes ?? 0];
    this.#databases.keep({ database, access, isApplied: true, ownBytes });
    if (!this.#creating.has(database.database))
      this.#creating.set(database.database, Promise.withResolvers());
  }

  #created(name: string): void {
    this.#creating.get(name)?.resolve();
    this.#creating.delete(name);
  }

  /** Creates a database that was added, and admits its users. */
  async provision(
    { database }: EngineDatabase,
    work: (engine: AccountEngine) => Promise<void>,
  ): Promise<void> {
    await this.using(work, { isPatient: true }).finally(() => this.#created(database));
    await this.#life.lead();
  }

  /** Whether the database is being moved here; undefined: unknown database. */
  isMoving(name: string): boolean | undefined {
    const kept = this.#databases.get(name);
    return kept === undefined ? undefined : kept.isMoving === true;
  }

  /** Marks a database as being moved here until `fill` is done. */
  async moveIn({ database, access }: Moving, fill: (engine: AccountEngine) => Promise<void>): Promise<void> {
    const about = { database, access, isApplied: true, ownBytes: 0 };
    this.#databases.keep({ ...about, isMoving: true });
    await this.using(fill);
    this.#databases.keep(about);
    await this.#life.lead();
  }

  /** See Engine. A sleeping server is not woken: the change is applied when it wakes, before any log-in. */
  async restrict(database: EngineDatabase, access: Access): Promise<void> {
    const before = this.#databases.get(database.database);
    this.#databases.keep({ database, access, isApplied: false, ownBytes: before?.ownBytes ?? 0 });
    if (this.#open.length === 0) return this.#endSessions();
    if (!this.isUp) return;
    await this.using((engine) => this.#apply(engine, database.database));
    await this.#life.lead();
  }

  /** Whether the last limits are in force. */
  isLimited(database: EngineDatabase): boolean {
    return this.#databases.isLimited(database);
  }

  /** Whether the database is the account's oldest one here. */
  isOldest({ number }: EngineDatabase): boolean {
    return this.#databases.all().every(({ database }) => database.number >= number);
  }

  /** Size of the database at the last poll, with its share of the server's other data. */
  sizeOf(name: string): number {
    const own = this.#databases.all().map(({ ownBytes }) => ownBytes);
    return withShare(this.#databases.get(name)?.ownBytes ?? 0, { bytes: this.bytes, own });
  }

  /** Notes the bytes of the database itself. */
  noteOwn(name: string, ownBytes: number): void {
    const kept = this.#databases.get(name);
    if (kept !== undefined) this.#databases.note({ ...kept, ownBytes });
  }

  /** A sleeping server is not measured, because it does not grow. Never rejects. */
  async measureDisk(): Promise<void> {
    if (this.isUp) this.bytes = await this.engine.serverBytes(this.#databases.size).catch(() => this.bytes);
  }

  /**
   * Applies the restrictions of a nearly full disk to a running server; a sleeping one is restricted when it
   * wakes. Never rejects.
   */
  async holdBack(waits: Waits | null): Promise<void> {
    if (!this.heldBack.set(waits) || !this.isUp) return;
    await this.using(async (engine) => {
      this.#work.end(waits === null ? ended('its databases are no longer paused') : hostDiskFull());
      for (const name of this.names) await this.#apply(engine, name);
      this.heldBack.brought();
    }).catch(() => this.heldBack.missed());
  }

  /**
   * Ends a server that uses too much of the shared disk: nothing else limits what it writes for sorting,
   * undoing or waiting. Never rejects.
   */
  async endFor(why: string): Promise<void> {
    this.#deps.warn(`the server ${this.#deps.listener.name} was ended: ${why}`);
    this.#work.end(ended(why));
    await this.#life.end().catch(() => {});
  }

  /** Removes one database; the last one removes the server, whatever its state. */
  async drop(name: string): Promise<void> {
    this.#created(name);
    if (!this.#databases.has(name)) return;
    if (this.#databases.size > 1) {
      await this.using((engine) => engine.drop(name));
      return this.#databases.forget(name);
    }
    // The data is removed as files, which neither statements of the account nor a full disk can block.
    await this.#life.endForGood(async () => {
      for (const part of ['home', 'keeper']) await removeTree(join(this.#deps.folder, part));
      this.#databases.forget(name);
    });
    // A database that was added meanwhile gets a new server behind the same port.
    if (this.#databases.size > 0) await this.#life.open();
  }

  /** Ends all sessions and restarts the server. */
  restart(): Promise<void> {
    this.#work.end(ended('it was restarted'));
    return this.#life.restart();
  }

  /** Reads the server's usage for the caller. Never rejects. */
  async poll(): Promise<void> {
    if (!this.isUp) return;
    try {
      const use = await this.engine.use();
      this.#usage.note(use);
      if (use.busy > 0) this.#work.usedAt = this.#deps.clock.monotonic();
      await shareConnections({ engine: this.engine, use }, this.#databases.all(), this.#deps.connections);
    } catch {
      // The server has ended or hangs, which its own probe detects.
    }
    const isUnused = this.#deps.clock.monotonic() - this.#work.usedAt > this.#deps.idleMs;
    if (isUnused && this.#usage.now.sessions === 0) await this.#sleep('unused');
  }

  /** Databases used since the last call. */
  takeActive(): readonly string[] {
    const active = this.#usage.takeActive();
    if (active.length > 0) this.#work.usedAt = this.#deps.clock.monotonic();
    return active.flatMap((name) => this.#databases.get(name)?.database.databaseId ?? []);
  }

  /** Since when it is idle and may be stopped to make room for another server; null: busy or stopped. */
  get idleSince(): number | null {
    const { busy, sessions } = this.#usage.now;
    if (!this.isUp || this.#work.pending > 0 || busy > 0) return null;
    const hasRested = this.#deps.clock.monotonic() - this.#work.usedAt > SPARE_MS;
    return sessions === 0 || hasRested ? this.#work.usedAt : null;
  }

  /** Start of the oldest statement or transaction; null: none, or one that must finish. */
  get busySince(): number | null {
    return this.isUp && !this.#work.isHeld ? this.#usage.busySince : null;
  }

  /** Stops the server for another one, ending its statements. */
  endBusy(why: string): Promise<void> {
    return this.#life.endBusy(this.busySince, why);
  }

  /** Stops the server for another one, if still idle. */
  endIdle(): Promise<void> {
    return this.#sleep('capacity');
  }

  /** Registers a server that takeOver() has not reached yet, so that close() ends it. Never rejects. */
  adopt(): Promise<void> {
    return this.#life.adopt();
  }

  /** Shuts it down cleanly; the next Cloudlet starts it. */
  async close(): Promise<void> {
    await this.#life.close();
    this.#databases.keepAll();
  }

  /** The server has ended. */
  ended(): void {
    this.#life.ended();
  }

  #sleep(why: 'unused' | 'capacity'): Promise<void> {
    return this.#life.sleep(why, () => this.#databases.keepAll());
  }

  /** Ends all sessions by stopping the server, which its account cannot block. */
  async #endSessions(): Promise<void> {
    const { proxy, listener } = this.#deps;
    this.#work.end(ended('its databases were closed'));
    await this.#life.end();
    proxy.endConnections(listener.name);
  }

  /** Applies changes that the server missed while it slept. */
  async #begin(): Promise<void> {
    for (const { database, isApplied } of this.#databases.all())
      if (!isApplied) await this.#apply(this.engine, database.database);
  }

  async #apply(engine: AccountEngine, name: string): Promise<void> {
    const kept = this.#databases.get(name);
    if (kept === undefined) return;
    const { takesRights } = this.heldBack;
    // The next Cloudlet must restore the privileges, whenever this one ends.
    if (takesRights) this.#databases.tryKeep({ ...kept, isApplied: false });
    await engine.restrict(kept.database, this.heldBack.accessOf(kept.access));
    this.#databases.tryKeep({ ...kept, isApplied: !takesRights });
  }
}

/** The error of running statements. */
function ended(why: string): AppError {
  return new AppError('engine_unavailable', `All sessions of the database server were ended: ${why}`, {
    hint: 'Try again: the server starts with the next statement',
    retryAfterSeconds: 5,
  });
}

export function asTrouble(code: Trouble['code'], message: string | null): Trouble | null {
  return message === null ? null : { code, message };
}
