/** Connections to a PostgreSQL server: the administrator's, and those on behalf of a tenant. */
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Client, ClientBase, ClientConfig, Pool } from 'pg';
import { patienceMs } from '../../../platform/host/host-facts.ts';
import { holdSocket } from '../../host-process/foreign-files.ts';
import { endBeyond } from '../../managed-server/links/bounded-answers.ts';
import { type LinksDeps, patiently } from '../../managed-server/links/server-links.ts';
import { rolePassword } from '../../managed-server/links/server-secret.ts';
import type { SqlLinks } from '../../managed-server/sql-server.ts';
import { scramVerifier } from '../../scram-keys.ts';
import { setPassword } from './postgresql-store.ts';

/** Maximum connections of Cloudlet: each is a process of the server. */
const MAX_ADMINS = 4;
/**
 * Names without a schema resolve to no tenant's object; we may write where tenants may only read;
 * and a lock on a catalogue row by a tenant's transaction is not awaited forever.
 */
const ADMIN_OPTIONS = '-c search_path=pg_catalog -c default_transaction_read_only=off -c lock_timeout=30s';
/** On our servers, tenants see all statements except ours, which contain password verifiers. */
const UNCOUNTED = '-c pg_stat_statements.track=none -c track_activities=off';
/** Time to connect, on a host that is not busy. */
const CONNECT_MS = 10_000;
const IDLE_MS = 10_000;

/** `cannot_connect_now`: the server is recovering after one of its processes crashed. */
const COMING = ['57P03', 'ECONNREFUSED', 'ENOENT'];

export class PostgresqlLinks implements SqlLinks {
  readonly #deps: LinksDeps;
  #admins: Promise<Pool> | null = null;

  constructor(deps: LinksDeps) {
    this.#deps = deps;
  }

  /** Lends a connection of the administrator, to the administrator's own database. */
  async asAdmin<T>(work: (client: ClientBase) => Promise<T>): Promise<T> {
    const client = await this.#patiently(async () => (await this.#pool()).connect());
    let failed = true;
    try {
      const result = await work(client);
      failed = false;
      return result;
    } finally {
      // After an error, the state of the connection is unknown.
      client.release(failed);
    }
  }

  /** The administrator in a tenant's database: for statements that run no code of the tenant. */
  async inDatabase<T>(database: string, work: (client: ClientBase) => Promise<T>): Promise<T> {
    const { user, password } = this.#deps.administrator;
    return this.as({ user, password: password(), database, options: this.#options }, work);
  }

  /** Connects as another of our roles. `maxBytes`: maximum bytes received. */
  async as<T>(
    { maxBytes, ...config }: ClientConfig & { readonly user: string; readonly maxBytes?: number },
    work: (client: Client) => Promise<T>,
  ): Promise<T> {
    const { Client } = await loadLibrary();
    const client = await this.#patiently(async () => {
      const made = new Client({
        connectionTimeoutMillis: patienceMs(CONNECT_MS),
        password: this.passwordOf(config.user),
        ...this.#where(),
        ...config,
      });
      // A running statement rejects too.
      made.on('error', () => {});
      await made.connect();
      if (maxBytes !== undefined) endBeyond(streamOf(made), maxBytes);
      return made;
    });
    try {
      return await work(client);
    } finally {
      await client.end().catch(() => {});
    }
  }

  passwordOf(role: string): string {
    return rolePassword(this.#deps.secret(), role);
  }

  /** Over a new connection: existing ones would survive a failed postmaster. */
  probe(): Promise<unknown> {
    const { database } = this.#deps.administrator;
    return this.inDatabase(database, (client) => client.query('SELECT 1'));
  }

  async takeAdministration(password: string): Promise<void> {
    const { user, database } = this.#deps.administrator;
    const verifier = await scramVerifier(this.passwordOf(user));
    const config = { user, password, database, options: UNCOUNTED };
    await this.as(config, (client) => setPassword(client, user, verifier));
  }

  async close(): Promise<void> {
    const admins = await this.#admins;
    if (admins !== null && !admins.ended) await admins.end();
  }

  /** Resets the password of a role that its tenant may have changed. */
  async putBackPassword(role: string): Promise<void> {
    const verifier = await scramVerifier(this.passwordOf(role));
    await this.asAdmin((client) => setPassword(client, role, verifier));
  }

  #pool(): Promise<Pool> {
    this.#admins ??= this.#makePool();
    return this.#admins;
  }

  async #makePool(): Promise<Pool> {
    const { Pool } = await loadLibrary();
    const { user, database, password } = this.#deps.administrator;
    const pool = new Pool({
      user,
      database,
      max: MAX_ADMINS,
      idleTimeoutMillis: IDLE_MS,
      connectionTimeoutMillis: CONNECT_MS,
      allowExitOnIdle: true,
      password,
      ...this.#where(),
      options: this.#options,
    });
    // The server has stopped: running statements reject, the next one opens a new connection.
    return pool.on('error', () => {}).on('connect', (client) => client.on('error', () => {}));
  }

  /** The administrator of an operator's server may lack some privileges. */
  get #options(): string {
    return 'socket' in this.#deps.endpoint ? `${ADMIN_OPTIONS} ${UNCOUNTED}` : ADMIN_OPTIONS;
  }

  #patiently<T>(connect: () => Promise<T>): Promise<T> {
    return patiently(connect, { isUp: this.#deps.isUp, early: COMING });
  }

  #where(): ClientConfig {
    const { endpoint } = this.#deps;
    if ('socket' in endpoint) return { stream: () => localSocket(endpoint.socket) };
    const { host, port, tls } = endpoint;
    return { host, port, ssl: tls() ?? false };
  }
}

/** Loads the driver when the first connection opens: many clouds have no PostgreSQL database. */
function loadLibrary() {
  return import('pg');
}

/** The stream of a connected client, with TLS the decrypted one. */
export function streamOf(client: Client): Duplex {
  return (client as unknown as { readonly connection: { readonly stream: Duplex } }).connection.stream;
}

/** Ignores the address from pg, and connects to the local socket. */
function localSocket(endpoint: () => { folder: string; port: number }): Socket {
  const socket = new Socket();
  const connect = socket.connect.bind(socket);
  const connectHere = () => {
    try {
      const { folder, port } = endpoint();
      const held = holdSocket(folder, `.s.PGSQL.${port}`);
      socket.once('connect', held.close).once('error', held.close);
      connect(held.path);
    } catch (error) {
      socket.destroy(error as Error);
    }
    return socket;
  };
  return Object.assign(socket, { connect: connectHere });
}
