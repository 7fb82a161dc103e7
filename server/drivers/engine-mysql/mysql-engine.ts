/**
 * MySQL as users know it: MariaDB, a real server of ours for all databases of a cloud, or a server of the
 * operator's. Tenants are kept apart by its own rights, and what a tenant may lift himself is enforced from
 * outside.
 */
import { join } from 'node:path';
import type { Readable } from 'node:stream';
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
import { SLOTS } from '../managed-server/client-programs.ts';
import { hostAndPort, type ManagedEngineOptions } from '../managed-server/managed-engine.ts';
import { TenantLogs } from '../managed-server/tenant-logs.ts';
import { type Admin, databases } from './admin-store.ts';
import * as contents from './contents-store.ts';
import { DUMP_FORMATS, MysqlDumps } from './dumps.ts';
import { externalSite } from './external-site.ts';
import { entriesOf } from './log-lines.ts';
import type { MysqlLinks } from './mysql-links.ts';
import * as store from './mysql-store.ts';
import { ownSite } from './own-site.ts';
import * as sessions from './sessions-store.ts';
import type { MysqlSite } from './site.ts';
import { TenantQueries } from './tenant-queries.ts';
import { Watchdog } from './watchdog.ts';

/** Of the server and its clients. */
export const MYSQL_USERS = 1 + SLOTS;

export class MysqlEngine implements Engine {
  readonly name = 'mysql';
  readonly dumpFormats = DUMP_FORMATS;
  readonly #site: MysqlSite;
  readonly #links: MysqlLinks;
  readonly #dumps: MysqlDumps;
  readonly #queries: TenantQueries;
  readonly #watchdog: Watchdog;
  readonly #logs: TenantLogs;
  readonly #locks = new KeyedMutex();
  /** Of each database, as Cloudlet calls it, by its name here. */
  readonly #ids = new Map<string, string>();

  constructor(options: ManagedEngineOptions) {
    const { external = null, folder, isDiskLow, warn } = options;
    const begin = () => this.#begin();
    const site = external === null ? ownSite(options, begin) : externalSite(options, external, begin);
    const { links, server } = site;
    const isGuest = external !== null;
    this.#site = site;
    this.#links = links;
    this.#dumps = new MysqlDumps({ site, usersOf, folder: join(folder, 'loads'), warn });
    this.#queries = new TenantQueries({ links, isGuest, usersOf });
    this.#logs = new TenantLogs({ folder: join(folder, 'logs'), source: server.log, entriesOf });
    this.#watchdog = new Watchdog({
      links,
      server,
      isGuest,
      isDiskLow,
      warn,
      logs: this.#logs,
      makeAgain: (name) => this.#makeAgain(name),
    });
  }

  /** Of the server, for tests; null: it does not run. */
  get pid(): number | null {
    return this.#site.server.pid;
  }

  readiness(): Promise<Readiness> {
    return this.#site.readiness();
  }

  prepare(): Promise<void> {
    return this.#site.server.up();
  }

  /** The server that there was, without anybody waiting for it. */
  wake(): void {
    if (this.#site.server.isMade) void this.#site.server.up().catch(() => {});
  }

  async provision(database: EngineDatabase, password: string): Promise<void> {
    const users = usersOf(database.database);
    await this.#asAdmin(async (admin) => {
      await store.makeDatabase(admin, database.database);
      await store.makeUsers(admin, users, {
        user: password,
        writer: this.#links.passwordOf(users.writer),
        reader: this.#links.passwordOf(users.reader),
      });
    });
    await this.restrict(database, 'full');
  }

  async rotate({ database }: EngineDatabase, password: string): Promise<void> {
    const { user } = usersOf(database);
    await this.#asAdmin(async (admin) => {
      await store.setPassword(admin, user, password);
      await sessions.endSessions(admin, [user]);
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
        await sessions.endSessions(admin, [users.user, users.writer]);
    });
  }

  async endpoint({ databaseId, database, username }: EngineDatabase): Promise<Endpoint> {
    this.#ids.set(database, databaseId);
    const endpoint = this.#site.endpoint();
    const end = `@${hostAndPort(endpoint)}/${database}`;
    return { ...endpoint, uri: (password) => `mysql://${username}:${password}${end}` };
  }

  async measure({ databaseId, database, sizeLimitBytes }: EngineDatabase): Promise<Measured> {
    this.#ids.set(database, databaseId);
    const { user, writer, reader } = usersOf(database);
    return this.#asAdmin(async (admin) => {
      const bytes = await this.#site.fileBytes(admin, database);
      // Files never shrink of themselves: what was deleted is room for what comes.
      const free = bytes > sizeLimitBytes ? await contents.freeBytes(admin, database) : 0;
      const use = await sessions.useOf(admin, [user, writer, reader]);
      return { sizeBytes: Math.max(0, bytes - free), ...use };
    });
  }

  takeActive(): readonly string[] {
    return this.#watchdog.takeActive().flatMap((name) => this.#ids.get(name) ?? []);
  }

  async query(database: EngineDatabase, query: Query): Promise<QueryResult> {
    await this.#site.server.up();
    return this.#queries.run(database, query);
  }

  async tables(database: EngineDatabase, signal: AbortSignal): Promise<readonly Table[]> {
    await this.#site.server.up();
    return this.#queries.tables(database, signal);
  }

  async dump({ database }: EngineDatabase, _format: string, signal: AbortSignal): Promise<Dump> {
    await this.#site.server.up();
    return this.#dumps.dump(database, signal);
  }

  async load(database: EngineDatabase, dump: Readable, signal: AbortSignal): Promise<void> {
    await this.#site.server.up();
    await this.#dumps.load(database, dump, signal);
  }

  async fork(from: EngineDatabase, to: EngineDatabase, signal: AbortSignal): Promise<void> {
    await this.#site.server.up();
    const { stream } = await this.#dumps.dump(from.database, signal);
    await this.#dumps.load(to, stream, signal);
  }

  async drop(name: string): Promise<void> {
    const users = usersOf(name);
    this.#ids.delete(name);
    // There never was a server, so nothing of it.
    if (!this.#site.server.isMade) return;
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
        if ((await store.droppedByTenants(admin)).includes(name)) await store.makeDatabase(admin, name);
      }),
    );
  }

  async log({ database }: EngineDatabase, maxBytes: number): Promise<string> {
    return this.#logs.read(database, maxBytes);
  }

  async list(): Promise<readonly string[]> {
    if (!this.#site.server.isMade) return [];
    const all = await this.#asAdmin(databases);
    return all.filter((name) => name.startsWith('d_'));
  }

  async close(): Promise<void> {
    await this.#watchdog.close();
    this.#links.close();
    await this.#site.server.close();
  }

  async #asAdmin<T>(work: (admin: Admin) => Promise<T>): Promise<T> {
    await this.#site.server.up();
    return this.#links.asAdmin(work);
  }

  /** With a server that answers. */
  async #begin(): Promise<void> {
    this.#logs.begin();
    const password = this.#links.passwordOf(store.DUMPER);
    await this.#links.asAdmin((admin) => store.setUpServer(admin, password));
    await this.#dumps.sweep();
  }
}

function usersOf(database: string): store.Users {
  const rest = database.replace(/^d_/, '');
  return { database, user: `u_${rest}`, writer: `w_${rest}`, reader: `r_${rest}` };
}
