/**
 * MySQL as users know it: MariaDB, with one of our servers for each account, or on the operator's
 * server. The server's privileges separate tenants; limits that a tenant may lift are enforced from
 * outside.
 */
import * as fs from 'node:fs/promises';
import { join } from 'node:path';
import type {
  Access,
  EngineDatabase,
  Measured,
  Query,
  QueryResult,
  TestDatabase,
} from '../../../databases/engine.ts';
import { KeyedMutex } from '../../../platform/concurrency.ts';
import type { AccountOptions } from '../../managed-server/accounts/account-kind.ts';
import { AccountServers } from '../../managed-server/accounts/account-servers.ts';
import { TenantLogs } from '../../managed-server/accounts/tenant-logs.ts';
import { TenantQueries } from '../../managed-server/accounts/tenant-queries.ts';
import type { ManagedEngineOptions } from '../../managed-server/database-server.ts';
import { serverBytes } from '../../managed-server/server-bytes.ts';
import { type ServerUse, SqlEngine } from '../../managed-server/sql-engine.ts';
import { sqlServer } from '../../managed-server/sql-server.ts';
import { MOST_TEST_DATABASES } from '../shared/test-databases.ts';
import { type Admin, databases } from './admin-store.ts';
import * as contents from './contents-store.ts';
import { DUMP_FORMATS, MysqlDumps } from './dumps/dumps.ts';
import { MYSQL } from './mysql.ts';
import type { MysqlLinks } from './mysql-links.ts';
import { DATA, databaseFolder } from './mysql-server.ts';
import * as store from './mysql-store.ts';
import * as sessions from './sessions-store.ts';
import { MysqlStatements } from './statements.ts';
import { boundTestDatabases, testDatabases } from './test-databases-store.ts';

/** Bytes of a new server with its log, which never grows, and a reserve for its own files. */
const NEW_BYTES = 96 * 2 ** 20;
const MAKES_ROUTINE = /\bCREATE\b[\s\S]*\b(?:PROCEDURE|FUNCTION|PACKAGE)\b/i;
/** ER_SERVER_SHUTDOWN. */
const NOT_NOW = 1053;

/** MariaDB with a server for each account. */
export function mysqlServers(options: AccountOptions): AccountServers {
  const make = (of: ManagedEngineOptions) => new MysqlEngine(of);
  const about = {
    dumpFormats: DUMP_FORMATS,
    data: DATA,
    refused: store.NO_GROWTH,
    deletesWhileHeld: false,
    protocol: 'mysql',
  } as const;
  return new AccountServers({ ...MYSQL, ...about, refusal, make }, options);
}

export class MysqlEngine extends SqlEngine<Admin, MysqlLinks> {
  readonly name = 'mysql';
  /** 0 means unlimited. */
  readonly leastConnections = 1;
  readonly #isGuest: boolean;
  readonly #dumps: MysqlDumps;
  readonly #logs: TenantLogs;
  readonly #locks = new KeyedMutex();

