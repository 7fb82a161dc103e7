/**
 * PostgreSQL, a real server for all databases of a cloud. Tenants are kept apart by PostgreSQL's own
 * means: each database belongs to the administrator, only members of the role of its name may come in, and
 * what a tenant may lift himself is enforced from outside.
 */
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { ClientBase } from 'pg';
import type { Access, Endpoint, EngineDatabase, Measured } from '../../databases/engine.ts';
import { hostDiskFull } from '../../platform/errors.ts';
import type { ServerUse } from '../managed-server/account-server.ts';
import { SLOTS } from '../managed-server/client-programs.ts';
import { ManagedServer } from '../managed-server/managed-server.ts';
import { serverBytes } from '../managed-server/server-bytes.ts';
import { hostAndPort, ServerEngine } from '../managed-server/server-engine.ts';
import type { MovableEngine } from '../managed-server/shared-server.ts';
import { TenantLogs } from '../managed-server/tenant-logs.ts';
import { scramVerifier } from '../scram-keys.ts';
import { DATA } from './data-directory.ts';
import { DUMP_FORMATS, PostgresqlDumps } from './dumps.ts';
import { externalSite } from './external-site.ts';
import { ownSite } from './own-site.ts';
import type { PostgresqlLinks } from './postgresql-links.ts';
import { MAX_WAL_MB } from './postgresql-server.ts';
import * as store from './postgresql-store.ts';
import * as roleStore from './roles-store.ts';
import type { PostgresqlOptions, PostgresqlSite, Upgrade } from './site.ts';
import { rowCounts } from './tables-store.ts';
import { TenantQueries } from './tenant-queries.ts';
import { Watchdog } from './watchdog.ts';

/** System users: one that makes the data of new servers, the others for clients. */
export const USERS = 1 + SLOTS;
/** From there on the owner of a database that is read-only cannot come in to write all the same. */
const CLOSED_FROM = 1.2;
const MIB = 2 ** 20;
/** As `max_wal_size` has it. */
const WAL = { folder: join(DATA, 'pg_wal'), freeBytes: MAX_WAL_MB * MIB };
/** What a new server takes, and a database in which nothing is. */
const NEW_BYTES = 32 * MIB;
const EMPTY_BYTES = 8 * MIB;

export class PostgresqlEngine extends ServerEngine<ClientBase> implements MovableEngine {
  readonly name = 'postgresql';
  readonly #site: PostgresqlSite;
  readonly #links: PostgresqlLinks;
  readonly #dumps: PostgresqlDumps;
  readonly #watchdog: Watchdog | null;
  readonly #notes: TenantLogs;
  readonly #isDiskLow: () => boolean;
  /** From writing; a server that was started anew is not. */
  #isHeld = false;

  constructor(options: PostgresqlOptions) {
    const { external = null, folder, isDiskLow, warn } = options;
    const begin = () => this.#begin();
    const site = external === null ? ownSite(options, begin) : externalSite(options, external, begin);
    const { links, clients, guest, server } = site;
    const isGuest = external !== null;
    const isUp = () => server.isUp;
    const { alarms } = options;
    const dumps = new PostgresqlDumps({ links, clients, guest, rolesOf, alarms, warn });
    // The disk of another host is not ours to know.
    const isLow = isGuest ? () => false : isDiskLow;
    const queries = new TenantQueries({ links, isGuest, rolesOf, isDiskLow: isLow });
    const { log } = server;
    const notes = new TenantLogs({ folder: join(folder, 'logs') });
    const logs = log === null ? notes : { read: (_name: string, maxBytes: number) => log.tail(maxBytes) };
    // What an account does to a server of its own it does to itself.
    const watchdog = isGuest ? new Watchdog({ links, isUp, warn, logs: notes }) : null;
    const databases = (client: ClientBase) => store.databases(client, guest());
    super(DUMP_FORMATS, { site, queries, dumps, watchdog, logs, databases });
    this.#site = site;
    this.#links = links;
    this.#isDiskLow = isLow;
    this.#dumps = dumps;
    this.#notes = notes;
    this.#watchdog = watchdog;
  }

  /**
   * Brings the data to the newest major version whose programs are here, before anything else is asked of it
   * and nothing after. Null: they are of that version, or there are none. When it throws nothing has changed.
   */
  upgrade(): Promise<Upgrade | null> {
    return this.#site.upgrade();
  }

