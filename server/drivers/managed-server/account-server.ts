/**
 * The database server of one account: what it holds, where its users connect, and when it runs. It sleeps
 * while nobody uses it, and its listener (server-proxy/) wakes it with the next connection.
 */
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { Access, EngineDatabase, Trouble } from '../../databases/engine.ts';
import { KeyedMutex } from '../../platform/concurrency.ts';
import { AppError } from '../../platform/errors.ts';
import { dialed } from '../dialed.ts';
import { DISPLACED_HINT } from '../engine-children/displaced.ts';
import { removeTree } from '../host-process/tree-removal.ts';
import type { AccountServerDeps, Wish } from './account-kind.ts';
import { shareConnections } from './connection-shares.ts';
import { HeldBack, type Waits } from './held-back.ts';
import { KeptDatabases } from './kept-databases.ts';
import { withShare } from './server-bytes.ts';
import { UseMarks } from './server-rounds.ts';
import { asTrouble, StartTrouble } from './server-trouble.ts';
import { ServerWork, startFailed } from './server-work.ts';
import type { Moving } from './shared-server.ts';
import type { AccountEngine, ServerUse } from './sql-engine.ts';

const LOCK = 'server';
/** After a start that failed, doubled with each further one. */
const [RETRY_MS, MOST_RETRY_MS] = [1000, 60_000];
/** A server whose sessions did nothing for so long may be stopped for another one. */
const SPARE_MS = 30_000;
const LOOPBACK = '127.0.0.1';
const NO_USE: ServerUse = { sessions: 0, busy: 0, runsMs: 0, done: new Map(), users: new Map() };

export class AccountServer {
  readonly engine: AccountEngine;
  readonly heldBack: HeldBack;
  readonly #deps: AccountServerDeps;
  readonly #databases: KeptDatabases;
  readonly #locks = new KeyedMutex();
  readonly #marks = new UseMarks();
  readonly #work: ServerWork;
  #leave: (() => void) | null = null;
  #use: ServerUse = NO_USE;
  #askedAt = 0;
  #failures = 0;
  /** Bytes of the disk when they were measured last. */
  bytes = 0;
  /** Until then no start is tried, monotonic ms. */
  #notBefore = 0;
  #isOpen = false;
  #isClosed = false;
  readonly #trouble: StartTrouble;

  constructor(deps: AccountServerDeps) {
    this.#deps = deps;
    this.engine = deps.engine;
    this.#work = new ServerWork(deps.clock);
    this.#databases = new KeptDatabases(join(deps.folder, 'databases'));
    this.#trouble = new StartTrouble(deps.folder);
    this.heldBack = new HeldBack({ ...deps, databases: this.#databases, log: deps.engine.server.log });
  }

  get accountId(): number {
    return this.#deps.accountId;
  }

  /** Names of all databases there. */
  get names(): readonly string[] {
    return this.#databases.all().map(({ database }) => database.database);
  }

  get limitBytes(): number {
    return this.#databases.all().reduce((sum, { database }) => sum + database.sizeLimitBytes, 0);
  }

  get isUp(): boolean {
    return this.engine.server.isUp;
  }

  /** Whether somebody may come in. */
  get #isWanted(): boolean {
    return this.#databases.all().some(({ access, isMoving }) => access !== 'none' && isMoving !== true);
  }

  /** Listens for its users; whether it did not before. Rejects when its port is taken. */
  async open(): Promise<boolean> {
    if (this.#isOpen) return false;
    await this.#deps.proxy.open(this.#deps.listener);
    this.#isOpen = true;
    return true;
  }

  /** Takes over a server that an earlier Cloudlet left running. */
  async takeOver(): Promise<void> {
    await this.#locks.run(LOCK, async () => {
      if (this.isUp || !(await this.engine.server.takeOver())) return;
      this.#leave = await this.#deps.takeSlot();
      await this.#began();
    });
  }