  constructor(options: ManagedEngineOptions) {
    const { external = null, folder, alarms, warn } = options;
    const isGuest = external !== null;
    const on = sqlServer(MYSQL, options, () => this.#begin());
    const { links, clients, server } = on;
    const dumps = new MysqlDumps({
      links,
      clients,
      up: () => server.up(),
      isGuest,
      fileBytes: (admin, database) => this.#fileBytes(admin, database),
      folder: join(folder, 'loads'),
      alarms,
      warn,
    });
    const statements = new MysqlStatements(links);
    const queries = new TenantQueries({ statements, links, isGuest });
    const logs = new TenantLogs({ folder: join(folder, 'logs') });
    const watched = { ...sessions, mend: (admin: Admin) => this.#makeDroppedAgain(admin) };
    super({ on, isGuest, dumpFormats: DUMP_FORMATS, queries, dumps, watched, logs, warn, databases });
    this.#isGuest = isGuest;
    this.#dumps = dumps;
    this.#logs = logs;
  }

  async provision(database: EngineDatabase, password: string): Promise<void> {
    const users = store.usersOf(database.database);
    await this.asAdmin(async (admin) => {
      await store.makeDatabase(admin, database.database);
      await store.makeUsers(admin, users, {
        user: password,
        writer: this.links.passwordOf(users.writer),
        reader: this.links.passwordOf(users.reader),
      });
    });
    await this.restrict(database, 'full');
  }

  async rotate({ database }: EngineDatabase, password: string): Promise<void> {
    const { user } = store.usersOf(database);
    await this.asAdmin(async (admin) => {
      await store.setPassword(admin, user, password);
      await sessions.endSessions(admin, [user]);
    });
  }

  async restrict(of: EngineDatabase, access: Access): Promise<void> {
    const { database, limits } = of;
    const users = store.usersOf(database);
    this.note(of);
    await this.asAdmin(async (admin) => {
      const before = await store.accessOf(admin, users);
      await store.limitUsers(admin, users, limits);
      await store.setAccess(admin, users, access);
      // A session keeps its initial rights. One that opens while the lock is lifted has all.
      const hasAll = before === 'none' && access === 'full';
      if (access === 'none' || (before !== access && !hasAll))
        await sessions.endSessions(admin, [users.user, users.writer]);
    });
  }

  async measure(of: EngineDatabase): Promise<Measured> {
    const { database, sizeLimitBytes } = of;
    this.note(of);
    const { user, writer, reader } = store.usersOf(database);
    return this.asAdmin(async (admin) => {
      const bytes = await this.#fileBytes(admin, database);
      // Files never shrink: deleted rows leave free space within them.
      const free = bytes > sizeLimitBytes ? (await this.#tableBytes(admin, database)).free : 0;
      const use = await sessions.useOf(admin, [user, writer, reader]);
      return { sizeBytes: Math.max(0, bytes - free), ...use };
    });
  }

  override async query(database: EngineDatabase, query: Query): Promise<QueryResult> {
    const result = await super.query(database, query);
    const users = store.usersOf(database.database);
    if (!query.readOnly && MAKES_ROUTINE.test(String(query.statement)))
      await this.links.asAdmin((admin) => contents.giveRoutines(admin, users));
    return result;
  }

  /** Our servers do not log slow statements: they are in the database's log. */
  override async log(of: EngineDatabase, maxBytes: number): Promise<string> {
    if (this.#isGuest) return super.log(of, maxBytes);
    const half = maxBytes / 2;
    return (await super.log(of, half)) + this.#logs.read(of.database, half);
  }

  protected async remove(name: string): Promise<void> {
    const users = store.usersOf(name);
    this.#dumps.forget(name);
    await this.#locks.run(name, () =>
      this.links.asAdmin(async (admin) => {
        await store.dropUsers(admin, users);
        await store.dropDatabase(admin, name);
      }),
    );
  }

  use(): Promise<ServerUse> {
    return this.links.asAdmin(async (admin) => {
      await boundTestDatabases(admin, MOST_TEST_DATABASES);
      const use = await sessions.serverUse(admin);
      this.#logs.noteSlow(await sessions.slowStatements(admin));
      await this.#makeDroppedAgain(admin);
      return use;
    });
  }

  async setConnections(database: string, connections: number): Promise<void> {
    const { user } = store.usersOf(database);
    await this.links.asAdmin((admin) => store.setConnections(admin, user, connections));
  }

  /** Users of the operator's server cannot create any. */
  async testDatabases(): Promise<readonly TestDatabase[]> {
    return this.#isGuest ? [] : this.links.asAdmin(testDatabases);
  }

  hold(isHeld: boolean): Promise<void> {
    return this.links.asAdmin(async (admin) => {
      await store.holdWrites(admin, isHeld);
      if (isHeld) await sessions.endLoads(admin);
    });
  }

  counts({ database }: EngineDatabase): Promise<ReadonlyMap<string, string>> {
    return this.links.asAdmin((admin) => contents.rowCounts(admin, database));
  }

  verifierOf({ database }: EngineDatabase): Promise<string> {
    return this.links.asAdmin((admin) => store.verifierOf(admin, store.usersOf(database).user));
  }

  async setVerifier({ database }: EngineDatabase, verifier: string): Promise<void> {
    await this.links.asAdmin((admin) => store.setVerifier(admin, store.usersOf(database).user, verifier));
  }

  /** Size without the bytes of an empty server. */
  async serverBytes(): Promise<number> {
    return Math.max(0, (await serverBytes(this.server.folders.home, null)) - NEW_BYTES);
  }

  /** The actual size of the files on our server, regardless of MariaDB's figures. */
  async #fileBytes(admin: Admin, database: string): Promise<number> {
    if (!this.#isGuest) return bytesIn(databaseFolder(this.server.folders, database));
    // The server has no figures for a table that was not opened yet.
    const { others } = await this.#tableBytes(admin, database);
    return others + (await contents.innodbBytes(admin, database));
  }

  async #tableBytes(admin: Admin, database: string): Promise<contents.TableBytes> {
    const tables = await contents.tablesOf(admin, database);
    // A database that is being loaded has one user.
    const user = database.startsWith('t_') ? database : store.usersOf(database).reader;
    const who = { user, database: 'information_schema' };
    return this.links.asOurs(who, (driver) => contents.bytesOf(driver, { database, tables }));
  }

  /** Recreates, empty, databases that their tenants dropped. */
  async #makeDroppedAgain(admin: Admin): Promise<void> {
    for (const name of await store.droppedByTenants(admin))
      await this.#locks.run(name, async () => {
        // Not while we are dropping it.
        if ((await store.droppedByTenants(admin)).includes(name)) await store.makeDatabase(admin, name);
      });
  }

  /** Runs with a responding server. */
  async #begin(): Promise<void> {
    const password = this.links.passwordOf(store.DUMPER);
    await this.links.asAdmin((admin) => store.setUpServer(admin, password));
    await this.#dumps.sweep();
  }
}

async function bytesIn(folder: string): Promise<number> {
  const names = await fs.readdir(folder).catch(() => []);
  const sizes = names.map((name) =>
    fs.lstat(join(folder, name)).then(
      ({ size }) => size,
      () => 0,
    ),
  );
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

/** An ERR_Packet instead of the greeting (MySQL, client/server protocol). */
export function refusal(text: string): Buffer {
  const body = Buffer.concat([Buffer.from([0xff, NOT_NOW & 0xff, NOT_NOW >> 8]), Buffer.from(text)]);
  const head = Buffer.alloc(4);
  head.writeUIntLE(body.length, 0, 3);
  return Buffer.concat([head, body]);
}