  async provision(database: EngineDatabase, password: string): Promise<void> {
    const roles = rolesOf(database);
    this.note(database);
    this.#assertRoom();
    await this.#site.server.up();
    const { local } = roles;
    const [ofUser, ofLocal] = await Promise.all([
      scramVerifier(password),
      scramVerifier(this.#links.passwordOf(local)),
    ]);
    await this.#links.asAdmin(async (client) => {
      const guest = this.#site.guest();
      await store.isThere(client, roles.group, guest);
      await roleStore.makeRoles(client, roles, { verifiers: { user: ofUser, local: ofLocal }, guest });
      await store.makeDatabase(client, roles.group, { roles, guest });
    });
    await this.#links.inDatabase(roles.group, (client) => store.giveSchema(client, roles.group));
    await this.restrict(database, 'full');
  }

  async rotate(database: EngineDatabase, password: string): Promise<void> {
    const { user } = rolesOf(database);
    const verifier = await scramVerifier(password);
    await this.asAdmin(async (client) => {
      await store.pastTenant(client, user, () => store.setPassword(client, user, verifier));
      await store.endSessions(client, { role: user });
    });
  }

  async restrict(database: EngineDatabase, access: Access): Promise<void> {
    const { group, user, local } = rolesOf(database);
    const { limits } = database;
    this.note(database);
    await this.asAdmin(async (client) => {
      const before = await store.sizeState(client, rolesOf(database));
      const isReadOnly = access === 'read_only';
      await store.pastTenant(client, user, async () => {
        await store.limitDatabase(client, group, limits);
        await store.setReadOnly(client, group, isReadOnly);
        await store.setLogin(client, user, access === 'none' ? 0 : limits.connections);
      });
      await this.#shutOut(client, group, access === 'none');
      // A session keeps what it began with.
      const isChanged = before?.isReadOnly !== isReadOnly;
      if (access === 'none' || isChanged)
        await roleStore.endTenant(client, rolesOf(database), this.#site.guest());
      // On a server of the operator's a tenant who has the local role's password may use it from anywhere.
      if (access === 'none' && this.#site.guest() !== null) await store.endSessions(client, { role: local });
    });
  }

  async endpoint(of: EngineDatabase): Promise<Endpoint> {
    const { database, username } = of;
    this.note(of);
    const endpoint = this.#site.endpoint();
    const end = `@${hostAndPort(endpoint)}/${database}${tlsWords(endpoint)}`;
    return { ...endpoint, uri: (password: string) => `postgresql://${username}:${password}${end}` };
  }

  async measure(database: EngineDatabase): Promise<Measured> {
    const roles = rolesOf(database);
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

  override async load(database: EngineDatabase, dump: Readable, signal: AbortSignal): Promise<void> {
    this.#assertRoom();
    await super.load(database, dump, signal).catch((error) => {
      // That may be why it was ended.
      this.#assertRoom();
      throw error;
    });
  }

  async drop(name: string): Promise<void> {
    const roles = rolesNamed(name);
    this.forget(name);
    // There never was a server, so nothing of it.
    if (!this.#site.server.isMade) return;
    await this.asAdmin(async (client) => {
      await store.dropDatabase(client, roles.group);
      await roleStore.dropOwned(client, roles);
      await roleStore.dropRoles(client, roles);
      await this.#shutOut(client, roles.group, false);
    });
    this.#notes.remove(name);
  }

  /** Its process, and what starts and stops it. Throws where that is the operator's. */
  get server(): ManagedServer {
    const { server } = this.#site;
    if (server instanceof ManagedServer) return server;
    throw new Error('not a server of ours');
  }

  /** What its server does now. */
  use(): Promise<ServerUse> {
    return this.#links.asAdmin(store.serverUse);
  }

  async hold(isHeld: boolean): Promise<void> {
    await this.#links.asAdmin(async (client) => {
      if (isHeld !== this.#isHeld) await store.holdWrites(client, isHeld);
      this.#isHeld = isHeld;
      // Who may set it may lift it.
      if (isHeld) await store.endWriters(client);
    });
  }

  /** Without the log that every server needs, and what a new one has. */
  async serverBytes(databases: number): Promise<number> {
    const bytes = await serverBytes(this.server.places.home, WAL);
    return Math.max(0, bytes - NEW_BYTES - databases * EMPTY_BYTES);
  }

  counts({ database }: EngineDatabase): Promise<ReadonlyMap<string, string>> {
    return this.#links.inDatabase(database, rowCounts);
  }

  verifierOf(database: EngineDatabase): Promise<string> {
    return this.#links.asAdmin((client) => store.verifierOf(client, rolesOf(database).user));
  }

  async setVerifier(database: EngineDatabase, verifier: string): Promise<void> {
    await this.#links.asAdmin((client) => store.setPassword(client, rolesOf(database).user, verifier));
  }

  async close(): Promise<void> {
    await this.#watchdog?.close();
    await this.#site.server.close();
    await this.#links.close();
  }

  /** Its owner may switch read-only off, to delete; who goes on to write instead is shut out for a while. */
  async #close(client: ClientBase, database: EngineDatabase, { bytes, canLogIn }: store.SizeState) {
    const { user } = rolesOf(database);
    const mayLogIn = bytes < database.sizeLimitBytes * CLOSED_FROM;
    if (mayLogIn === canLogIn) return;
    await store.pastTenant(client, user, () =>
      store.setLogin(client, user, mayLogIn ? database.limits.connections : 0),
    );
    await this.#shutOut(client, database.database, !mayLogIn);
    if (!mayLogIn) await roleStore.endTenant(client, rolesOf(database), this.#site.guest());
  }

  /** Its tenant may have roles beside the one that we gave. */
  async #shutOut(client: ClientBase, name: string, isOut: boolean): Promise<void> {
    if (this.#site.shutOut?.(name, isOut)) await store.reload(client);
  }

  #assertRoom(): void {
    if (this.#isDiskLow()) throw hostDiskFull();
  }

  /** With a server that is up. */
  async #begin(): Promise<void> {
    this.#isHeld = false;
    await this.#dumps.sweep();
  }
}

/** As libpq has them. Users keep the certificate of the authority in a file of that name. */
function tlsWords({ tls, ca }: Pick<Endpoint, 'tls' | 'ca'>): string {
  if (!tls) return '';
  return ca === null ? '?sslmode=require' : '?sslmode=verify-full&sslrootcert=ca.pem';
}

function rolesOf({ database }: EngineDatabase): store.Roles {
  return rolesNamed(database);
}

function rolesNamed(database: string): store.Roles {
  const rest = database.replace(/^d_/, '');
  return { group: database, user: `u_${rest}`, local: `q_${rest}` };
}
