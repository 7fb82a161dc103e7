/**
 * An engine with one server per account, created with the account's first database and removed with its last.
 * An account that overloads its server affects no other.
 */
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type {
  Access,
  Dump,
  DumpHow,
  Endpoint,
  Engine,
  EngineDatabase,
  EngineName,
  Insertion,
  Measured,
  Query,
  QueryResult,
  Readiness,
  RowChanges,
  Scan,
  Table,
  TestDatabase,
  Trouble,
  UserConnection,
} from '../../../databases/engine.ts';
import type { LoadHow } from '../../../databases/left-out.ts';
import { type Beat, onBeat } from '../../../platform/background/beat.ts';
import { AppError, hostDiskFull, isAppError } from '../../../platform/errors.ts';
import type { JsonText } from '../../../platform/json/json.ts';
import { DiskGuard } from '../processes/disk-guard.ts';
import { ServerDirectory } from '../processes/server-directory.ts';
import { DataTemplate, SHARED_TEMPLATES } from '../programs/data-template.ts';
import { type ScratchServers, scratchServers } from '../scratch-servers.ts';
import { beingMoved, type Moving, SharedServer } from '../shared-server.ts';
import type { Upgrade } from '../sql-engine.ts';
import { clientPrograms, serverMissing } from '../sql-server.ts';
import type { AccountKind, AccountOptions } from './account-kind.ts';
import { AccountLogs } from './account-logs.ts';
import { type AccountServer, asTrouble } from './account-server.ts';
import { AccountSlots } from './account-slots.ts';

const POLL_MS = 1000;
/** A port that was in use is retried after this many polls. */
const POLLS_TO_OPEN = 5;

export class AccountServers implements Engine {
  readonly name: EngineName;
  readonly startsServers = true;
  readonly dumpFormats: readonly string[];
  readonly #kind: AccountKind;
  readonly #options: AccountOptions;
  /** The server that earlier versions had for all accounts. */
  readonly #shared: SharedServer;
  readonly #servers: ServerDirectory;
  readonly #polling: Beat;
  readonly #disk: DiskGuard;
  #moving: Promise<void> | null = null;
  /** Whether users are admitted: only while Cloudlet serves. */
  #isAwake = false;
  /** Number of polls. */
  #polls = 0;
  readonly serverLogs: AccountLogs | undefined;
  readonly #scratch: ScratchServers;
  /** Why no server could be started at the last check; null: servers can start. */
  #unready: string | null = null;
  #isClosed = false;

  constructor(kind: AccountKind, options: AccountOptions) {
    const { name, title, dumpFormats, data } = kind;
    const { folder, processes, uidBase, servers } = options;
    this.name = name;
    this.dumpFormats = dumpFormats;
    this.#kind = kind;
    this.#options = options;
    const clients = clientPrograms(kind, options);
    const shared = join(options.templates ?? SHARED_TEMPLATES, name);
    const own = join(folder, 'template');
    const template = new DataTemplate({ folder: own, shared, processes, uid: uidBase, data });
    this.#shared = new SharedServer({ ...options, title, make: () => kind.make(options) });
    this.#scratch = scratchServers(kind, options, { template, clients });
    const beforeSleep = async (accountId: number) => this.serverLogs?.beforeSleep(accountId);
    this.#servers = new ServerDirectory({ kind, options, template, clients, beforeSleep });
    const { byAccount } = this.#servers;
    this.serverLogs = kind.recover && new AccountLogs({ servers: byAccount, scratch: this.#scratch });
    servers.slots.join(new AccountSlots(byAccount, servers.clock));
    this.#polling = onBeat(Math.min(POLL_MS, servers.idleMs), () => this.#poll());
    const all = () => this.#servers.all();
    this.#disk = new DiskGuard({ folder, level: servers.diskLevel, servers: all });
  }

  /** Listens for users of all servers, and adopts running ones. Never rejects. */
  async wake(): Promise<void> {
    this.#isAwake = true;
    void this.#scratch.sweep().catch((error) => this.#options.warn(`a restore was not cleaned up: ${error}`));
    await this.#openAll();
  }

  /**
   * Moves databases from the server that all accounts shared in earlier versions; those that were moved are
   * skipped. Rejects with the first that could not be moved, after all others were; call it again then.
   */
  moveIn(all: readonly Moving[]): Promise<void> {
    this.#moving ??= this.#moveIn(all).finally(() => {
      this.#moving = null;
    });
    return this.#moving;
  }

