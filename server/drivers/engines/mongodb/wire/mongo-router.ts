/**
 * Owns the port that drivers connect to, authenticates them, and passes each command to the process
 * of their own database. The port is chosen once and kept: users' programs have it in their
 * settings.
 */
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { CommandError } from '../../../../../libs/mongo/index.ts';
import { SEE_LOG } from '../../../../platform/alarms.ts';
import { KeyedMutex } from '../../../../platform/concurrency.ts';
import { AppError } from '../../../../platform/errors.ts';
import { isCode } from '../../../../platform/files.ts';
import { SharedSlots } from '../../../../platform/shared-slots.ts';
import type { ServerTls } from '../../../managed-server/links/server-tls.ts';
import type { OfferedPorts } from '../../../offered-ports.ts';
import { freePort, hadPort, holderOf, keepPort, keptPort, newPort } from '../../../server-port.ts';
import { UnauthenticatedConnections } from '../../../unauthenticated-connections.ts';
import type { ClientConnection, ConnectionDeps } from './client-connection.ts';
import type { Login } from './tenant-logins.ts';
import { TlsDoor } from './tls-door.ts';

const HOST = '127.0.0.1';
const ALARM = 'mongodb_unavailable';
const RETRY_MS = 5000;
/** Maximum connections, in total and before log-in. */
const MAX_CONNECTIONS = 2000;
/** Connections reserved for unauthenticated clients, so that a login is always possible. */
const UNAUTHENTICATED = 400;
/** Maximum encrypted connections before log-in; each holds 63 KB (measured). */
const MAX_ENCRYPTED = 500;

export interface MongoRouterDeps extends Pick<ConnectionDeps, 'logins' | 'now' | 'execute'> {
  /** Folder in which the port is stored. */
  readonly folder: string;
  readonly firstPort: number;
  /** Listening address and encryption; null: loopback, unencrypted. */
  readonly tls: ServerTls | null;
  readonly alarms: { raise(code: string, detail: string, fix: string): void; clear(code: string): void };
  /** Other nodes forward connections; undefined: there are no other nodes. */
  readonly ports?: OfferedPorts | undefined;
  /** Maximum logged-in connections of all databases; default: 1,600. */
  readonly maxSessions?: number | undefined;
}

export class MongoRouter {
  readonly #deps: MongoRouterDeps;
  readonly #turns = new KeyedMutex();
  /** Loaded when the port opens: a cloud without MongoDB databases needs no bson. */
  #code: typeof import('./client-connection.ts') | null = null;
  readonly #all = new Set<ClientConnection>();
  /** Authenticated connections, by database. */
  readonly #sessions = new Map<string, Set<ClientConnection>>();
  readonly #unauthenticated: UnauthenticatedConnections;
  /** Unauthenticated connections with TLS. */
  readonly #encrypted: UnauthenticatedConnections;
  readonly #secured = new WeakSet<ClientConnection>();
  readonly #door: TlsDoor;
  /** Slots of logged-in connections, by account, and what gives each back. */
  readonly #slots: SharedSlots<number>;
  readonly #given = new WeakMap<ClientConnection, () => void>();
  #servers: readonly Server[] = [];
  #starting: Promise<void> | null = null;
  #retry: NodeJS.Timeout | undefined;
  #problem: AppError | null = null;
  #isClosed = false;
  #lastId = 0;

  constructor(deps: MongoRouterDeps) {
    this.#deps = deps;
    this.#slots = new SharedSlots(deps.maxSessions ?? MAX_CONNECTIONS - UNAUTHENTICATED);
    this.#unauthenticated = new UnauthenticatedConnections(() => deps.now().getTime());
    this.#encrypted = new UnauthenticatedConnections(() => deps.now().getTime());
    this.#door = new TlsDoor(deps.tls, () => deps.now().getTime());
  }

  /** Why the port is not open; null: open, or not needed. */
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

