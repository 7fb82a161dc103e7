/** Connections to our MariaDB, by its socket: ours as its administrator, and those in a tenant's name. */
import { Socket } from 'node:net';
import { createConnection as createDriver, type Connection as Driver } from 'mysql2';
import { type Connection, type ConnectionOptions, createConnection } from 'mysql2/promise';
import { holdSocket } from '../host-process/owned-socket.ts';
import { patiently } from '../managed-server/patience.ts';
import { rolePassword } from '../managed-server/server-secret.ts';
import { SOCKET } from './mysql-server.ts';
import { ADMIN, setLocalPassword } from './mysql-store.ts';
import { nativeHash } from './native-hash.ts';

const CONNECT_MS = 10_000;
const COMING = ['ECONNREFUSED', 'ENOENT'];
const MAX_KEPT = 2;

export interface LinkPlace {
  /** Folder of the socket. */
  readonly folder: string;
  /** All passwords of ours come from it. */
  readonly secret: Buffer;
}

export class MysqlLinks {
  readonly #place: () => LinkPlace;
  readonly #isUp: () => boolean;
  readonly #kept: Connection[] = [];
  #isClosed = false;

  /** `isUp`: whether it should answer; then who comes too early waits a little. */
  constructor(place: () => LinkPlace, isUp: () => boolean) {
    this.#place = place;
    this.#isUp = isUp;
  }

  /** Lends a connection of the administrator. */
  async asAdmin<T>(work: (admin: Connection) => Promise<T>): Promise<T> {
    const admin = this.#kept.pop() ?? (await this.#patiently(() => this.#connectAdmin()));
    let failed = true;
    try {
      const result = await work(admin);
      failed = false;
      return result;
    } finally {
      // After an error nobody knows what state it is in.
      if (failed || this.#isClosed || this.#kept.length >= MAX_KEPT) admin.destroy();
      else this.#kept.push(admin);
    }
  }

  /** As another role of ours, by the driver's own way of rows that come one by one. */
  async as<T>(
    config: { readonly user: string; readonly database: string },
    work: (driver: Driver) => Promise<T>,
  ): Promise<T> {
    const driver = await this.#patiently(async () => {
      const made = createDriver(this.#options(config));
      const { promise, resolve, reject } = Promise.withResolvers<Driver>();
      // What is under way rejects too.
      made.on('error', reject);
      made.once('connect', () => resolve(made));
      return promise;
    });
    try {
      return await work(driver);
    } finally {
      driver.destroy();
    }
  }

  passwordOf(role: string): string {
    return rolePassword(this.#place().secret, role);
  }

  /** Of one of our users, whose tenant may have given it another one. */
  async putBackPassword(user: string): Promise<void> {
    const hash = nativeHash(this.passwordOf(user));
    await this.asAdmin((admin) => setLocalPassword(admin, user, hash));
  }

  close(): void {
    this.#isClosed = true;
    for (const admin of this.#kept.splice(0)) admin.destroy();
  }

  async #connectAdmin(): Promise<Connection> {
    const admin = await createConnection(this.#options({ user: ADMIN, database: 'mysql' }));
    // The server went: what is under way rejects, and whoever asks next connects anew.
    admin.on('error', () => {
      const at = this.#kept.indexOf(admin);
      if (at >= 0) this.#kept.splice(at, 1);
    });
    return admin;
  }

  #options(config: { readonly user: string; readonly database: string }): ConnectionOptions {
    return {
      ...config,
      password: this.passwordOf(config.user),
      connectTimeout: CONNECT_MS,
      stream: () => this.#socket(),
      charset: 'utf8mb4_general_ci',
      supportBigNumbers: true,
      dateStrings: true,
      multipleStatements: false,
      flags: ['-LOCAL_FILES'],
    };
  }

  #patiently<T>(connect: () => Promise<T>): Promise<T> {
    return patiently(connect, { isUp: this.#isUp, early: COMING });
  }

  #socket(): Socket {
    const socket = new Socket();
    try {
      const held = holdSocket(this.#place().folder, SOCKET);
      socket.once('connect', held.close).once('error', held.close);
      socket.connect(held.path);
    } catch (error) {
      // Once somebody listens for it.
      setImmediate(() => socket.destroy(error as Error));
    }
    return socket;
  }
}