  /** Has the server up while `work` runs. Throws `engine_unavailable`. */
  async using<T>(work: (engine: AccountEngine) => Promise<T>, { signal, isPatient }: Wish = {}): Promise<T> {
    const isStatement = signal !== undefined;
    return this.#work.run(async () => {
      await this.wake({ signal, isPatient });
      return work(this.engine);
    }, isStatement);
  }

  /** A connection as its users make it: they log in to this server alone. Throws `engine_unavailable`. */
  connect(): Promise<Socket> {
    const { addresses, port } = this.#deps.listener;
    const isEverywhere = addresses.includes(LOOPBACK) || addresses.includes('*');
    return dialed(isEverywhere ? LOOPBACK : (addresses[0] ?? LOOPBACK), port);
  }

  /** Has it up and its listener lead to it. Throws `engine_unavailable`. */
  async wake({ signal, isPatient }: Wish = {}): Promise<void> {
    if (this.isUp && this.#leave !== null) return;
    await this.#locks.run(LOCK, async () => {
      if (this.isUp && this.#leave !== null) return;
      const { clock, takeSlot } = this.#deps;
      if (clock.monotonic() < this.#notBefore) throw this.engine.server.problem ?? startFailed();
      this.#leave ??= await takeSlot(signal);
      try {
        await this.engine.server.up({ isPatient });
        await this.#began();
        this.#failures = 0;
        this.#trouble.note(null);
      } catch (error) {
        this.#left();
        const { pid, problem } = this.engine.server;
        if (pid === null && problem !== null && !this.#isClosed) this.#trouble.note(problem.message);
        const wait = Math.min(RETRY_MS * 2 ** this.#failures++, MOST_RETRY_MS);
        this.#notBefore = clock.monotonic() + wait;
        throw error;
      }
    });
  }

  /** For its users; null: it starts, as far as is known, and its databases may grow. */
  get trouble(): Trouble | null {
    const held = asTrouble('host_disk_full', this.heldBack.why);
    return this.isUp ? held : (asTrouble('engine_unavailable', this.#trouble.what) ?? held);
  }

  /** Starts one that did not start before, when it is time, whether anybody waits for it or not. */
  tryAgain(): void {
    if (this.isUp || this.#trouble.what === null || this.#work.pending > 0 || !this.#isWanted) return;
    if (this.#deps.clock.monotonic() >= this.#notBefore) void this.using(async () => {}).catch(() => {});
  }

  /** Lets a waiting connection in, or refuses it with the reason. Never rejects. */
  async wanted(): Promise<void> {
    const { proxy, listener, refusal } = this.#deps;
    if (!this.#isWanted)
      return proxy.refuse(listener.name, refusal('the databases of this account are closed'));
    try {
      await this.wake();
      // It was up, and the listener did not know.
      await this.#lead();
    } catch (error) {
      const text = error instanceof AppError ? error.message : 'the database server does not start';
      proxy.refuse(listener.name, refusal(text));
    }
  }

  /** Notes the database before anything is made of it. */
  add(database: EngineDatabase): void {
    const before = this.#databases.get(database.database);
    const [access, ownBytes] = [before?.access ?? 'full', before?.ownBytes ?? 0];
    this.#databases.keep({ database, access, isApplied: true, ownBytes });
  }

  /** Whether it is being moved here; undefined: it is not known here. */
  isMoving(name: string): boolean | undefined {
    const kept = this.#databases.get(name);
    return kept === undefined ? undefined : kept.isMoving === true;
  }

  /** Notes what is being moved here until `fill` is done. */
  async moveIn({ database, access }: Moving, fill: (engine: AccountEngine) => Promise<void>): Promise<void> {
    const about = { database, access, isApplied: true, ownBytes: 0 };
    this.#databases.keep({ ...about, isMoving: true });
    await this.using(fill);
    this.#databases.keep(about);
    await this.#lead();
  }

  /**
   * See Engine. A server that sleeps is not woken for it: it is done when it wakes, before anybody logs in.
   */
  async restrict(database: EngineDatabase, access: Access): Promise<void> {
    const before = this.#databases.get(database.database);
    this.#databases.keep({ database, access, isApplied: false, ownBytes: before?.ownBytes ?? 0 });
    if (!this.#isWanted) return this.#close();
    if (!this.isUp) return;
    await this.using((engine) => this.#apply(engine, database.database));
    await this.#lead();
  }

  /** Whether its limits are those that it was given last. */
  isLimited(database: EngineDatabase): boolean {
    return this.#databases.isLimited(database);
  }

  /** Whether it is the account's oldest database here. */
  isOldest({ number }: EngineDatabase): boolean {
    return this.#databases.all().every(({ database }) => database.number >= number);
  }

  /** Bytes that the database takes, with its share of what the server does, as of the last poll. */
  sizeOf(name: string): number {
    const own = this.#databases.all().map(({ ownBytes }) => ownBytes);
    return withShare(this.#databases.get(name)?.ownBytes ?? 0, { bytes: this.bytes, own });
  }

  noteOwn(name: string, ownBytes: number): void {
    const kept = this.#databases.get(name);
    if (kept !== undefined) this.#databases.note({ ...kept, ownBytes });
  }

  async measureDisk(): Promise<void> {
    if (this.isUp) this.bytes = await this.engine.serverBytes(this.#databases.size).catch(() => this.bytes);
  }

  async holdBack(waits: Waits | null): Promise<void> {
    if (!this.heldBack.set(waits) || !this.isUp) return;
    await this.using(async (engine) => {
      for (const name of this.names) await this.#apply(engine, name);
      this.heldBack.brought();
    }).catch(() => this.heldBack.missed());
  }

  async endFor(why: string): Promise<void> {
    this.#deps.warn(`the server ${this.#deps.listener.name} was ended: ${why}`);
    await this.#end().catch(() => {});
  }

  /** Removes one database; with the last one the server goes, whatever state it is in. */
  async drop(name: string): Promise<void> {
    if (!this.#databases.has(name)) return;
    if (this.#databases.size > 1) {
      await this.using((engine) => engine.drop(name));
      return this.#databases.forget(name);
    }
    // Its data are removed as files: no statement of its account can block that, nor a full disk.
    await this.engine.server.stop('at_once');
    await this.#locks.run(LOCK, async () => {
      // A connection may have woken it meanwhile.
      await this.engine.server.stop('at_once');
      this.#left();
      await this.#deps.proxy.shut(this.#deps.listener.name);
      this.#isOpen = false;
      for (const part of ['home', 'keeper']) await removeTree(join(this.#deps.folder, part));
      this.#databases.forget(name);
    });
  }

  async restart(): Promise<void> {
    await this.engine.server.stop();
    await this.#locks.run(LOCK, async () => this.isUp || this.#left());
    this.#notBefore = 0;
    if (this.#isWanted) await this.wake();
  }

  /** Asks it what it does; what it takes is to be noted by the caller. Never rejects. */
  async poll(): Promise<void> {
    if (!this.isUp) return;
    try {
      this.#use = await this.engine.use();
      this.#askedAt = this.#deps.clock.monotonic();
      this.#marks.note(this.#use.done);
      if (this.#use.busy > 0) this.#work.usedAt = this.#deps.clock.monotonic();
      const now = { engine: this.engine, use: this.#use };
      await shareConnections(now, this.#databases.all(), this.#deps.connections);
    } catch {
      // It ended, or it hangs: its own probe tells.
    }
    const isUnused = this.#deps.clock.monotonic() - this.#work.usedAt > this.#deps.idleMs;
    if (isUnused && this.#use.sessions === 0) await this.#sleep('unused');
  }

  /** Databases that were used since the last call. */
  takeActive(): readonly string[] {
    const active = this.#marks.take();
    if (active.length > 0) this.#work.usedAt = this.#deps.clock.monotonic();
    return active.flatMap((name) => this.#databases.get(name)?.database.databaseId ?? []);
  }

  /** The time since which it may end for another server; null: it has something to do. */
  get idleSince(): number | null {
    if (!this.isUp || this.#work.pending > 0 || this.#use.busy > 0) return null;
    const hasRested = this.#deps.clock.monotonic() - this.#work.usedAt > SPARE_MS;
    return this.#use.sessions === 0 || hasRested ? this.#work.usedAt : null;
  }

  /** When its oldest statement or transaction began; null: it has none, or does what must be finished. */
  get busySince(): number | null {
    return this.isUp && !this.#work.isHeld && this.#use.busy > 0 ? this.#askedAt - this.#use.runsMs : null;
  }

  /** Stops the server for another one, with all its statements. */
  async endBusy(why: string): Promise<void> {
    const { proxy, listener } = this.#deps;
    this.engine.server.log.add(`Cloudlet: ${this.#work.displace(this.busySince, why)}. ${DISPLACED_HINT}`);
    await proxy.lead(listener.name, null);
    await this.engine.server.stop();
    await this.#locks.run(LOCK, async () => this.isUp || this.#left());
  }

  endIdle(): Promise<void> {
    return this.#sleep('capacity');
  }

  /** Knows a server that takeOver() has not reached yet, so that close() ends it. Never rejects. */
  async adopt(): Promise<void> {
    await this.#locks.run(LOCK, async () => this.isUp || this.engine.server.takeOver()).catch(() => {});
  }

  /** Ends it properly; it is back with the next Cloudlet. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#deps.proxy.shut(this.#deps.listener.name);
    this.#isOpen = false;
    await this.engine.close();
    this.#databases.keepAll();
  }

  /** The server ended by itself. */
  ended(): void {
    void this.#locks.run(LOCK, async () => {
      if (this.isUp) return;
      await this.#deps.proxy.lead(this.#deps.listener.name, null);
      this.#left();
    });
  }

  async #sleep(why: 'unused' | 'capacity'): Promise<void> {
    const { proxy, listener } = this.#deps;
    await this.#locks.run(LOCK, async () => {
      if (!this.isUp || this.#work.pending > 0) return;
      await proxy.lead(listener.name, null);
      const use = await this.engine.use().catch(() => this.#use);
      // Log-ins under way are no sessions yet.
      const { open } = await proxy.figures(listener.name);
      const isQuiet = why === 'unused' ? use.sessions === 0 && open === 0 : use.busy === 0;
      // Somebody came just before the listener led nowhere.
      if (!isQuiet || this.#work.pending > 0) return this.#lead();
      await this.#deps.beforeSleep();
      await this.engine.server.stop();
      this.#databases.keepAll();
      this.#left();
    });
  }

  /** Ends all sessions by ending the server: nothing of its account can block that. */
  async #close(): Promise<void> {
    const { proxy, listener } = this.#deps;
    await this.#end();
    proxy.endConnections(listener.name);
  }

  async #end(): Promise<void> {
    const { proxy, listener } = this.#deps;
    await this.engine.server.stop('at_once');
    await this.#locks.run(LOCK, async () => {
      // A connection woke it meanwhile.
      if (this.isUp) return this.#lead();
      await proxy.lead(listener.name, null);
      this.#left();
    });
  }

  /** With a server that is up: brings it in line, then lets its users in. */
  async #began(): Promise<void> {
    for (const { database, isApplied } of this.#databases.all())
      if (!isApplied) await this.#apply(this.engine, database.database);
    await this.#lead();
  }

  async #apply(engine: AccountEngine, name: string): Promise<void> {
    const kept = this.#databases.get(name);
    if (kept === undefined) return;
    await engine.restrict(kept.database, this.heldBack.accessOf(kept.access));
    this.#databases.tryKeep({ ...kept, isApplied: !this.heldBack.isGrower });
  }

  async #lead(): Promise<void> {
    const { proxy, listener } = this.#deps;
    const isReached = this.isUp && this.#isWanted;
    if (this.#isOpen) await proxy.lead(listener.name, isReached ? this.engine.server.port : null);
  }

  /** It does not run. */
  #left(): void {
    this.#leave?.();
    this.#leave = null;
    this.#use = NO_USE;
  }
}