  /** True once it had a port, even if its file is unreadable. */
  get isMade(): boolean {
    return hadPort(this.#deps.folder);
  }

  /** Throws `engine_unavailable` if another program has the port; it is then retried. */
  listen(): Promise<void> {
    if (this.#servers.length > 0) return Promise.resolve();
    this.#starting ??= this.#listen().finally(() => {
      this.#starting = null;
    });
    return this.#starting;
  }

  /** Ends the connections of a database. */
  endSessions(database: string): void {
    for (const connection of this.#sessions.get(database) ?? []) connection.end();
  }

  /** Serves a connection, encrypted like others, on which only users of that account can log in. */
  take(socket: Socket, accountId: number): void {
    this.#take(socket, { onlyAccount: accountId });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    await this.#starting?.catch(() => {});
    const closed = this.#servers.map((server) => once(server.close(), 'close'));
    for (const connection of this.#all) connection.end();
    await Promise.all(closed);
  }

  async #listen(): Promise<void> {
    const { alarms } = this.#deps;
    if (this.#isClosed) throw new AppError('engine_unavailable', 'Cloudlet is being stopped');
    const kept = this.port;
    try {
      this.#code = await import('./client-connection.ts');
      if (this.#deps.tls?.isRequired) this.#door.renew();
      this.#servers = kept === null ? await this.#choosePort() : await this.#open(kept);
    } catch (error) {
      this.#problem = error instanceof AppError ? error : cannotListen(error);
      alarms.raise(ALARM, this.#problem.message, this.#problem.hint ?? SEE_LOG);
      this.#tryAgain();
      throw this.#problem;
    }
    this.#problem = null;
    alarms.clear(ALARM);
    this.#offer();
  }

  /** Resolves once other nodes have the port too. */
  async everywhere(): Promise<void> {
    await this.#deps.ports?.everywhere();
  }

  #offer(): void {
    const { ports, tls } = this.#deps;
    if (this.port === null) return;
    const addresses = tls?.isRequired ? tls.listen : [HOST];
    const take = (socket: Socket, host: string) => this.#take(socket, { host });
    ports?.offer(this.port, { protocol: 'mongodb', addresses, take });
  }

  async #choosePort(): Promise<readonly Server[]> {
    const { folder, firstPort } = this.#deps;
    for (let from = firstPort; ; ) {
      const port = await freePort(from);
      try {
        const servers = await this.#open(port);
        mkdirSync(folder, { recursive: true, mode: 0o700 });
        if (hadPort(folder)) {
          const { detail, fix } = newPort('MongoDB', port);
          this.#deps.alarms.raise('mongodb_port_changed', detail, fix);
        }
        keepPort(folder, port);
        return servers;
      } catch (error) {
        // Another program took the port after it was found free.
        if (!isTaken(error)) throw error;
        from = port + 1;
      }
    }
  }

  async #open(port: number): Promise<readonly Server[]> {
    const servers: Server[] = [];
    try {
      const { tls } = this.#deps;
      for (const host of tls?.isRequired ? tls.listen : [HOST])
        servers.push(await this.#listenAt(host, port));
      return servers;
    } catch (error) {
      for (const server of servers) server.close();
      throw error;
    }
  }

  async #listenAt(host: string, port: number): Promise<Server> {
    const server = createServer((socket) => this.#take(socket));
    server.listen({ port, host: host === '*' ? undefined : host, exclusive: true });
    await once(server, 'listening');
    return server;
  }

  #tryAgain(): void {
    if (this.#isClosed) return;
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => void this.listen().catch(() => {}), RETRY_MS);
    this.#retry.unref();
  }

  #take(socket: Socket, { onlyAccount = null, host: address = socket.remoteAddress ?? '' }: From = {}): void {
    if (this.#unauthenticated.size + this.#slots.size >= MAX_CONNECTIONS) this.#unauthenticated.evict();
    const { logins, now, execute } = this.#deps;
    if (this.#code === null) throw new Error('a connection came before the port was open');
    const from = { socket, host: address };
    const connection = new this.#code.ClientConnection(++this.#lastId, from, {
      logins,
      now,
      execute,
      sessionsOf: (database) => this.sessionsOf(database),
      admit: (login, who) => {
        if (onlyAccount !== null && login.database.accountId !== onlyAccount) {
          throw new CommandError('AuthenticationFailed', 'This tunnel belongs to another account');
        }
        this.#admit(login, who);
      },
      loggedOut: (who) => {
        this.#forget(who);
        this.#unauthenticated.enter(who);
        if (this.#secured.has(who)) this.#enterEncrypted(who);
      },
      heard: (who) => {
        this.#unauthenticated.heard(who);
        this.#encrypted.heard(who);
      },
      takeTurn: (database) => this.#takeTurn(database),
      // Counted before login: a connection in its TLS handshake is unauthenticated, too.
      enter: async (at, host) => {
        const source = onlyAccount === null ? host : `account ${onlyAccount}`;
        const socket = await this.#door.enter({ socket: at, source });
        if (socket !== at) this.#enterEncrypted(connection);
        return socket;
      },
    });
    this.#all.add(connection);
    this.#unauthenticated.enter(connection);
    void connection.serve().finally(() => {
      this.#all.delete(connection);
      this.#leave(connection);
      this.#forget(connection);
    });
  }

  #enterEncrypted(connection: ClientConnection): void {
    if (!this.#all.has(connection)) return;
    if (this.#encrypted.size >= MAX_ENCRYPTED) this.#encrypted.evict();
    this.#secured.add(connection);
    this.#encrypted.enter(connection);
  }

  /** The connection has logged in, or has ended. */
  #leave(connection: ClientConnection): void {
    this.#unauthenticated.leave(connection);
    this.#encrypted.leave(connection);
  }

  #admit({ database, access }: Login, connection: ClientConnection): void {
    if (access === 'none') throw new CommandError(18, 'The database is suspended');
    const sessions = this.#sessions.get(database.database) ?? new Set();
    const most = database.limits.connections;
    if (sessions.size >= most) {
      const what = `Too many connections: this database accepts at most ${most}. Set maxPoolSize in the connection string`;
      throw new CommandError(18, what);
    }
    // When all are taken, the account with most gives one: its databases may have more than there are.
    const giveBack = this.#slots.take(database.accountId, () => connection.end());
    if (giveBack === null)
      throw new CommandError(18, 'Too many connections to all databases of this cloud; try again later');
    this.#given.set(connection, giveBack);
    this.#leave(connection);
    this.#sessions.set(database.database, sessions.add(connection));
  }

