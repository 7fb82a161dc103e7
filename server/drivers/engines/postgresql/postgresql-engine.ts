/**
 * PostgreSQL, with one of our servers for each account, or on the operator's server. Each database belongs to
 * the administrator, and only members of the role of its name may log in; limits that a tenant may lift are
 * enforced from outside.
 */
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { ClientBase } from 'pg';
import type { Access, Endpoint, EngineDatabase, Measured, TestDatabase } from '../../../databases/engine.ts';
import type { LoadHow } from '../../../databases/left-out.ts';
import type { ServerCopy } from '../../../databases/points/server-logs.ts';
import { AppError, hostDiskFull } from '../../../platform/errors.ts';
import type { AccountOptions, RecoverHow } from '../../managed-server/accounts/account-kind.ts';
import { AccountServers } from '../../managed-server/accounts/account-servers.ts';
import { TenantLogs } from '../../managed-server/accounts/tenant-logs.ts';
import { TenantQueries } from '../../managed-server/accounts/tenant-queries.ts';
import { type ManagedEngineOptions, programsOrThrow } from '../../managed-server/database-server.ts';
import { markOf } from '../../managed-server/links/server-secret.ts';
import { serverBytes } from '../../managed-server/server-bytes.ts';
import { type ServerUse, SqlEngine, type Upgrade } from '../../managed-server/sql-engine.ts';
import { type SqlServer, serverUser, sqlServer } from '../../managed-server/sql-server.ts';
import { scramVerifier } from '../../scram-keys.ts';
import { MOST_TEST_DATABASES } from '../shared/test-databases.ts';
import { DUMP_FORMATS, PostgresqlDumps } from './dumps/dumps.ts';
import type { ServerFacts } from './external-server-facts.ts';
import { type PostgresqlKind, postgresqlKind, withClients } from './postgresql.ts';
import type { PostgresqlLinks } from './postgresql-links.ts';
import { findPrograms, newestPrograms } from './postgresql-programs.ts';
import * as store from './postgresql-store.ts';
import { DATA, dataMajor, takeAnalysis, upgradeData } from './server/data-directory.ts';
import { dropSlots } from './server/log-archive-store.ts';
import { KEPT_LOG_MB, MAX_WAL_MB, noteShutOut } from './server/postgresql-server.ts';
import { placeCopy, RecoveringServer, type RecoveryTarget, recover } from './server/recovered-server.ts';
import { PostgresqlLog } from './server/server-log.ts';
import * as sessions from './sessions-store.ts';
import { PostgresqlStatements, READ_ONLY } from './statements.ts';
import { rowCounts } from './tables-store.ts';
import { boundTestDatabases, dropOwned, setTestsReadOnly, testDatabases } from './test-databases-store.ts';

/** The owner of a read-only database this many times above its limit can no longer log in. */
const CLOSED_FROM = 1.2;
const MIB = 2 ** 20;
/** `max_wal_size`. */
const WAL = { folder: join(DATA, 'pg_wal'), freeBytes: MAX_WAL_MB * MIB };
/** Limit for log that waits to be archived. */
const ARCHIVED_WAL = { ...WAL, freeBytes: KEPT_LOG_MB * MIB };
/** Bytes of a new server, and of an empty database. */
const NEW_BYTES = 32 * MIB;
const EMPTY_BYTES = 8 * MIB;
/** `cannot_connect_now`. */
const NOT_NOW = '57P03';

export interface PostgresqlOptions extends ManagedEngineOptions {
  /** Set by tests. */
  readonly find?: typeof findPrograms;
  /** Set for a server that is recovered to the past. */
  readonly recovery?: RecoveryTarget;
}

/** PostgreSQL with a server for each account. */
export function postgresqlServers(options: AccountOptions & Pick<PostgresqlOptions, 'find'>): AccountServers {
  const { find = findPrograms } = options;
  const make = (of: ManagedEngineOptions) => new PostgresqlEngine({ ...of, find });
  const recovered = async (of: ManagedEngineOptions, copy: ServerCopy, { at, signal }: RecoverHow) => {
    const { folder, processes, account } = of;
    await placeCopy(copy, { folder, uid: account?.uid ?? null, processes, signal });
    const engine = new PostgresqlEngine({ ...of, find, recovery: { at } });
    try {
      await engine.recover(signal);
      return engine;
    } catch (error) {
      await engine.close();
      throw error;
    }
  };
  const kind = {
    ...postgresqlKind(find),
    protocol: 'postgresql' as const,
    dumpFormats: DUMP_FORMATS,
    data: DATA,
    refusal,
    refused: [READ_ONLY],
    deletesWhileHeld: true,
    make,
    recover: recovered,
  };
  return new AccountServers(kind, options);
}

