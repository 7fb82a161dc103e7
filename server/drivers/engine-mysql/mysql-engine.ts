/**
 * MySQL as users know it: MariaDB, a real server of ours for all databases of a cloud, or a server of the
 * operator's. Tenants are kept apart by its own rights, and what a tenant may lift himself is enforced from
 * outside.
 */
import { join } from 'node:path';
import type { Access, Endpoint, EngineDatabase, Measured } from '../../databases/engine.ts';
import { KeyedMutex } from '../../platform/keyed-mutex.ts';
import type { ServerUse } from '../managed-server/account-server.ts';
import { SLOTS } from '../managed-server/client-programs.ts';
import { ManagedServer } from '../managed-server/managed-server.ts';
import { serverBytes } from '../managed-server/server-bytes.ts';
import { hostAndPort, type ManagedEngineOptions, ServerEngine } from '../managed-server/server-engine.ts';
import type { MovableEngine } from '../managed-server/shared-server.ts';
import { TenantLogs } from '../managed-server/tenant-logs.ts';
import { type Admin, databases } from './admin-store.ts';
import * as contents from './contents-store.ts';
import { DUMP_FORMATS, MysqlDumps } from './dumps.ts';
import { externalSite } from './external-site.ts';
import type { MysqlLinks } from './mysql-links.ts';
import * as store from './mysql-store.ts';
import { ownSite } from './own-site.ts';
import * as sessions from './sessions-store.ts';
import type { MysqlSite } from './site.ts';
import { TenantQueries } from './tenant-queries.ts';
import { Watchdog } from './watchdog.ts';

/** System users: one that makes the data of new servers, the others for clients. */
export const MYSQL_USERS = 1 + SLOTS;
/**
 * What a new server takes, its log included, which never grows, and with room for what it notes of itself.
 */
const NEW_BYTES = 96 * 2 ** 20;

export class MysqlEngine extends ServerEngine<Admin> implements MovableEngine {
  readonly name = 'mysql';
  readonly #site: MysqlSite;
  readonly #links: MysqlLinks;
  readonly #dumps: MysqlDumps;
  readonly #watchdog: Watchdog | null;
  readonly #notes: TenantLogs;
  readonly #locks = new KeyedMutex();

  constructor(options: ManagedEngineOptions) {
    const { external = null, folder, isDiskLow, warn } = options;
    const begin = () => this.#begin();
    const site = external === null ? ownSite(options, begin) : externalSite(options, external, begin);
    const { links, server } = site;
    const isGuest = external !== null;
    const dumps = new MysqlDumps({
      site,
      usersOf,
      folder: join(folder, 'loads'),
      alarms: options.alarms,
      warn,
    });
    const queries = new TenantQueries({ links, isGuest, usersOf, isDiskLow });
    const { log } = server;
    const notes = new TenantLogs({ folder: join(folder, 'logs') });
    // It does not tell itself of what took long.
    const read = (name: string, maxBytes: number) =>
      `${log?.tail(maxBytes / 2) ?? ''}${notes.read(name, maxBytes / 2)}`;
    const logs = log === null ? notes : { read };
    const makeAgain = (name: string) => this.#makeAgain(name);
    // What an account does to a server of its own it does to itself.
    const watchdog = isGuest ? new Watchdog({ links, server, warn, logs: notes, makeAgain }) : null;
    super(DUMP_FORMATS, { site, queries, dumps, watchdog, logs, databases });
    this.#site = site;
    this.#links = links;
    this.#dumps = dumps;
    this.#notes = notes;
    this.#watchdog = watchdog;
  }

