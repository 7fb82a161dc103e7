/**
 * MySQL as users know it: MariaDB, a real server of ours for all databases of a cloud. Tenants are kept apart
 * by MariaDB's own rights, and what a tenant may lift himself is enforced from outside.
 */
import * as fs from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { Connection } from 'mysql2/promise';
import type {
  Access,
  Dump,
  Endpoint,
  Engine,
  EngineDatabase,
  Measured,
  Query,
  QueryResult,
  Readiness,
  Table,
} from '../../databases/engine.ts';
import { KeyedMutex } from '../../platform/keyed-mutex.ts';
import { ClientPrograms, SLOTS } from '../managed-server/client-programs.ts';
import {
  endpointOf,
  hostAndPort,
  type ManagedEngineOptions,
  programsOrThrow,
  readinessOf,
} from '../managed-server/managed-engine.ts';
import { ManagedServer } from '../managed-server/managed-server.ts';
import { readServerSecret } from '../managed-server/server-secret.ts';
import type { ServerTls } from '../managed-server/server-tls.ts';
import { TenantLogs } from '../managed-server/tenant-logs.ts';
import { type ClientWork, clientCommand } from './client-commands.ts';
import { droppedByTenants } from './dropped-store.ts';
import { DUMP_FORMATS, MysqlDumps } from './dumps.ts';
import { entriesOf } from './log-lines.ts';
import { MysqlLinks } from './mysql-links.ts';
import { findPrograms, type MysqlPrograms } from './mysql-programs.ts';
import { databaseFolder, dataSeries, MysqlServer, socketFolder } from './mysql-server.ts';
import * as store from './mysql-store.ts';
import { nativeHash } from './native-hash.ts';
import { TenantQueries } from './tenant-queries.ts';
import { Watchdog } from './watchdog.ts';

/** Of the server and its clients. */
export const MYSQL_USERS = 1 + SLOTS;

export class MysqlEngine implements Engine {
  readonly name = 'mysql';
  readonly dumpFormats = DUMP_FORMATS;
  readonly #server: ManagedServer;
  readonly #links: MysqlLinks;
  readonly #dumps: MysqlDumps;
  readonly #queries: TenantQueries;
  readonly #watchdog: Watchdog;
  readonly #logs: TenantLogs;
  readonly #locks = new KeyedMutex();
  /** Of each database, as Cloudlet calls it, by its name here. */
  readonly #ids = new Map<string, string>();
  readonly #tls: ServerTls | null;
  #secret: Buffer | null = null;