  #forget(connection: ClientConnection): void {
    const database = connection.user?.database;
    if (database === undefined) return;
    const sessions = this.#sessions.get(database.database);
    if (sessions?.delete(connection)) this.#given.get(connection)?.();
    if (sessions?.size === 0) this.#sessions.delete(database.database);
  }

  #takeTurn(database: string): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<() => void>();
    void this.#turns.run(database, () => new Promise<void>((end) => resolve(end)));
    return promise;
  }
}

interface From {
  readonly onlyAccount?: number | null;
  /** Address of the client. */
  readonly host?: string;
}

function isTaken(error: unknown): boolean {
  return isCode(error, 'EADDRINUSE');
}

function cannotListen(cause: unknown): AppError {
  const { port, message } = cause as Error & { readonly port: number };
  const retry = { retryAfterSeconds: 5, cause };
  if (!isTaken(cause)) {
    return new AppError('engine_unavailable', `the MongoDB port cannot be opened: ${message}`, {
      ...retry,
      hint: 'set CLOUDLET_DATABASE_HOST to an IP address or host name of this host',
    });
  }
  const holder = holderOf(port) ?? 'another program';
  return new AppError('engine_unavailable', `the MongoDB port ${port} is in use by ${holder}`, {
    ...retry,
    hint: 'stop that program; MongoDB databases are available again within seconds',
  });
}
