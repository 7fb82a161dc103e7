/**
 * An engine that gives each account a server of its own, made with its first database and gone with its last.
 * What an account does to its server it does to itself.
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
} from '../../databases/engine.ts';
import { SEE_LOG } from '../../platform/alarms.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import type { ChildPlaces, IdleChild, PlacesUser } from '../engine-children/child-places.ts';
import { newPort } from '../server-port.ts';
import type { ServerProxy } from '../server-proxy/server-proxy.ts';
import type { AccountAlarms } from './account-alarms.ts';
import { AccountPorts } from './account-ports.ts';
import { AccountServer } from './account-server.ts';
import { DiskGuard } from './disk-guard.ts';
import type { MovableEngine, Moving, SharedServer } from './shared-server.ts';

/** What tells the servers of one engine from those of another. */
export interface AccountServersKind<E extends MovableEngine> {
  readonly name: EngineName & ('postgresql' | 'mysql');
  readonly dumpFormats: readonly string[];
  /** Users' ports: the first free one from here on for each account. */
  readonly firstPort: number;
  /** The engine over the server of one account; nothing is started. */
  make(account: AccountPlace): E;
  readiness(): Promise<Readiness>;
  readonly alarms: AccountAlarms;
  /** Whether another database would find no room on the disk. Throws `host_disk_full`. */
  assertRoom(): void;
  /** What ends the log-in of a user who cannot come in now. */
  refusal(text: string): Buffer;
  /** What earlier versions had in their place. */
  readonly shared: SharedServer<E>;
}

/** Where the server of an account is. */
export interface AccountPlace {
  readonly accountId: number;
  /** Ours, for all that is kept of it. */
  readonly folder: string;
  /** Where its users connect. */
  readonly port: number;
  /** Called when it ended by itself. */
  readonly onEnd: () => void;
}

export interface AccountServersDeps {
  /** Ours, for all servers of this engine. */
  readonly folder: string;
  readonly doors: ServerProxy;
  /** Where users connect. */
  readonly addresses: readonly string[];
  readonly places: ChildPlaces;
  readonly idleMs: number;
  /** Less of the host's disk is free than must stay so. */
  readonly isDiskLow: () => boolean;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly warn: (text: string) => void;
}

const ACCOUNTS = 'accounts';
const LOOK_MS = 1000;
/** A port that another program had is tried again with every so many of them. */
const LOOKS_TO_OPEN = 5;

