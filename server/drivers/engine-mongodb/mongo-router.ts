/**
 * Owns the port that drivers connect to, says who they are, and hands each command to the process of their
 * own database. The port is chosen once and kept: users' programs have it in their settings.
 */
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { AppError } from '../../errors.ts';
import { KeyLocks } from '../../key-locks.ts';
import { freePort, holderOf, keepPort, keptPort } from '../managed-server/server-port.ts';
import { ClientConnection, type ConnectionDeps } from './client-connection.ts';
import { CommandError } from './command-error.ts';
import type { Login } from './tenant-logins.ts';

const HOST = '127.0.0.1';
const ALARM = 'mongodb_unavailable';
const RETRY_MS = 5000;
/** Of all databases, and of those who have not logged in. */
const MAX_CONNECTIONS = 2000;

export interface MongoRouterDeps extends Pick<ConnectionDeps, 'logins' | 'now' | 'execute' | 'sizeBytes'> {
  /** Ours, where the port is kept. */
  readonly folder: string;
  readonly firstPort: number;
  readonly alarms: { raise(code: string, detail: string): void; clear(code: string): void };
}

export class MongoRouter {
  readonly #deps: MongoRouterDeps;
  readonly #turns = new KeyLocks();
  readonly #all = new Set<ClientConnection>();
  /** Those that have logged in, by database. */
  readonly #sessions = new Map<string, Set<ClientConnection>>();
  #server: Server | null = null;
  #starting: Promise<void> | null = null;
  #retry: NodeJS.Timeout | undefined;
  #problem: AppError | null = null;
  #isClosed = false;
  #lastId = 0;

  constructor(deps: MongoRouterDeps) {
    this.#deps = deps;
  }

  /** Why it does not listen, when it should; null: nothing is wrong. */
  get problem(): AppError | null {
    return this.#problem;
  }

  /** Null until it first listened. */
  get port(): number | null {
    return keptPort(this.#deps.folder);
  }

  sessionsOf(database: string): number {
    return this.#sessions.get(database)?.size ?? 0;
  }

  /** Throws `engine_unavailable` when another program has the port; it is then tried again. */
  listen(): Promise<void> {
    if (this.#server !== null) return Promise.resolve();
    this.#starting ??= this.#listen().finally(() => {
      this.#starting = null;
    });
    return this.#starting;
  }

  /** Ends the connections of a database. */
  endSessions(database: string): void {
    for (const connection of this.#sessions.get(database) ?? []) connection.end();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    await this.#starting?.catch(() => {});
    const server = this.#server;
    if (server === null) return;
    server.close();
    for (const connection of this.#all) connection.end();
    await once(server, 'close');
  }

  async #listen(): Promise<void> {
    const { folder, firstPort, alarms } = this.#deps;
    if (this.#isClosed) throw unavailable('the engine is being stopped with Cloudlet');
    const kept = this.port;
    const port = kept ?? (await freePort(firstPort));
    const server = createServer({ noDelay: true }, (socket) => this.#take(socket));
    try {
      server.listen({ port, host: HOST, exclusive: true });
      await once(server, 'listening');
    } catch (error) {
      this.#problem = unavailable(
        `port ${port} of MongoDB is taken by ${holderOf(port) ?? 'another program'}`,
      );
      alarms.raise(ALARM, `${this.#problem.message}. ${this.#problem.hint}`);
      this.#tryAgain();
      throw new AppError('engine_unavailable', this.#problem.message, { cause: error, retryAfterSeconds: 5 });
    }
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (kept === null) keepPort(folder, port);
    this.#server = server;
    this.#problem = null;
    alarms.clear(ALARM);
  }

  #tryAgain(): void {
    if (this.#isClosed) return;
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => void this.listen().catch(() => {}), RETRY_MS);
    this.#retry.unref();
  }

  #take(socket: Socket): void {
    if (this.#all.size >= MAX_CONNECTIONS) return void socket.destroy();
    const { logins, now, execute, sizeBytes } = this.#deps;
    const connection = new ClientConnection(++this.#lastId, socket, {
      logins,
      now,
      execute,
      sizeBytes,
      admit: (login, who) => this.#admit(login, who),
      gone: (who) => this.#forget(who),
      takeTurn: (database) => this.#takeTurn(database),
    });
    this.#all.add(connection);
    void connection.serve().finally(() => this.#all.delete(connection));
  }

  #admit({ database, access }: Login, connection: ClientConnection): void {
    if (access === 'none') throw new CommandError(18, 'The database is suspended');
    const sessions = this.#sessions.get(database.database) ?? new Set();
    const most = database.limits.connections;
    if (sessions.size >= most) {
      const what = `Too many connections: this database takes ${most}. Set maxPoolSize in the connection string`;
      throw new CommandError(18, what);
    }
    this.#sessions.set(database.database, sessions.add(connection));
  }

  #forget(connection: ClientConnection): void {
    const database = connection.user?.database;
    if (database === undefined) return;
    const sessions = this.#sessions.get(database.database);
    sessions?.delete(connection);
    if (sessions?.size === 0) this.#sessions.delete(database.database);
  }

  #takeTurn(database: string): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<() => void>();
    void this.#turns.run(database, () => new Promise<void>((end) => resolve(end)));
    return promise;
  }
}

function unavailable(what: string): AppError {
  return new AppError('engine_unavailable', what, {
    hint: 'stop that program; databases of MongoDB are then back within seconds',
    retryAfterSeconds: 5,
  });
}
