/**
 * An engine that gives each account a server of its own, made with its first database and gone with its last.
 * An account that overloads its server harms nobody else.
 */
import * as fs from 'node:fs';
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
  Measured,
  Query,
  QueryResult,
  Readiness,
  Table,
  TestDatabase,
  Trouble,
  UserConnection,
} from '../../databases/engine.ts';
import { SEE_LOG } from '../../platform/alarms.ts';
import { type AppError, hostDiskFull } from '../../platform/errors.ts';
import { newPort } from '../server-port.ts';
import { AccountAlarms } from './account-alarms.ts';
import type { AccountKind, AccountOptions } from './account-kind.ts';
import { AccountLogs } from './account-logs.ts';
import { AccountPlaces } from './account-places.ts';
import { AccountPorts } from './account-ports.ts';
import { AccountServer } from './account-server.ts';
import type { ClientPrograms } from './client-programs.ts';
import { DataTemplate } from './data-template.ts';
import { DiskGuard } from './disk-guard.ts';
import { type ScratchServers, scratchServers } from './scratch-servers.ts';
import { asTrouble } from './server-trouble.ts';
import { asUnavailable } from './server-work.ts';
import { beingMoved, type Moving, SharedServer } from './shared-server.ts';
import type { Upgrade } from './sql-engine.ts';
import { clientPrograms, serverMissing } from './sql-server.ts';

const ACCOUNTS = 'accounts';
const LOOPBACK = '127.0.0.1';
const POLL_MS = 1000;
/** A port that another program had is tried again with every so many of them. */
const POLLS_TO_OPEN = 5;