  constructor(options: ManagedEngineOptions) {
    const { folder, processes, uidBase, alarms, isDiskLow, notice, tls = null, firstPort } = options;
    this.#tls = tls;
    const programs = () => this.#programs();
    const isUp = () => this.#server.isUp;
    const place = () => {
      this.#secret ??= readServerSecret(this.#server.places);
      return { folder: socketFolder(this.#server.places), secret: this.#secret };
    };
    const links = new MysqlLinks(place, isUp);
    const passwordOf = (role: string) => links.passwordOf(role);
    const greet = () => this.#greet();
    const how = { processes, uid: uidBase, firstPort, tls };
    const kind = new MysqlServer({ ...how, programs, passwordOf, greet });
    const atServer = join(folder, 'server');
    this.#server = new ManagedServer({ kind, processes, uid: uidBase, folder: atServer, alarms, notice });
    const uids = uidBase === null ? null : uidBase + 1;
    const clients = new ClientPrograms({
      processes,
      uids,
      folder: join(folder, 'clients'),
      name: this.name,
      socket: () => place().folder,
      command: async (work: ClientWork) => clientCommand(await programs(), work),
    });
    const sizeOf = (database: string) => this.#fileBytes(database);
    this.#links = links;
    this.#dumps = new MysqlDumps({
      links,
      clients,
      usersOf,
      sizeOf,
      folder: join(folder, 'loads'),
      up: () => this.#server.up(),
      notice,
    });
    this.#queries = new TenantQueries({ links, usersOf });
    this.#logs = new TenantLogs({ folder: join(folder, 'logs'), source: this.#server.log, entriesOf });
    this.#watchdog = new Watchdog({
      links,
      isUp,
      isDiskLow,
      notice,
      logs: this.#logs,
      pid: () => this.#server.pid,
      makeAgain: (name) => this.#makeAgain(name),
    });
  }

  /** Of the server, for tests; null: it does not run. */
  get pid(): number | null {
    return this.#server.pid;
  }

  async readiness(): Promise<Readiness> {
    const found = await this.#found();
    // As the server itself says it: no MySQL has this number.
    const named = 'version' in found ? { version: `${found.version}-MariaDB` } : found;
    return readinessOf(named, this.#server.problem);
  }

  prepare(): Promise<void> {
    return this.#server.up();
  }

  /** The server that there was, without anybody waiting for it. */
  wake(): void {
    if (this.#server.isMade) void this.#server.up().catch(() => {});
  }

  async provision(database: EngineDatabase, password: string): Promise<void> {
    const users = usersOf(database.database);
    const ownHash = (user: string) => nativeHash(this.#links.passwordOf(user));
    await this.#asAdmin(async (admin) => {
      await store.makeDatabase(admin, database.database);
      await store.makeUsers(admin, users, {
        user: nativeHash(password),
        writer: ownHash(users.writer),
        reader: ownHash(users.reader),
      });
    });
    await this.restrict(database, 'full');
  }

  async rotate({ database }: EngineDatabase, password: string): Promise<void> {
    const { user } = usersOf(database);
    await this.#asAdmin(async (admin) => {
      await store.setPassword(admin, user, nativeHash(password));
      await store.endSessions(admin, [user]);
    });
  }

  async restrict({ database, databaseId, limits }: EngineDatabase, access: Access): Promise<void> {
    const users = usersOf(database);
    this.#ids.set(database, databaseId);
    await this.#asAdmin(async (admin) => {
      const before = await store.accessOf(admin, users);
      await store.limitUsers(admin, users, limits);
      await store.setAccess(admin, users, access);
      // A session keeps the rights it began with. One that opens in the moment of the unlocking has all.
      const hasAll = before === 'none' && access === 'full';
      if (access === 'none' || (before !== access && !hasAll))
        await store.endSessions(admin, [users.user, users.writer]);
    });
  }

  async endpoint({ databaseId, database, username }: EngineDatabase): Promise<Endpoint> {
    this.#ids.set(database, databaseId);
    const endpoint = endpointOf(this.#server.port, this.#tls);
    const end = `@${hostAndPort(endpoint)}/${database}`;
    return { ...endpoint, uri: (password) => `mysql://${username}:${password}${end}` };
  }

  async measure({ databaseId, database, sizeLimitBytes }: EngineDatabase): Promise<Measured> {
    this.#ids.set(database, databaseId);
    const { user, writer, reader } = usersOf(database);
    const bytes = await this.#fileBytes(database);
    return this.#asAdmin(async (admin) => {
      // Files never shrink of themselves: what was deleted is room for what comes.
      const free = bytes > sizeLimitBytes ? await store.freeBytes(admin, database) : 0;
      const use = await store.useOf(admin, [user, writer, reader]);
      return { sizeBytes: Math.max(0, bytes - free), ...use };
    });
  }

  takeActive(): readonly string[] {
    return this.#watchdog.takeActive().flatMap((name) => this.#ids.get(name) ?? []);
  }

  async query(database: EngineDatabase, query: Query): Promise<QueryResult> {
    await this.#server.up();
    return this.#queries.run(database, query);
  }

  async tables(database: EngineDatabase, signal: AbortSignal): Promise<readonly Table[]> {
    await this.#server.up();
    return this.#queries.tables(database, signal);
  }

  async dump({ database }: EngineDatabase, _format: string, signal: AbortSignal): Promise<Dump> {
    await this.#server.up();
    return this.#dumps.dump(database, signal);
  }

  async load(database: EngineDatabase, dump: Readable, signal: AbortSignal): Promise<void> {
    await this.#server.up();
    await this.#dumps.load(database, dump, signal);
  }

  async fork(from: EngineDatabase, to: EngineDatabase, signal: AbortSignal): Promise<void> {
    await this.#server.up();
    const { stream } = await this.#dumps.dump(from.database, signal);
    await this.#dumps.load(to, stream, signal);
  }

  async drop(name: string): Promise<void> {
    const users = usersOf(name);
    this.#ids.delete(name);
    // There never was a server, so nothing of it.
    if (!this.#server.isMade) return;
    this.#dumps.forget(name);
    await this.#locks.run(name, () =>
      this.#asAdmin(async (admin) => {
        await store.dropUsers(admin, users);
        await store.dropDatabase(admin, name);
      }),
    );
    this.#logs.remove(name);
  }

  /** Empty, for its tenant dropped it; nothing when we do. */
  async #makeAgain(name: string): Promise<void> {
    await this.#locks.run(name, () =>
      this.#asAdmin(async (admin) => {
        if ((await droppedByTenants(admin)).includes(name)) await store.makeDatabase(admin, name);
      }),
    );
  }

  async log({ database }: EngineDatabase, maxBytes: number): Promise<string> {
    return this.#logs.read(database, maxBytes);
  }

  async list(): Promise<readonly string[]> {
    if (!this.#server.isMade) return [];
    const all = await this.#asAdmin(store.databases);
    return all.filter((name) => name.startsWith('d_'));
  }

  async close(): Promise<void> {
    await this.#watchdog.close();
    this.#links.close();
    await this.#server.close();
  }

  async #asAdmin<T>(work: (admin: Connection) => Promise<T>): Promise<T> {
    await this.#server.up();
    return this.#links.asAdmin(work);
  }

  async #greet(): Promise<void> {
    this.#logs.begin();
    const hash = nativeHash(this.#links.passwordOf(store.DUMPER));
    await this.#links.asAdmin((admin) => store.setUpServer(admin, hash));
    await this.#dumps.sweep();
  }

  /** Of the files themselves, whatever MariaDB's own figures say; 0: the tenant dropped it. */
  async #fileBytes(database: string): Promise<number> {
    const folder = databaseFolder(this.#server.places, database);
    const names = await fs.readdir(folder).catch(() => []);
    const sizes = names.map((name) =>
      fs.lstat(join(folder, name)).then(
        ({ size }) => size,
        () => 0,
      ),
    );
    return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
  }

  #found() {
    return findPrograms(dataSeries(this.#server.places));
  }

  async #programs(): Promise<MysqlPrograms> {
    return programsOrThrow('MariaDB', await this.#found());
  }
}

function usersOf(database: string): store.Users {
  const rest = database.replace(/^d_/, '');
  return { database, user: `u_${rest}`, writer: `w_${rest}`, reader: `r_${rest}` };
}