function recoveringKind(target: RecoveryTarget, find = findPrograms): PostgresqlKind {
  return { ...postgresqlKind(find), process: (deps) => new RecoveringServer(deps, find, target) };
}

export class PostgresqlEngine extends SqlEngine<ClientBase, PostgresqlLinks> {
  readonly name = 'postgresql';
  readonly leastConnections = 0;
  readonly #options: PostgresqlOptions;
  readonly #on: SqlServer<PostgresqlLinks, ServerFacts>;
  readonly #dumps: PostgresqlDumps;
  /** The log of our server. */
  readonly ownLog: PostgresqlLog;
  replayedTo: bigint | null = null;
  /** Read only; reset by a restart. */
  #isHeld = false;

  constructor(options: PostgresqlOptions) {
    const { external = null, folder, alarms, warn, find, recovery } = options;
    const isGuest = external !== null;
    const kind = recovery === undefined ? postgresqlKind(find) : recoveringKind(recovery, find);
    const on = sqlServer(kind, options, () => this.#begin());
    const { links, clients } = on;
    const guest = () => this.#guest;
    const dumps = new PostgresqlDumps({ links, clients, guest, alarms, warn, folder: join(folder, 'loads') });
    const statements = new PostgresqlStatements(links);
    const queries = new TenantQueries({ statements, links, isGuest });
    const logs = new TenantLogs({ folder: join(folder, 'logs') });
    const watched = { ...sessions, mend: sessions.endStrays };
    const databases = (client: ClientBase) => store.databases(client, this.#guest);
    super({ on, isGuest, dumpFormats: DUMP_FORMATS, queries, dumps, watched, logs, warn, databases });
    this.#options = options;
    this.#on = on;
    this.#dumps = dumps;
    const major = () => dataMajor(this.server.folders);
    this.ownLog = new PostgresqlLog({ links, clients, secret: on.secret, major });
  }

  /** Runs a copy of the server as of a moment. */
  async recover(signal: AbortSignal): Promise<void> {
    const { links, server } = this;
    const { recovery } = this.#options;
    if (recovery !== undefined) this.replayedTo = await recover({ links, server }, recovery, signal);
  }

  get #keepsLog(): boolean {
    return this.#options.account?.keepsLog ?? false;
  }

  /** Our part of the operator's server, once it responds; null: the server is ours. */
  get #guest(): store.Guest | null {
    const { external = null } = this.#options;
    if (external === null) return null;
    const member = this.#on.facts()?.isSuperuser ? null : external.user;
    return { mark: markOf(this.#on.secret()), member };
  }

  /**
   * Upgrades the data to the newest installed major version; use the engine for nothing else before
   * or after. Null: nothing to upgrade. If it throws, nothing has changed.
   */
  override async upgrade(): Promise<Upgrade | null> {
    const { processes, find = findPrograms, external = null } = this.#options;
    if (external !== null) {
      throw new AppError('engine_unavailable', 'The operator runs the PostgreSQL server', {
        hint: 'upgrade the server itself; Cloudlet works with its version',
      });
    }
    const { server, links } = this;
    const made = dataMajor(server.folders);
    const to = await newestPrograms();
    if (made === null || to === null || to.major <= made) return null;
    const from = withClients(programsOrThrow('PostgreSQL', await find(made)));
    // Recovers data after a crash with the server version that made them.
    await server.up();
    await links.close();
    await server.close();
    const uid = serverUser(this.#options);
    const folders = { ...server.folders, seen: await processes.pathOf(server.folders.home) };
    const passwordOf = (role: string) => links.passwordOf(role);
    await upgradeData({ processes, uid, folders, passwordOf }, { from, to });
    return { from: from.version, to: to.version };
  }

  async provision(database: EngineDatabase, password: string): Promise<void> {
    const roles = store.rolesOf(database.database);
    this.note(database);
    this.#assertSpace();
    await this.prepare();
    const { local } = roles;
    const [ofUser, ofLocal] = await Promise.all([
      scramVerifier(password),
      scramVerifier(this.links.passwordOf(local)),
    ]);
    await this.links.asAdmin(async (client) => {
      const guest = this.#guest;
      await store.isThere(client, roles.group, guest);
      await store.makeRoles(client, roles, { verifiers: { user: ofUser, local: ofLocal }, guest });
      await store.makeDatabase(client, roles.group, { roles, guest });
    });
    await this.links.inDatabase(roles.group, (client) => store.giveSchema(client, roles.group));
    await this.restrict(database, 'full');
  }

  async rotate(database: EngineDatabase, password: string): Promise<void> {
    const { user } = store.rolesOf(database.database);
    const verifier = await scramVerifier(password);
    await this.asAdmin(async (client) => {
      await store.pastTenant(client, user, () => store.setPassword(client, user, verifier));
      await store.endSessions(client, { role: user });
    });
  }

  async restrict(database: EngineDatabase, access: Access): Promise<void> {
    const { group, user, local } = store.rolesOf(database.database);
    const { limits } = database;
    this.note(database);
    await this.asAdmin(async (client) => {
      const before = await store.sizeState(client, store.rolesOf(database.database));
      const isReadOnly = access === 'read_only';
      const isChanged = before?.isReadOnly !== isReadOnly;
      await store.pastTenant(client, user, async () => {
        await store.limitDatabase(client, group, limits);
        if (isChanged && this.#guest === null)
          await setTestsReadOnly(client, store.rolesOf(group), isReadOnly);
        await store.setReadOnly(client, group, isReadOnly);
        await store.setLogin(client, user, access === 'none' ? 0 : limits.connections);
      });
      await this.#shutOut(client, group, access === 'none');
      // A session keeps its initial settings.
      if (access === 'none' || isChanged)
        await sessions.endTenant(client, store.rolesOf(database.database), this.#guest);
      // On the operator's server, a tenant with the password of the local role can log in from anywhere.
      if (access === 'none' && this.#guest !== null) await store.endSessions(client, { role: local });
    });
  }

  async measure(database: EngineDatabase): Promise<Measured> {
    const roles = store.rolesOf(database.database);
    this.note(database);
    const state = await this.asAdmin(async (client) => {
      const found = await store.sizeState(client, roles);
      if (found?.isReadOnly) await this.#close(client, database, found);
      return found;
    });
    if (state === null) throw new Error('there is no such database');
    const { bytes, connections, statements, rowsWritten } = state;
    // PostgreSQL counts the rows it looked at, not those it returned.
    return { sizeBytes: bytes, connections, statements, rowsReturned: null, rowsWritten };
  }

  override async load(database: EngineDatabase, dump: Readable, how: LoadHow): Promise<void> {
    this.#assertSpace();
    await super.load(database, dump, how).catch((error) => {
      // A full disk may be the reason for its end.
      this.#assertSpace();
      throw error;
    });
  }

  protected async remove(name: string): Promise<void> {
    const roles = store.rolesOf(name);
    await this.links.asAdmin(async (client) => {
      await store.pastTenant(client, roles.user, async () => {
        await store.dropDatabase(client, roles.group);
        await dropOwned(client, roles);
        await store.dropRoles(client, roles);
      });
      await this.#shutOut(client, roles.group, false);
    });
  }

  use(): Promise<ServerUse> {
    return this.links.asAdmin(async (client) => {
      const use = await sessions.serverUse(client);
      const most = this.#options.account?.connections ?? Number.POSITIVE_INFINITY;
      if (use.sessions > most) await sessions.endBeyond(client, most);
      // If a change fails now, the next call repeats it.
      await boundTestDatabases(client, MOST_TEST_DATABASES).catch(() => client.query('ROLLBACK'));
      return use;
    });
  }

  async setConnections(database: string, connections: number): Promise<void> {
    const { user } = store.rolesOf(database);
    await this.links.asAdmin((client) => sessions.setConnections(client, user, connections));
  }

  /** Users of the operator's server cannot create any. */
  async testDatabases(): Promise<readonly TestDatabase[]> {
    return this.#guest === null ? this.links.asAdmin(testDatabases) : [];
  }

  async hold(isHeld: boolean): Promise<void> {
    await this.links.asAdmin(async (client) => {
      if (isHeld !== this.#isHeld) await store.holdWrites(client, isHeld);
      this.#isHeld = isHeld;
      // A tenant may lift the setting.
      if (isHeld) await sessions.endWriters(client);
    });
  }

  /** Size without the log and the bytes of an empty server. */
  async serverBytes(databases: number): Promise<number> {
    const bytes = await serverBytes(this.server.folders.home, this.#keepsLog ? ARCHIVED_WAL : WAL);
    return Math.max(0, bytes - NEW_BYTES - databases * EMPTY_BYTES);
  }

  counts({ database }: EngineDatabase): Promise<ReadonlyMap<string, string>> {
    return this.links.inDatabase(database, rowCounts);
  }

  verifierOf(database: EngineDatabase): Promise<string> {
    return this.links.asAdmin((client) => store.verifierOf(client, store.rolesOf(database.database).user));
  }

  async setVerifier(database: EngineDatabase, verifier: string): Promise<void> {
    await this.links.asAdmin((client) =>
      store.setPassword(client, store.rolesOf(database.database).user, verifier),
    );
  }

  /** In libpq's format. Users save the authority's certificate in a file of that name. */
  protected override uriOptions({ tls, ca }: Pick<Endpoint, 'tls' | 'ca'>): string {
    if (!tls) return '';
    return ca === null ? '?sslmode=require' : '?sslmode=verify-full&sslrootcert=ca.pem';
  }

  /** The owner may switch read-only off to delete; one who continues to write is locked out for a while. */
  async #close(client: ClientBase, database: EngineDatabase, { bytes, canLogIn }: store.SizeState) {
    const { user } = store.rolesOf(database.database);
    const mayLogIn = bytes < database.sizeLimitBytes * CLOSED_FROM;
    if (mayLogIn === canLogIn) return;
    await store.pastTenant(client, user, () =>
      store.setLogin(client, user, mayLogIn ? database.limits.connections : 0),
    );
    await this.#shutOut(client, database.database, !mayLogIn);
    if (!mayLogIn) await sessions.endTenant(client, store.rolesOf(database.database), this.#guest);
  }

  /** Locks out all roles of the tenant, on our servers. */
  async #shutOut(client: ClientBase, name: string, isOut: boolean): Promise<void> {
    if (this.#guest !== null) return;
    if (noteShutOut(this.server.folders, name, isOut)) await store.reload(client);
  }

  #assertSpace(): void {
    const { external = null, isDiskLow } = this.#options;
    if (external === null && isDiskLow()) throw hostDiskFull();
  }

  /** Runs with a running server. */
  async #begin(): Promise<void> {
    const { links } = this;
    this.#isHeld = false;
    if (this.#options.recovery !== undefined) return void (await links.probe());
    if (this.#guest !== null) return this.#dumps.sweep();
    const verifier = await scramVerifier(links.passwordOf(store.DUMPER));
    await links.asAdmin((client) => store.setUpServer(client, verifier));
    if (!this.#keepsLog) await links.asAdmin(dropSlots);
    await this.#dumps.sweep();
    if (takeAnalysis(this.server.folders)) void this.#analyseAll();
  }

  /** An upgrade drops statistics, without which queries on large tables are slow. */
  async #analyseAll(): Promise<void> {
    const { links } = this;
    for (const name of await links.asAdmin((client) => store.databases(client, null)))
      await links
        .inDatabase(name, store.analyse)
        .catch(() =>
          this.#options.warn(`the database ${name} has no statistics after the upgrade: run ANALYZE in it`),
        );
  }
}

/** An ErrorResponse (PostgreSQL's protocol 3.0, message formats). */
export function refusal(text: string): Buffer {
  const fields = ['SFATAL', 'VFATAL', `C${NOT_NOW}`, `M${text}`, ''];
  const body = Buffer.from(`${fields.join('\0')}\0`);
  const head = Buffer.alloc(5);
  head.write('E');
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}