export class AccountServers<E extends MovableEngine> implements Engine, PlacesUser {
  readonly name: EngineName;
  readonly dumpFormats: readonly string[];
  readonly #kind: AccountServersKind<E>;
  readonly #deps: AccountServersDeps;
  readonly #servers = new Map<number, AccountServer<E>>();
  /** By database. */
  readonly #accounts = new Map<string, number>();
  readonly #looking: NodeJS.Timeout;
  readonly #disk: DiskGuard;
  #moving: Promise<void> | null = null;
  /** Whether its users are let in: only by a Cloudlet that serves. */
  #isAwake = false;
  #looks = 0;
  readonly #ports: AccountPorts;
  #making: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(kind: AccountServersKind<E>, deps: AccountServersDeps) {
    this.name = kind.name;
    this.dumpFormats = kind.dumpFormats;
    this.#kind = kind;
    this.#deps = deps;
    deps.places.join(this);
    this.#ports = new AccountPorts(join(deps.folder, ACCOUNTS), kind.firstPort, deps.warn);
    for (const [accountId, port] of this.#ports.mend()) {
      const { detail, fix } = newPort('its databases', port);
      kind.alarms.of(accountId).raise(`${kind.name}_port_changed`, detail, fix);
    }
    for (const [accountId, port] of this.#ports.all()) {
      const server = this.#make(accountId, port);
      for (const name of server.names) this.#accounts.set(name, accountId);
    }
    const look = setInterval(() => void this.#look(), Math.min(LOOK_MS, deps.idleMs));
    this.#looking = look.unref();
    const { folder, isDiskLow } = deps;
    const up = () => [...this.#servers.values()].filter(({ isUp }) => isUp);
    this.#disk = new DiskGuard({ folder, isDiskLow, up });
  }

  /** Listens for the users of all servers there are, and takes over those that run. Never rejects. */
  async wake(): Promise<void> {
    this.#isAwake = true;
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
    const { shared } = this.#kind;
    if (!shared.isThere) return shared.sweep();
    const isMoved = (name: string) => this.#serverOf(name)?.isMoving(name) === false;
    const left = all.filter(({ database }) => !isMoved(database.database));
    this.#ports.giveShared(shared.port, all);
    const failures: unknown[] = [];
    for (const moving of left) {
      const { database, accountId } = moving.database;
      try {
        const server = await this.#made(accountId);
        this.#accounts.set(database, accountId);
        await server.moveIn(moving, (engine) => shared.move(moving, engine));
      } catch (error) {
        failures.push(error);
        this.#deps.warn(`the database ${database} could not be moved to a server of its account's: ${error}`);
      }
    }
    shared.tell(failures.length);
    if (failures.length > 0) throw failures[0];
    await shared.retire();
  }

  /** A connection waits at that door. False: it is not one of ours. */
  wanted(door: string): boolean {
    const [name, account] = door.split(':');
    const server = name === this.name ? this.#servers.get(Number(account)) : undefined;
    void server?.wanted();
    return server !== undefined;
  }

  readiness(): Promise<Readiness> {
    return this.#kind.readiness();
  }

  /** Nothing runs before it is wanted. */
  async prepare(): Promise<void> {}

  async provision(database: EngineDatabase, password: string): Promise<void> {
    this.#kind.assertRoom();
    const server = await this.#made(database.accountId);
    server.add(database);
    this.#accounts.set(database.database, database.accountId);
    await server.using((engine) => engine.provision(database, password));
  }

  async rotate(database: EngineDatabase, password: string): Promise<void> {
    await this.#of(database).using((engine) => engine.rotate(database, password));
  }

  async restrict(database: EngineDatabase, access: Access): Promise<void> {
    await this.#of(database).restrict(database, access);
  }

  async endpoint(database: EngineDatabase): Promise<Endpoint> {
    return this.#of(database).engine.endpoint(database);
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
    return this.#of(database).using((engine) => engine.query(database, query));
  }

  async tables(database: EngineDatabase, signal: AbortSignal): Promise<readonly Table[]> {
    return this.#of(database).using((engine) => engine.tables(database, signal));
  }

  async dump(database: EngineDatabase, format: string, how: DumpHow): Promise<Dump> {
    const server = this.#of(database);
    const { promise: isRead, resolve } = Promise.withResolvers<void>();
    const { promise: dump, resolve: began, reject } = Promise.withResolvers<Dump>();
    // It has the server up until its last byte.
    void server
      .using(async (engine) => {
        const made = await engine.dump(database, format, how);
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
    const { stream } = await this.dump(from, this.dumpFormats[0] ?? '', { signal });
    await this.load(to, stream, signal).finally(() => stream.destroy());
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

  /** Those whose data are there. Throws `engine_unavailable` while others may be on a server that is left. */
  async list(): Promise<readonly string[]> {
    if (this.#kind.shared.isThere) throw beingMoved();
    return [...this.#servers.values()].flatMap((server) => (server.hasData ? server.names : []));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#looking);
    this.#disk.close();
    const servers = [...this.#servers.values()];
    // A stop may come right after a start.
    if (this.#isAwake) await Promise.all(servers.map((server) => server.adopt()));
    await Promise.all(servers.map((server) => server.close()));
    await this.#kind.shared.close();
  }

  idle(): readonly IdleChild[] {
    return [...this.#servers.values()].flatMap(({ accountId, idleSince }) =>
      idleSince === null ? [] : { name: String(accountId), accountId, rank: idleSince },
    );
  }

  async endIdle(name: string): Promise<void> {
    await this.#servers.get(Number(name))?.endIdle();
  }

  /** Works on all servers there are, one after the other: each is stopped, or as it was left. */
  async each(work: (engine: E) => Promise<void>): Promise<void> {
    for (const { engine } of this.#servers.values()) await work(engine);
  }

  /** The server of that account, for tests and figures; undefined: it has none. */
  serverOf(accountId: number): AccountServer<E> | undefined {
    return this.#servers.get(accountId);
  }

  async #look(): Promise<void> {
    if (this.#isClosed) return;
    const isTime = this.#looks++ % LOOKS_TO_OPEN === 0;
    if (isTime && this.#isAwake) await this.#openAll();
    await Promise.all([...this.#servers.values()].map((server) => server.look()));
  }

  /** One that hangs while it is taken over holds up no other. */
  async #openAll(): Promise<void> {
    for (const server of this.#servers.values())
      if (!this.#isClosed && (await this.#open(server))) void server.takeOver().catch(() => {});
  }

  /** Whether it listens since now. */
  async #open(server: AccountServer<E>): Promise<boolean> {
    const alarms = this.#kind.alarms.of(server.accountId);
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
  async #made(accountId: number): Promise<AccountServer<E>> {
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

  #make(accountId: number, port: number): AccountServer<E> {
    const { doors, addresses, places, idleMs, clock, warn } = this.#deps;
    const folder = this.#folderOf(accountId);
    const engine = this.#kind.make({ accountId, folder, port, onEnd: () => server.ended() });
    const server = new AccountServer<E>({
      accountId,
      folder,
      engine,
      doors,
      door: { name: `${this.name}:${accountId}`, addresses, port, protocol: this.#kind.name },
      takePlace: () => places.take(accountId),
      refusal: (text) => this.#kind.refusal(text),
      idleMs,
      clock,
      warn,
    });
    this.#servers.set(accountId, server);
    return server;
  }

  #of({ database, accountId }: EngineDatabase): AccountServer<E> {
    const server = this.#serverOf(database) ?? this.#servers.get(accountId);
    const isLeft = server?.isMoving(database) !== false && this.#kind.shared.isThere;
    if (isLeft) throw beingMoved();
    if (server !== undefined) return server;
    throw new AppError('engine_unavailable', `The server of the database ${database} is gone`, {
      hint: 'put its folder back, below databases/ of the data directory; a disk may not be mounted',
    });
  }

  #serverOf(name: string): AccountServer<E> | undefined {
    return this.#servers.get(this.#accounts.get(name) ?? -1);
  }

  #folderOf(accountId: number): string {
    return join(this.#deps.folder, ACCOUNTS, String(accountId));
  }
}

function beingMoved(): AppError {
  return new AppError('engine_unavailable', "The database is being moved to a server of its account's own", {
    hint: 'try again in a few minutes; the operator finds in the log when it cannot be moved',
    retryAfterSeconds: 5,
  });
}
