/**
 * PostgreSQL, a real server of ours for all databases of a cloud. Tenants are kept apart by PostgreSQL's own
 * means: each database belongs to the administrator, only members of the role of its name may come in, and
 * what a tenant may lift himself is enforced from outside.
 */
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { ClientBase } from 'pg';
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
import { AppError } from '../../errors.ts';
import { ClientPrograms, SLOTS } from '../managed-server/client-programs.ts';
import { type ManagedEngineOptions, programsOrThrow, readinessOf } from '../managed-server/managed-engine.ts';
import { ManagedServer } from '../managed-server/managed-server.ts';
import { readServerSecret } from '../managed-server/server-secret.ts';
import { type ClientWork, clientCommand } from './client-commands.ts';
import { DUMP_FORMATS, PostgresqlDumps } from './dumps.ts';
import { PostgresqlLinks } from './postgresql-links.ts';
import { findPrograms, type PostgresqlPrograms } from './postgresql-programs.ts';
import { dataMajor, PostgresqlServer, socketFolder } from './postgresql-server.ts';
import * as store from './postgresql-store.ts';
import { scramVerifier } from './scram-verifier.ts';
import { TenantQueries } from './tenant-queries.ts';
import { Watchdog } from './watchdog.ts';

/** Of the server and its clients. */
export const USERS = 1 + SLOTS;
const PORT = 25_432;
/** From there on the owner of a database that is read-only cannot come in to write all the same. */
const CLOSED_FROM = 1.2;

export class PostgresqlEngine implements Engine {
  readonly name = 'postgresql';
  readonly dumpFormats = DUMP_FORMATS;
  readonly #server: ManagedServer;
  readonly #links: PostgresqlLinks;
  readonly #dumps: PostgresqlDumps;
  readonly #queries: TenantQueries;
  readonly #watchdog: Watchdog;
  /** Of each database, as Cloudlet calls it, by its name here. */
  readonly #ids = new Map<string, string>();
  readonly #isDiskLow: () => boolean;
  #secret: Buffer | null = null;

