/**
 * Connections to a MySQL server: the administrator's, and those on behalf of a tenant. The driver
 * is loaded with the first of them, because it has 100 modules.
 */
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Connection as Driver } from 'mysql2';
import type { Connection, ConnectionOptions } from 'mysql2/promise';
import { patienceMs } from '../../../platform/host/host-facts.ts';
import { holdSocket } from '../../host-process/foreign-files.ts';
import { endBeyond } from '../../managed-server/links/bounded-answers.ts';
import { type LinksDeps, patiently } from '../../managed-server/links/server-links.ts';
import { rolePassword } from '../../managed-server/links/server-secret.ts';
import type { SqlLinks } from '../../managed-server/sql-server.ts';
import type { Admin } from './admin-store.ts';
import type { Dialect } from './dialects.ts';
import { SOCKET } from './mysql-server.ts';
import { administratorPassword, setOurPassword } from './mysql-store.ts';

/** Time to connect, on a host that is not busy. */
const CONNECT_MS = 10_000;
const COMING = ['ECONNREFUSED', 'ENOENT'];
const MAX_KEPT = 2;
const WRONG_PASSWORD = 'ER_ACCESS_DENIED_ERROR';

export interface MysqlLinksDeps extends LinksDeps {
  readonly dialect: () => Dialect;
}

interface RoleLogin {
  readonly user: string;
  readonly database: string;
  readonly password?: string;
  readonly maxBytes?: number;
}

export class MysqlLinks implements SqlLinks {
  readonly #deps: MysqlLinksDeps;
  readonly #kept: Connection[] = [];
  #isClosed = false;

  constructor(deps: MysqlLinksDeps) {
    this.#deps = deps;
  }

  /** The dialect of the server, as far as known. */
  get dialect(): Dialect {
    return this.#deps.dialect();
  }

  /** Lends a connection of the administrator. */
  async asAdmin<T>(work: (admin: Admin) => Promise<T>): Promise<T> {
    const admin = this.#kept.pop() ?? (await this.#patiently(() => this.#connectAdmin()));
    let failed = true;
    try {
      const result = await work(Object.assign(admin, { dialect: this.dialect }));
      failed = false;
      return result;
    } finally {
      // After an error, the state of the connection is unknown.
      if (failed || this.#isClosed || this.#kept.length >= MAX_KEPT) admin.destroy();
      else this.#kept.push(admin);
    }
  }

  /**
   * Connects as another of our roles, with its own password unless one is passed. The driver's
   * plain interface returns rows one by one. `maxBytes`: maximum bytes received.
   */
  async as<T>({ maxBytes, ...who }: RoleLogin, work: (driver: Driver) => Promise<T>): Promise<T> {
    const driver = await this.#patiently(async () => {
      const { createConnection } = await import('mysql2');
      const made = createConnection(this.#options({ password: this.passwordOf(who.user), ...who }));
      const { promise, resolve, reject } = Promise.withResolvers<Driver>();
      // A running statement rejects too.
      made.on('error', reject);
      made.once('connect', () => resolve(made));
      return promise;
    });
    if (maxBytes !== undefined) endBeyond(streamOf(driver), maxBytes);
    try {
      return await work(driver);
    } finally {
      driver.destroy();
    }
  }

  /** as() for a user of ours whose password its tenant may have changed. `work` may run twice. */
  async asOurs<T>(who: Omit<RoleLogin, 'password'>, work: (driver: Driver) => Promise<T>): Promise<T> {
    try {
      return await this.as(who, work);
    } catch (error) {
      if ((error as { code?: unknown }).code !== WRONG_PASSWORD) throw error;
      await this.putBackPassword(who.user);
      return this.as(who, work);
    }
  }

  passwordOf(role: string): string {
    return rolePassword(this.#deps.secret(), role);
  }

  /** Resets the password of one of our users; the tenant may have changed it. */
  async putBackPassword(user: string): Promise<void> {
    await this.asAdmin((admin) => setOurPassword(admin, user, this.passwordOf(user)));
  }

  probe(): Promise<unknown> {
    return this.asAdmin((admin) => admin.query('SELECT 1'));
  }

  async takeAdministration(password: string): Promise<void> {
    const { user, database } = this.#deps.administrator;
    const change = administratorPassword(this.dialect, this.passwordOf(user));
    await this.as({ user, database, password }, (driver) => ask(driver, change));
  }

  close(): void {
    this.#isClosed = true;
    for (const admin of this.#kept.splice(0)) admin.destroy();
  }

  async #connectAdmin(): Promise<Connection> {
    const { user, database, password } = this.#deps.administrator;
    const { createConnection } = await import('mysql2/promise');
    const admin = await createConnection(this.#options({ user, database, password: password() }));
    // The server has stopped: running statements reject, the next one opens a new connection.
    admin.on('error', () => {
      const at = this.#kept.indexOf(admin);
      if (at >= 0) this.#kept.splice(at, 1);
    });
    return admin;
  }

  #options(who: Pick<ConnectionOptions, 'user' | 'database' | 'password'>): ConnectionOptions {
    return {
      ...who,
      ...this.#where(),
      connectTimeout: patienceMs(CONNECT_MS),
      charset: 'utf8mb4_general_ci',
      supportBigNumbers: true,
      dateStrings: true,
      multipleStatements: false,
      flags: ['-LOCAL_FILES'],
    };
  }

  #patiently<T>(connect: () => Promise<T>): Promise<T> {
    return patiently(connect, { isUp: this.#deps.isUp, early: COMING });
  }

  #where(): ConnectionOptions {
    const { endpoint } = this.#deps;
    if ('socket' in endpoint) return { stream: () => localSocket(endpoint.socket().folder) };
    const { host, port, tls } = endpoint;
    const ssl = tls();
    if (ssl === null) return { host, port };
    const ca = ssl.ca === undefined ? {} : { ca: String(ssl.ca) };
    return { host, port, ssl: { ...ca, verifyIdentity: true } };
  }
}

/** The stream of a connected driver, with TLS the decrypted one. */
function streamOf(driver: Driver): Duplex {
  return (driver as unknown as { readonly stream: Duplex }).stream;
}

function localSocket(folder: string): Socket {
  const socket = new Socket();
  try {
    const held = holdSocket(folder, SOCKET);
    socket.once('connect', held.close).once('error', held.close);
    socket.connect(held.path);
  } catch (error) {
    // Destroyed later, after a listener was added.
    setImmediate(() => socket.destroy(error as Error));
  }
  return socket;
}

/** The rows of one statement. */
export function ask(driver: Driver, sql: string): Promise<Record<string, unknown>[]> {
  const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>[]>();
  driver.query(sql, (error, rows) => (error ? reject(error) : resolve(rows as Record<string, unknown>[])));
  return promise;
}
