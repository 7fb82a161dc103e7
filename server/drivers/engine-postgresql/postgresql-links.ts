/** Connections to our PostgreSQL, by its socket: ours as its administrator, and those in a tenant's name. */
import { Socket } from 'node:net';
import { Client, type ClientBase, type ClientConfig, Pool } from 'pg';
import { holdSocket } from '../host-process/owned-socket.ts';
import { patiently } from '../managed-server/patience.ts';
import { rolePassword } from '../managed-server/server-secret.ts';
import { ADMIN, setPassword } from './postgresql-store.ts';
import { scramVerifier } from './scram-verifier.ts';

const ADMIN_DATABASE = 'postgres';
const MAX_ADMINS = 4;
/** Nothing of a tenant's is to be found by a name without its schema; and we may make room. */
const ADMIN_OPTIONS = '-c search_path=pg_catalog -c default_transaction_read_only=off';
const CONNECT_MS = 10_000;
/** Ours are few, and each is a process of the server. */
const IDLE_MS = 10_000;

export interface LinkPlace {
  /** Folder of the socket, and the port in its name. */
  readonly folder: string;
  readonly port: number;
  /** All passwords of ours come from it. */
  readonly secret: Buffer;
}

/** `cannot_connect_now`: the server recovers from the end of one of its processes. */
const COMING = ['57P03', 'ECONNREFUSED', 'ENOENT'];

export class PostgresqlLinks {
  readonly #place: () => LinkPlace;
  readonly #isUp: () => boolean;
  readonly #admins: Pool;

  /** `isUp`: whether it should answer; then who comes too early waits a little. */
  constructor(place: () => LinkPlace, isUp: () => boolean) {
    this.#place = place;
    this.#isUp = isUp;
    this.#admins = new Pool({
      user: ADMIN,
      database: ADMIN_DATABASE,
      max: MAX_ADMINS,
      idleTimeoutMillis: IDLE_MS,
      connectionTimeoutMillis: CONNECT_MS,
      allowExitOnIdle: true,
      password: () => this.passwordOf(ADMIN),
      stream: () => this.#socket(),
      options: ADMIN_OPTIONS,
    });
    // The server went: what is under way rejects, and whoever asks next connects anew.
    this.#admins.on('error', () => {}).on('connect', (client) => client.on('error', () => {}));
  }

  /** Lends a connection of the administrator to the database `postgres`. */
  async asAdmin<T>(work: (client: ClientBase) => Promise<T>): Promise<T> {
    const client = await this.#patiently(() => this.#admins.connect());
    let failed = true;
    try {
      const result = await work(client);
      failed = false;
      return result;
    } finally {
      // After an error nobody knows what state it is in.
      client.release(failed);
    }
  }

  /** The administrator in a tenant's database: for statements that run nothing of the tenant's. */
  async inDatabase<T>(database: string, work: (client: ClientBase) => Promise<T>): Promise<T> {
    return this.as({ user: ADMIN, database, options: ADMIN_OPTIONS }, work);
  }

  /** As another role of ours. `maxBytes`: the connection ends when the server sends more. */
  async as<T>(
    { maxBytes, ...config }: ClientConfig & { readonly user: string; readonly maxBytes?: number },
    work: (client: Client) => Promise<T>,
  ): Promise<T> {
    const client = await this.#patiently(async () => {
      const made = new Client({
        connectionTimeoutMillis: CONNECT_MS,
        password: this.passwordOf(config.user),
        stream: () => this.#socket(maxBytes),
        ...config,
      });
      // What is under way rejects too.
      made.on('error', () => {});
      await made.connect();
      return made;
    });
    try {
      return await work(client);
    } finally {
      await client.end().catch(() => {});
    }
  }

  passwordOf(role: string): string {
    return rolePassword(this.#place().secret, role);
  }

  async close(): Promise<void> {
    if (!this.#admins.ended) await this.#admins.end();
  }

  #patiently<T>(connect: () => Promise<T>): Promise<T> {
    return patiently(connect, { isUp: this.#isUp, early: COMING });
  }

  /** Of a role that its tenant may have given another one. */
  async putBackPassword(role: string): Promise<void> {
    const verifier = await scramVerifier(this.passwordOf(role));
    await this.asAdmin((client) => setPassword(client, role, verifier));
  }

  /** pg tells it where to connect; it knows better. */
  #socket(maxBytes = Number.POSITIVE_INFINITY): Socket {
    const { folder, port } = this.#place();
    const socket = new Socket();
    socket.on('data', () => {
      if (socket.bytesRead > maxBytes) socket.destroy(new Error('the server sends too much'));
    });
    const connect = socket.connect.bind(socket);
    const connectHere = () => {
      try {
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
}