  constructor(options: ManagedEngineOptions) {
    const { folder, processes, uidBase, alarms, isDiskLow, notice, firstPort = PORT } = options;
    this.#isDiskLow = isDiskLow;
    const place = () => this.#place();
    const programs = () => this.#programs();
    this.#links = new PostgresqlLinks(place, () => this.#server.isUp);
    const kind = new PostgresqlServer({
      processes,
      uid: uidBase,
      firstPort,
      programs,
      passwordOf: (role) => this.#links.passwordOf(role),
      greet: () => this.#greet(),
    });
    const ofServer = { kind, processes, uid: uidBase, alarms, notice };
    this.#server = new ManagedServer({ ...ofServer, folder: join(folder, 'server') });
    const uids = uidBase === null ? null : uidBase + 1;
    const clients = new ClientPrograms({
      processes,
      uids,
      folder: join(folder, 'clients'),
      name: this.name,
      socket: () => place().folder,
      command: async (work: ClientWork) => clientCommand(await programs(), place().port, work),
    });
    this.#dumps = new PostgresqlDumps({ links: this.#links, clients, rolesOf });
    this.#queries = new TenantQueries({ links: this.#links, rolesOf });
    this.#watchdog = new Watchdog({
      links: this.#links,
      isUp: () => this.#server.isUp,
      isDiskLow,
      notice,
    });
  }

  /** Of the server, for tests; null: it does not run. */
  get pid(): number | null {
    return this.#server.pid;
  }

  async readiness(): Promise<Readiness> {
    return readinessOf(await this.#found(), this.#server.problem);
  }

  prepare(): Promise<void> {
    return this.#server.up();
  }

  /** The server that there was, without anybody waiting for it. */
  wake(): void {
    if (this.#server.isMade) void this.#server.up().catch(() => {});
  }

  async provision(database: EngineDatabase, password: string): Promise<void> {
    const roles = rolesOf(database);
    this.#ids.set(database.database, database.databaseId);
    this.#assertRoom();
    await this.#server.up();
    const { local } = roles;
    const [ofUser, ofLocal] = await Promise.all([
      scramVerifier(password),
      scramVerifier(this.#links.passwordOf(local)),
    ]);
    await this.#links.asAdmin(async (client) => {
      await store.makeRoles(client, roles, { user: ofUser, local: ofLocal });
      await store.makeDatabase(client, roles.group, roles);
    });
    await this.#links.inDatabase(roles.group, (client) => store.giveSchema(client, roles.group));
    await this.restrict(database, 'full');
  }

  async rotate(database: EngineDatabase, password: string): Promise<void> {
    const { user } = rolesOf(database);
    const verifier = await scramVerifier(password);
    await this.#asAdmin(async (client) => {
      await store.setPassword(client, user, verifier);
      await store.endSessions(client, { role: user });
    });
  }

  async restrict(database: EngineDatabase, access: Access): Promise<void> {
    const { group, user } = rolesOf(database);
    const { limits } = database;
    this.#ids.set(group, database.databaseId);
    await this.#asAdmin(async (client) => {
      const before = await store.sizeState(client, rolesOf(database));
      const isReadOnly = access === 'read_only';
      await store.limitDatabase(client, group, limits);
      await store.setReadOnly(client, group, isReadOnly);
      await store.setLogin(client, user, access === 'none' ? 0 : limits.connections);
      // A session keeps what it began with.
      const isChanged = before?.isReadOnly !== isReadOnly;
      if (access === 'none' || isChanged) await store.endSessions(client, { role: user });
    });
  }

  async endpoint({ databaseId, database, username }: EngineDatabase): Promise<Endpoint> {
    this.#ids.set(database, databaseId);
    const [host, port] = ['127.0.0.1', this.#server.port ?? 0];
    const uri = (password: string) => `postgresql://${username}:${password}@${host}:${port}/${database}`;
    return { host, port, tls: false, ca: null, uri };
  }

  async measure(database: EngineDatabase): Promise<Measured> {
    const roles = rolesOf(database);
    this.#ids.set(roles.group, database.databaseId);
    const state = await this.#asAdmin(async (client) => {
      const found = await store.sizeState(client, roles);
      if (found?.isReadOnly) await this.#close(client, database, found);
      return found;
    });
    if (state === null) throw new Error('there is no such database');
    const { bytes, connections, statements, rowsWritten } = state;
    // Of rows it counts those that were looked at.
    return { sizeBytes: bytes, connections, statements, rowsReturned: null, rowsWritten };
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

  async dump(database: EngineDatabase, format: string, signal: AbortSignal): Promise<Dump> {
    await this.#server.up();
    return this.#dumps.dump(database, format, signal);
  }

  async load(database: EngineDatabase, dump: Readable, signal: AbortSignal): Promise<void> {
    this.#assertRoom();
    await this.#server.up();
    await this.#dumps.load(database, dump, signal).catch((error) => {
      // That may be why it was ended.
      this.#assertRoom();
      throw error;
    });
  }

  async fork(from: EngineDatabase, to: EngineDatabase, signal: AbortSignal): Promise<void> {
    await this.#server.up();
    const { stream } = await this.#dumps.dump(from, 'sql', signal);
    await this.load(to, stream, signal);
  }

  async drop(name: string): Promise<void> {
    const roles = rolesNamed(name);
    this.#ids.delete(name);
    // There never was a server, so nothing of it.
    if (!this.#server.isMade) return;
    await this.#asAdmin(async (client) => {
      await store.dropDatabase(client, roles.group);
      await store.dropRoles(client, roles);
    });
  }

  async list(): Promise<readonly string[]> {
    if (!this.#server.isMade) return [];
    const all = await this.#asAdmin((client) => store.databases(client));
    return all.filter((name) => name.startsWith('d_'));
  }

  async close(): Promise<void> {
    await this.#watchdog.close();
    await this.#server.close();
    await this.#links.close();
  }

  async #asAdmin<T>(work: (client: ClientBase) => Promise<T>): Promise<T> {
    await this.#server.up();
    return this.#links.asAdmin(work);
  }

  /** Its owner may switch read-only off, to delete; who goes on to write instead is shut out for a while. */
  async #close(client: ClientBase, database: EngineDatabase, { bytes, canLogIn }: store.SizeState) {
    const { user } = rolesOf(database);
    const mayLogIn = bytes < database.sizeLimitBytes * CLOSED_FROM;
    if (mayLogIn === canLogIn) return;
    await store.setLogin(client, user, mayLogIn ? database.limits.connections : 0);
    if (!mayLogIn) await store.endSessions(client, { role: user });
  }

  #assertRoom(): void {
    if (this.#isDiskLow())
      throw new AppError('out_of_space', 'The disk of the database server is nearly full');
  }

  async #greet(): Promise<void> {
    const verifier = await scramVerifier(this.#links.passwordOf(store.DUMPER));
    await this.#links.asAdmin((client) => store.setUpServer(client, verifier));
    this.#watchdog.began();
    await this.#dumps.sweep();
  }

  #found() {
    return findPrograms(dataMajor(this.#server.places));
  }

  async #programs(): Promise<PostgresqlPrograms> {
    return programsOrThrow('PostgreSQL', await this.#found());
  }

  #place() {
    const { places, port } = this.#server;
    this.#secret ??= readServerSecret(places);
    return { folder: socketFolder(places), port: port ?? 0, secret: this.#secret };
  }
}

function rolesOf({ database }: EngineDatabase): store.Roles {
  return rolesNamed(database);
}

function rolesNamed(database: string): store.Roles {
  const rest = database.replace(/^d_/, '');
  return { group: database, user: `u_${rest}`, local: `q_${rest}` };
}