  async provision(database: EngineDatabase, password: string): Promise<void> {
    const users = usersOf(database.database);
    await this.asAdmin(async (admin) => {
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
    await this.asAdmin(async (admin) => {
      await store.setPassword(admin, user, password);
      await sessions.endSessions(admin, [user]);
    });
  }

  async restrict(of: EngineDatabase, access: Access): Promise<void> {
    const { database, limits } = of;
    const users = usersOf(database);
    this.note(of);
    await this.asAdmin(async (admin) => {
      const before = await store.accessOf(admin, users);
      await store.limitUsers(admin, users, limits);
      await store.setAccess(admin, users, access);
      // A session keeps the rights it began with. One that opens in the moment of the unlocking has all.
      const hasAll = before === 'none' && access === 'full';
      if (access === 'none' || (before !== access && !hasAll))
        await sessions.endSessions(admin, [users.user, users.writer]);
    });
  }

  async endpoint(of: EngineDatabase): Promise<Endpoint> {
    const { database, username } = of;
    this.note(of);
    const endpoint = this.#site.endpoint();
    const end = `@${hostAndPort(endpoint)}/${database}`;
    return { ...endpoint, uri: (password) => `mysql://${username}:${password}${end}` };
  }

  async measure(of: EngineDatabase): Promise<Measured> {
    const { database, sizeLimitBytes } = of;
    this.note(of);
    const { user, writer, reader } = usersOf(database);
    return this.asAdmin(async (admin) => {
      const bytes = await this.#site.fileBytes(admin, database);
      // Files never shrink of themselves: what was deleted is room for what comes.
      const free = bytes > sizeLimitBytes ? await contents.freeBytes(admin, database) : 0;
      const use = await sessions.useOf(admin, [user, writer, reader]);
      return { sizeBytes: Math.max(0, bytes - free), ...use };
    });
  }

  async drop(name: string): Promise<void> {
    const users = usersOf(name);
    this.forget(name);
    // There never was a server, so nothing of it.
    if (!this.#site.server.isMade) return;
    this.#dumps.forget(name);
    await this.#locks.run(name, () =>
      this.asAdmin(async (admin) => {
        await store.dropUsers(admin, users);
        await store.dropDatabase(admin, name);
      }),
    );
    this.#notes.remove(name);
  }

  /** Its process, and what starts and stops it. Throws where that is the operator's. */
  get server(): ManagedServer {
    const { server } = this.#site;
    if (server instanceof ManagedServer) return server;
    throw new Error('not a server of ours');
  }

  /** What its server does now. */
  async use(): Promise<ServerUse> {
    const { use, slow, dropped } = await this.#links.asAdmin(async (admin) => ({
      use: await sessions.serverUse(admin),
      slow: await sessions.slowStatements(admin),
      dropped: await store.droppedByTenants(admin),
    }));
    this.#notes.noteSlow(slow);
    for (const name of dropped) await this.#makeAgain(name);
    return use;
  }

  hold(isHeld: boolean): Promise<void> {
    return this.#links.asAdmin((admin) => store.holdWrites(admin, isHeld));
  }

  counts({ database }: EngineDatabase): Promise<ReadonlyMap<string, string>> {
    return this.#links.asAdmin((admin) => contents.rowCounts(admin, database));
  }

  verifierOf({ database }: EngineDatabase): Promise<string> {
    return this.#links.asAdmin((admin) => store.verifierOf(admin, usersOf(database).user));
  }

  async setVerifier({ database }: EngineDatabase, verifier: string): Promise<void> {
    await this.#links.asAdmin((admin) => store.setVerifier(admin, usersOf(database).user, verifier));
  }

  /** Without what a new one has. */
  async serverBytes(): Promise<number> {
    return Math.max(0, (await serverBytes(this.server.places.home, null)) - NEW_BYTES);
  }

  /** Empty, for its tenant dropped it; nothing when we do. */
  async #makeAgain(name: string): Promise<void> {
    await this.#locks.run(name, () =>
      this.asAdmin(async (admin) => {
        if ((await store.droppedByTenants(admin)).includes(name)) await store.makeDatabase(admin, name);
      }),
    );
  }

  async close(): Promise<void> {
    await this.#watchdog?.close();
    this.#links.close();
    await this.#site.server.close();
  }

  /** With a server that answers. */
  async #begin(): Promise<void> {
    const password = this.#links.passwordOf(store.DUMPER);
    await this.#links.asAdmin((admin) => store.setUpServer(admin, password));
    await this.#dumps.sweep();
  }
}

function usersOf(database: string): store.Users {
  const rest = database.replace(/^d_/, '');
  return { database, user: `u_${rest}`, writer: `w_${rest}`, reader: `r_${rest}` };
}