  async #moveIn(all: readonly Moving[]): Promise<void> {
    const shared = this.#shared;
    if (!shared.isThere) return shared.sweep();
    const isMoved = (name: string) => this.#servers.with(name)?.isMoving(name) === false;
    const left = all.filter(({ database }) => !isMoved(database.database));
    this.#servers.giveShared(shared.port, all);
    await shared.moveOut(left, async (moving, fill) => {
      const { database, accountId } = moving.database;
      const server = await this.#servers.made(accountId);
      this.#servers.note(database, accountId);
      await server.moveIn(moving, fill);
    });
  }

  /** A connection waits at that listener. False: not a listener of this engine. */
  wanted(listener: string): boolean {
    const [name, account] = listener.split(':');
    const server = name === this.name ? this.#servers.byAccount.get(Number(account)) : undefined;
    void server?.wanted();
    return server !== undefined;
  }

  /** Unavailable while an earlier version's shared server, which still has databases, does not start. */
  async readiness(): Promise<Readiness> {
    const found = await this.#kind.readiness(null, this.#shared.isThere ? this.#shared.problem : null);
    this.#unready = found.available ? null : notHere(this.#kind.title, found);
    return found;
  }

  trouble({ database, accountId }: EngineDatabase): Trouble | null {
    if (this.#isLeft(database)) return asTrouble('engine_unavailable', this.#shared.trouble(database));
    const server = this.#servers.with(database) ?? this.#servers.byAccount.get(accountId);
    // A running server needs no programs until it is started again.
    const unready = server?.isUp === true ? null : this.#unready;
    return server?.trouble ?? asTrouble('engine_unavailable', unready);
  }

  /** Whether a database is still on the server of an earlier version. */
  #isLeft(name: string): boolean {
    return this.#servers.with(name)?.isMoving(name) !== false && this.#shared.isThere;
  }

  async prepare(): Promise<void> {}

  async reserve(database: EngineDatabase): Promise<void> {
    (await this.#servers.made(database.accountId)).add(database);
    this.#servers.note(database.database, database.accountId);
  }

  async provision(database: EngineDatabase, password: string): Promise<void> {
    if (this.#options.isDiskLow()) throw hostDiskFull();
    this.#assertMayGrow(database);
    await this.reserve(database);
    const isOpen = this.#options.servers.everywhere?.();
    await this.#of(database)
      .provision(database, (engine) => engine.provision(database, password))
      .catch(asUnavailable(this.#kind.title));
    await isOpen;
  }

  async rotate(database: EngineDatabase, password: string): Promise<void> {
    await this.#of(database).using((engine) => engine.rotate(database, password));
  }

  async restrict(database: EngineDatabase, access: Access): Promise<void> {
    await this.#of(database).restrict(database, access);
  }

  async isLimited(database: EngineDatabase): Promise<boolean> {
    return this.#servers.with(database.database)?.isLimited(database) ?? true;
  }

  async endpoint(database: EngineDatabase): Promise<Endpoint> {
    return this.#of(database).engine.endpoint(database);
  }

  async connect(database: EngineDatabase): Promise<UserConnection> {
    return { stream: await this.#of(database).connect(), isUncounted: true };
  }

  async measure(database: EngineDatabase): Promise<Measured> {
    const server = this.#of(database);
    const { database: name } = database;
    if (!server.isUp) {
      const sizeBytes = server.sizeOf(name);
      return { sizeBytes, connections: 0, statements: null, rowsReturned: null, rowsWritten: null };
    }
    const measured = await server.engine.measure(database);
    server.noteOwn(name, measured.sizeBytes);
    return { ...measured, sizeBytes: server.sizeOf(name) };
  }

  takeActive(): readonly string[] {
    return this.#servers.all().flatMap((server) => server.takeActive());
  }

  async query(database: EngineDatabase, query: Query): Promise<QueryResult> {
    const server = this.#of(database);
    const run = server.using((engine) => engine.query(database, query), { signal: query.signal });
    return query.readOnly ? run : run.catch(server.heldBack.refusing(this.#kind.refused));
  }

  async change(database: EngineDatabase, changes: RowChanges): Promise<void> {
    const server = this.#of(database);
    await server
      .using((engine) => engine.change(database, changes), { signal: changes.signal })
      .catch(server.heldBack.refusing(this.#kind.refused));
  }

  async scan(database: EngineDatabase, scan: Scan): Promise<void> {
    const { signal } = scan;
    await this.#of(database).using((engine) => engine.scan(database, scan), { signal });
  }

  async insert(database: EngineDatabase, insertion: Insertion): Promise<void> {
    const server = this.#of(database);
    this.#assertMayGrow(database);
    await server
      .using((engine) => engine.insert(database, insertion), { signal: insertion.signal })
      .catch(server.heldBack.refusing(this.#kind.refused));
  }

  async tables(database: EngineDatabase, signal: AbortSignal): Promise<JsonText<readonly Table[]>> {
    return this.#of(database).using((engine) => engine.tables(database, signal), { signal });
  }

  async dump(database: EngineDatabase, format: string, how: DumpHow): Promise<Dump> {
    const server = this.#of(database);
    const { promise: isRead, resolve } = Promise.withResolvers<void>();
    const { promise: dump, resolve: began, reject } = Promise.withResolvers<Dump>();
    // The stream keeps the server running until its last byte.
    void server
      .using(async (engine) => {
        const made = await engine.dump(database, format, { hasTests: server.isOldest(database), ...how });
        made.stream.once('close', resolve);
        began(made);
        await isRead;
      })
      .catch(reject);
    return dump;
  }

  async load(database: EngineDatabase, dump: Readable, how: LoadHow): Promise<void> {
    const server = this.#of(database);
    this.#assertMayGrow(database);
    await server
      .using((engine) => engine.load(database, dump, how))
      .catch((error) => {
        // A held server has ended them.
        this.#assertMayGrow(database);
        throw error;
      });
  }

  async fork(from: EngineDatabase, to: EngineDatabase, signal: AbortSignal): Promise<void> {
    // The databases stay on the same server, which serves all its users.
    const how = { signal, hasTests: false };
    const { stream } = await this.dump(from, this.dumpFormats[0] ?? '', how);
    await this.load(to, stream, { signal }).finally(() => stream.destroy());
  }

  async testDatabases(database: EngineDatabase): Promise<readonly TestDatabase[]> {
    return this.#of(database).using((engine) => engine.testDatabases());
  }

  async log(database: EngineDatabase, maxBytes: number): Promise<string> {
    return (await this.#of(database).engine.log?.(database, maxBytes)) ?? '';
  }

  /** Restarts the server, ending all sessions of the account. */
  async restart(database: EngineDatabase): Promise<void> {
    await this.#of(database).restart();
  }

  async drop(name: string): Promise<void> {
    const server = this.#servers.with(name);
    if (server === undefined) return;
    await server.drop(name);
    await this.#servers.forget(name, server);
  }

  /** Databases with data. Throws `engine_unavailable` while some may be on the shared server. */
  async list(): Promise<readonly string[]> {
    if (this.#shared.isThere) throw beingMoved(null);
    const servers = this.#servers.all().filter(({ accountId }) => this.#servers.hasData(accountId));
    return servers.flatMap(({ names }) => names);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#polling.stop();
    this.#disk.close();
    const servers = this.#servers.all();
    await this.#scratch.close();
    // A stop may come right after a start.
    if (this.#isAwake) await Promise.all(servers.map((server) => server.adopt()));
    await Promise.all(servers.map((server) => server.close()));
    await this.#shared.close();
  }

  /**
   * Brings the data of each server to the newest version here, while none runs. Null: none needs it.
   * Throws at the first that cannot be upgraded.
   */
  async upgrade(): Promise<Upgrade | null> {
    let done: Upgrade | null = null;
    for (const { engine } of this.#servers.byAccount.values()) done = (await engine.upgrade()) ?? done;
    return done;
  }

  /** The account's server, for tests and metrics; undefined: none. */
  serverOf(accountId: number): AccountServer | undefined {
    return this.#servers.byAccount.get(accountId);
  }

  async #poll(): Promise<void> {
    if (this.#isClosed) return;
    const isTime = this.#polls++ % POLLS_TO_OPEN === 0;
    if (isTime && this.#isAwake) await this.#openAll();
    if (this.#isAwake) for (const server of this.#servers.byAccount.values()) server.tryAgain();
    await Promise.all(this.#servers.all().map((server) => server.poll()));
  }

  /** A server that hangs during adoption does not delay others. */
  async #openAll(): Promise<void> {
    for (const server of this.#servers.byAccount.values())
      if (!this.#isClosed && (await this.#servers.open(server))) void server.takeOver().catch(() => {});
  }

  /** Throws `host_disk_full` while its server waits for space. */
  #assertMayGrow({ accountId }: EngineDatabase): void {
    const why = this.#servers.byAccount.get(accountId)?.heldBack.why ?? null;
    if (why !== null) throw hostDiskFull();
  }

  #of({ database, accountId }: EngineDatabase): AccountServer {
    const server = this.#servers.with(database) ?? this.#servers.byAccount.get(accountId);
    if (this.#isLeft(database)) throw beingMoved(this.#shared.trouble(database));
    if (server !== undefined) return server;
    throw serverMissing(database);
  }
}

function notHere(title: string, { reason }: Readiness): string {
  return `${title} is not available on this host: ${reason ?? 'it is not running'}`;
}

/** The API's error for a server that failed during our own work, instead of the engine's message. */
function asUnavailable(title: string) {
  return (error: unknown): never => {
    if (isAppError(error)) throw error;
    throw new AppError(
      'engine_unavailable',
      `${title} ended or refused the connection before the work was done`,
      {
        hint: 'try again in a moment; the operator can find the cause in the log of the server',
        retryAfterSeconds: 5,
        cause: error,
      },
    );
  };
}