export class AccountServers implements Engine {
  readonly name: EngineName;
  readonly startsServers = true;
  readonly dumpFormats: readonly string[];
  readonly #kind: AccountKind;
  readonly #options: AccountOptions;
  readonly #alarms: AccountAlarms;
  readonly #clients: ClientPrograms;
  readonly #template: DataTemplate;
  /** The server that earlier versions had for all accounts. */
  readonly #shared: SharedServer;
  readonly #servers = new Map<number, AccountServer>();
  /** By database. */
  readonly #accounts = new Map<string, number>();
  readonly #polling: NodeJS.Timeout;
  readonly #disk: DiskGuard;
  #moving: Promise<void> | null = null;
  /** Whether its users are let in: only by a Cloudlet that serves. */
  #isAwake = false;
  #polls = 0;
  readonly #ports: AccountPorts;
  readonly serverLogs: AccountLogs | undefined;
  readonly #scratch: ScratchServers;
  #making: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(kind: AccountKind, options: AccountOptions) {
    const { name, title, dumpFormats, data } = kind;
    const { folder, processes, uidBase, firstPort, warn, servers } = options;
    this.name = name;
    this.dumpFormats = dumpFormats;
    this.#kind = kind;
    this.#options = options;
    this.#alarms = new AccountAlarms(options.alarms);
    this.#clients = clientPrograms(kind, options);
    this.#template = new DataTemplate({ folder: join(folder, 'template'), processes, uid: uidBase, data });
    this.#shared = new SharedServer({ ...options, title, make: () => kind.make(options) });
    this.#scratch = scratchServers(kind, options, { template: this.#template, clients: this.#clients });
    this.serverLogs = kind.recover && new AccountLogs({ servers: this.#servers, scratch: this.#scratch });
    servers.slots.join(new AccountPlaces(this.#servers, servers.clock));
    this.#ports = new AccountPorts(join(folder, ACCOUNTS), firstPort, warn);
    for (const [accountId, port] of this.#ports.mend()) {
      const { detail, fix } = newPort('its databases', port);
      this.#alarms.of(accountId).raise(`${name}_port_changed`, detail, fix);
    }
    for (const [accountId, port] of this.#ports.all()) {
      const server = this.#make(accountId, port);
      for (const database of server.names) this.#accounts.set(database, accountId);
    }
    this.#polling = setInterval(() => void this.#poll(), Math.min(POLL_MS, servers.idleMs)).unref();
    const all = () => [...this.#servers.values()];
    this.#disk = new DiskGuard({ folder, level: servers.diskLevel, servers: all });
  }

  /** Listens for the users of all servers there are, and takes over those that run. Never rejects. */
  async wake(): Promise<void> {
    this.#isAwake = true;
    void this.#scratch.sweep().catch((error) => this.#options.warn(`a restore was not cleaned up: ${error}`));
    await this.#openAll();
  }

  /**
   * Moves databases from the server that all accounts shared in earlier versions; those that are moved are
   * left alone. Rejects with the first that could not be moved, once all others are; to be called again
   * then.
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
    const isMoved = (name: string) => this.#serverOf(name)?.isMoving(name) === false;
    const left = all.filter(({ database }) => !isMoved(database.database));
    this.#ports.giveShared(shared.port, all);
    await shared.moveOut(left, async (moving, fill) => {
      const { database, accountId } = moving.database;
      const server = await this.#made(accountId);
      this.#accounts.set(database, accountId);
      await server.moveIn(moving, fill);
    });
  }

  /** A connection waits at that listener. False: it is not one of ours. */
  wanted(listener: string): boolean {
    const [name, account] = listener.split(':');
    const server = name === this.name ? this.#servers.get(Number(account)) : undefined;
    void server?.wanted();
    return server !== undefined;
  }

  /** Not available while the server of an earlier version, which still has databases, does not start. */
  readiness(): Promise<Readiness> {
    return this.#kind.readiness(null, this.#shared.isThere ? this.#shared.problem : null);
  }

  trouble({ database, accountId }: EngineDatabase): Trouble | null {
    if (this.#isLeft(database)) return asTrouble('engine_unavailable', this.#shared.trouble(database));
    return (this.#serverOf(database) ?? this.#servers.get(accountId))?.trouble ?? null;
  }

  /** Whether a database is still on the server of an earlier version. */
  #isLeft(name: string): boolean {
    return this.#serverOf(name)?.isMoving(name) !== false && this.#shared.isThere;
  }

  async prepare(): Promise<void> {}

  async reserve(database: EngineDatabase): Promise<void> {
    (await this.#made(database.accountId)).add(database);
    this.#accounts.set(database.database, database.accountId);
  }

  async provision(database: EngineDatabase, password: string): Promise<void> {
    if (this.#options.isDiskLow()) throw hostDiskFull();
    await this.reserve(database);
    await this.#of(database)
      .using((engine) => engine.provision(database, password), { isPatient: true })
      .catch(asUnavailable(this.#kind.title));
  }

  async rotate(database: EngineDatabase, password: string): Promise<void> {
    await this.#of(database).using((engine) => engine.rotate(database, password));
  }

  async restrict(database: EngineDatabase, access: Access): Promise<void> {
    await this.#of(database).restrict(database, access);
  }

  async isLimited(database: EngineDatabase): Promise<boolean> {
    return this.#serverOf(database.database)?.isLimited(database) ?? true;
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
    return [...this.#servers.values()].flatMap((server) => server.takeActive());
  }

  async query(database: EngineDatabase, query: Query): Promise<QueryResult> {
    const server = this.#of(database);
    const run = server.using((engine) => engine.query(database, query), { signal: query.signal });
    return query.readOnly ? run : run.catch(server.heldBack.refusing(this.#kind.refused));
  }

  async tables(database: EngineDatabase, signal: AbortSignal): Promise<readonly Table[]> {
    return this.#of(database).using((engine) => engine.tables(database, signal), { signal });
  }

  async dump(database: EngineDatabase, format: string, how: DumpHow): Promise<Dump> {
    const server = this.#of(database);
    const { promise: isRead, resolve } = Promise.withResolvers<void>();
    const { promise: dump, resolve: began, reject } = Promise.withResolvers<Dump>();
    // It has the server up until its last byte.
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

  async load(database: EngineDatabase, dump: Readable, signal: AbortSignal): Promise<void> {
    await this.#of(database).using((engine) => engine.load(database, dump, signal));
  }

  async fork(from: EngineDatabase, to: EngineDatabase, signal: AbortSignal): Promise<void> {
    // They stay on the same server, which has them for all of its users.
    const how = { signal, hasTests: false };
    const { stream } = await this.dump(from, this.dumpFormats[0] ?? '', how);
    await this.load(to, stream, signal).finally(() => stream.destroy());
  }

  async testDatabases(database: EngineDatabase): Promise<readonly TestDatabase[]> {
    return this.#of(database).using((engine) => engine.testDatabases());
  }

  async log(database: EngineDatabase, maxBytes: number): Promise<string> {
    return (await this.#of(database).engine.log?.(database, maxBytes)) ?? '';
  }

  /** Ends its server with all sessions of the account, and starts it again. */
  async restart(database: EngineDatabase): Promise<void> {
    await this.#of(database).restart();
  }

  async drop(name: string): Promise<void> {
    const server = this.#serverOf(name);
    if (server === undefined) return;
    await server.drop(name);
    this.#accounts.delete(name);
    if (server.names.length > 0) return;
    this.#servers.delete(server.accountId);
    await server.close();
    fs.rmSync(this.#folderOf(server.accountId), { recursive: true, force: true });
  }

  /** Databases whose data are there. Throws `engine_unavailable` while some may be on the shared server. */
  async list(): Promise<readonly string[]> {
    if (this.#shared.isThere) throw beingMoved(null);
    const servers = [...this.#servers.values()].filter(({ accountId }) => this.#hasData(accountId));
    return servers.flatMap(({ names }) => names);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#polling);
    this.#disk.close();
    const servers = [...this.#servers.values()];
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
    for (const { engine } of this.#servers.values()) done = (await engine.upgrade()) ?? done;
    return done;
  }

  /** The server of that account, for tests and figures; undefined: it has none. */
  serverOf(accountId: number): AccountServer | undefined {
    return this.#servers.get(accountId);
  }

  async #poll(): Promise<void> {
    if (this.#isClosed) return;
    const isTime = this.#polls++ % POLLS_TO_OPEN === 0;
    if (isTime && this.#isAwake) await this.#openAll();
    if (this.#isAwake) for (const server of this.#servers.values()) server.tryAgain();
    await Promise.all([...this.#servers.values()].map((server) => server.poll()));
  }

  /** A server that hangs while it is taken over delays no other. */
  async #openAll(): Promise<void> {
    for (const server of this.#servers.values())
      if (!this.#isClosed && (await this.#open(server))) void server.takeOver().catch(() => {});
  }

  /** Whether it listens since now. */
  async #open(server: AccountServer): Promise<boolean> {
    const alarms = this.#alarms.of(server.accountId);
    const code = `${this.name}_port_taken`;
    try {
      const isNew = await server.open();
      alarms.clear(code);
      return isNew;
    } catch (error) {
      const { message, hint = SEE_LOG } = error as AppError;
      alarms.raise(code, message, hint);
      return false;
    }
  }

  /** One after the other: each must see the port of the one before. */
  async #made(accountId: number): Promise<AccountServer> {
    const making = this.#making.then(async () => {
      const there = this.#servers.get(accountId);
      if (there !== undefined) {
        await there.open();
        return there;
      }
      const server = this.#make(accountId, await this.#ports.choose(accountId));
      await server.open();
      return server;
    });
    this.#making = making.catch(() => {});
    return making;
  }

  #make(accountId: number, port: number): AccountServer {
    const { warn, uidOf, servers, tls = null, keepsLogs: keepsLog = false } = this.#options;
    const { proxy, slots, idleMs, clock, connections } = servers;
    const addresses = tls?.listen ?? [LOOPBACK];
    const folder = this.#folderOf(accountId);
    const [template, clients] = [this.#template, this.#clients];
    const onEnd = () => server.ended();
    const beforeSleep = async () => this.serverLogs?.beforeSleep(accountId);
    const uid = uidOf(accountId);
    const account = { accountId, port, uid, connections, template, keepsLog, clients, onEnd };
    const alarms = this.#alarms.of(accountId);
    const engine = this.#kind.make({ ...this.#options, folder, alarms, account });
    const server = new AccountServer({
      accountId,
      folder,
      engine,
      proxy,
      listener: { name: `${this.name}:${accountId}`, addresses, port, protocol: this.#kind.name },
      takeSlot: (signal) => slots.take(accountId, signal),
      refusal: (text) => this.#kind.refusal(text),
      idleMs,
      connections,
      clock,
      beforeSleep,
      warn,
    });
    this.#servers.set(accountId, server);
    return server;
  }

  #of({ database, accountId }: EngineDatabase): AccountServer {
    const server = this.#serverOf(database) ?? this.#servers.get(accountId);
    if (this.#isLeft(database)) throw beingMoved(this.#shared.trouble(database));
    if (server !== undefined) return server;
    throw serverMissing(database);
  }

  #serverOf(name: string): AccountServer | undefined {
    return this.#servers.get(this.#accounts.get(name) ?? -1);
  }

  /** Whether there is anything of an account's databases. */
  #hasData(accountId: number): boolean {
    return fs.existsSync(join(this.#folderOf(accountId), 'home', 'data'));
  }

  #folderOf(accountId: number): string {
    return join(this.#options.folder, ACCOUNTS, String(accountId));
  }
}
