/**
 * Hrana over WebSocket, at the URLs of Hrana over HTTP: the client's `hello` has the password of
 * the database. Messages are passed through like bodies: the process with the open database answers
 * them. The password is checked for each message, so a connection is useless once the database is
 * suspended or deleted, or has another password.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { type WebSocket, WebSocketServer } from 'ws';
import type { EngineDatabase } from '../databases/engine.ts';
import type { Upgrades } from '../http/connections/upgrades.ts';
import type { Exchange } from '../http/exchange.ts';
import { toAppError } from '../http/response.ts';
import { Counts } from '../platform/concurrency.ts';
import { AppError } from '../platform/errors.ts';
import { sourceOf } from '../platform/host/caller-networks.ts';
import { randomBase62 } from '../platform/ids.ts';
import { SharedSlots } from '../platform/shared-slots.ts';
import { databaseOf, type HranaEdgeDeps, limitGuess } from './hrana-edge.ts';
import { type Encoding, helloError, helloOk, readHello, SUB_PROTOCOLS } from './hrana-hello.ts';

/** A client that has not logged in by then is closed, ms. */
const HELLO_MS = 10_000;
/** Maximum connections before log-in, in total and per source, see sourceOf(). */
const MAX_UNAUTHENTICATED = 1024;
const MAX_UNAUTHENTICATED_PER_SOURCE = 32;
/** Messages per connection that are processed concurrently; more stay unread. */
const MAX_UNDER_WAY = 16;
/** Maximum connections per database. */
const MAX_SOCKETS = 256;
/** Maximum bytes read before `hello`. */
const MAX_EARLY_BYTES = 128 * 1024;
const NAME_CHARACTERS = 24;
const PING_MS = 30_000;
/** A client that neither answers pings nor reads is gone, whatever it still waits for. */
const MOST_MISSED = 4;
const STEP_MS = 20;
const TRY_AGAIN = 1013;
/** A reason has at most 123 bytes. */
const DISPLACED = 'All libSQL connections of the cloud were in use, and this account had most of them';

interface Waiting {
  readonly heard: () => void;
  readonly leave: () => void;
}

/** A client's first message. */
interface Greeting {
  readonly data: Buffer;
  readonly encoding: Encoding;
  readonly databaseId: string | null;
  readonly exchange: Exchange;
}

/** A client that has logged in. */
interface Client {
  readonly webSocket: WebSocket;
  readonly exchange: Exchange;
  /** Names the connection to the database's process. */
  readonly socket: string;
  readonly encoding: Encoding;
  readonly databaseId: string | null;
  /** Password of the last `hello`. */
  password: string;
  /** Aborted when the connection closes. */
  readonly left: AbortController;
  database: EngineDatabase;
  /** Resolves when the last password was checked: messages are processed in order. */
  checked: Promise<unknown>;
  underWay: number;
  /** Pings since the last pong. */
  missed: number;
}

export class HranaSockets implements Upgrades {
  readonly #deps: HranaEdgeDeps;
  readonly #server: WebSocketServer;
  readonly #clients = new Set<Client>();
  /** Connections without log-in. */
  readonly #unauthenticated = new Set<WebSocket>();
  /** Their slots: one source with many gives way to others. */
  readonly #slots: SharedSlots<string>;
  readonly #perSource = new Counts<string>();
  readonly #perDatabase = new Counts<string>();
  /** Slots of accounts: their databases together may have more connections than the cloud. */
  readonly #perAccount: SharedSlots<number>;
  readonly #timer: NodeJS.Timeout;

  constructor(deps: HranaEdgeDeps) {
    this.#deps = deps;
    this.#slots = new SharedSlots(deps.maxUnauthenticated ?? MAX_UNAUTHENTICATED);
    this.#perAccount = new SharedSlots(deps.maxSockets);
    this.#server = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      maxPayload: deps.maxBodyBytes,
      perMessageDeflate: false,
      handleProtocols: (offered) => [...SUB_PROTOCOLS.keys()].find((name) => offered.has(name)) ?? false,
    });
    this.#timer = setInterval(() => this.#ping(), PING_MS).unref();
  }

  /** Whether the request upgrades to this protocol. */
  takes({ method, url = '', headers }: IncomingMessage): boolean {
    return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket' && /^\/+db(?:[/?]|$)/.test(url);
  }

  upgrade(request: IncomingMessage, { client, head }: { client: Duplex; head: Buffer }): void {
    client.on('error', () => {});
    const { door } = this.#deps;
    const exchange = door.open(request, null, 'hranaSocket');
    let leave: () => void;
    try {
      leave = this.#admit(exchange, client);
    } catch (error) {
      door.refuseUpgrade(exchange, client, toAppError(error));
      return;
    }
    client.once('close', leave);
    door.record(exchange, 101);
    let bytes = 0;
    const count = (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > MAX_EARLY_BYTES) client.destroy();
    };
    client.on('data', count);
    const heard = () => client.off('data', count);
    this.#server.handleUpgrade(request, client, head, (webSocket) =>
      this.#greet(webSocket, exchange, { heard, leave }),
    );
  }

  /** Closes all connections. */
  close(): void {
    clearInterval(this.#timer);
    for (const webSocket of this.#unauthenticated) webSocket.terminate();
    for (const { webSocket } of this.#clients) webSocket.close(1001, 'Cloudlet is stopping');
    setTimeout(() => {
      for (const { webSocket } of this.#clients) webSocket.terminate();
    }, 1000).unref();
  }

  /** The result gives back its place among those without log-in. Throws AppError if it is refused. */
  #admit(exchange: Exchange, client: Duplex): () => void {
    this.#deps.door.admit(exchange);
    const offered = String(exchange.raw.headers['sec-websocket-protocol'] ?? '').split(/\s*,\s*/);
    if (!offered.some((name) => SUB_PROTOCOLS.has(name))) {
      const names = [...SUB_PROTOCOLS.keys()].join(', ');
      throw new AppError('bad_http', `Sec-WebSocket-Protocol must offer one of ${names}`);
    }
    const source = sourceOf(exchange.address);
    const isCrowded = this.#perSource.of(source) >= MAX_UNAUTHENTICATED_PER_SOURCE;
    const slot = isCrowded ? null : this.#slots.take(source, () => client.destroy());
    if (slot !== null) {
      const counted = this.#perSource.add(source);
      return () => {
        slot();
        counted();
      };
    }
    throw new AppError('overloaded', 'Too many connections are waiting to log in', { retryAfterSeconds: 2 });
  }

  /** Waits for the `hello`; `heard` is called when it arrives, `leave` when it was answered. */
  #greet(webSocket: WebSocket, exchange: Exchange, { heard, leave }: Waiting): void {
    const encoding = SUB_PROTOCOLS.get(webSocket.protocol) ?? 'json';
    const { databaseId } = databaseOf(exchange.raw.url ?? '');
    this.#unauthenticated.add(webSocket);
    const late = setTimeout(() => webSocket.terminate(), HELLO_MS);
    const known = () => {
      clearTimeout(late);
      this.#unauthenticated.delete(webSocket);
      leave();
    };
    webSocket.on('error', () => {}); // A frame too large or broken: ws closes with the right code.
    webSocket.once('close', known);
    // Drivers send their first requests at once: bytes in the same packet are read despite the pause.
    const early: Buffer[] = [];
    const wait = (data: Buffer) => early.push(data);
    webSocket.once('message', (data: Buffer) => {
      heard();
      webSocket.pause();
      webSocket.on('message', wait);
      void this.#logIn(webSocket, { data, encoding, databaseId, exchange }).then((client) => {
        known();
        webSocket.off('message', wait);
        if (client !== null) this.#serve(client, early);
        webSocket.resume();
      });
    });
  }

  /** Answers the `hello`. null: the connection is closed. Never rejects. */
  async #logIn(
    webSocket: WebSocket,
    { data, encoding, databaseId, exchange }: Greeting,
  ): Promise<Client | null> {
    const password = readHello(data, encoding);
    if (password === null) {
      webSocket.close(1002, 'The first message must be a hello');
      return null;
    }
    try {
      const database = await this.#deps.databases.find(databaseId, password);
      const socket = randomBase62(NAME_CHARACTERS);
      const left = new AbortController();
      const common = { webSocket, socket, exchange, encoding, databaseId, password, left };
      webSocket.send(helloOk(encoding));
      return { ...common, database, checked: Promise.resolve(), underWay: 0, missed: 0 };
    } catch (thrown) {
      this.#refuseHello({ webSocket, encoding, exchange }, thrown);
      return null;
    }
  }

  #refuseHello(client: Pick<Client, 'webSocket' | 'encoding' | 'exchange'>, thrown: unknown): void {
    let error = toAppError(thrown);
    try {
      limitGuess(this.#deps.door, client.exchange, error);
    } catch (limited) {
      error = toAppError(limited);
    }
    refuseHello(client, error);
  }

  /** Handles another `hello`, with which a client continues under a new password. Never rejects. */
  async #logInAgain(client: Client, password: string): Promise<void> {
    const { webSocket, encoding } = client;
    const found = client.checked.then(() => this.#deps.databases.find(client.databaseId, password));
    client.checked = found
      .then(({ databaseId }) => {
        if (databaseId !== client.database.databaseId) throw anotherDatabase();
        client.password = password;
        webSocket.send(helloOk(encoding));
      })
      .catch((error) => {
        this.#refuseHello(client, error);
        // Later messages are not answered.
        client.left.abort();
      });
    await client.checked;
  }

  /** `early`: messages received before the log-in finished. */
  #serve(client: Client, early: readonly Buffer[]): void {
    const { webSocket, left, database } = client;
    const { databaseId, accountId } = database;
    // The WebSocket was closed in the meantime.
    if (webSocket.readyState !== webSocket.OPEN) return;
    if (this.#perDatabase.of(databaseId) >= MAX_SOCKETS) {
      webSocket.close(TRY_AGAIN, `The database has ${MAX_SOCKETS} connections`);
      return;
    }
    const giveBack = this.#perAccount.take(accountId, () => webSocket.close(TRY_AGAIN, DISPLACED));
    if (giveBack === null) {
      webSocket.close(TRY_AGAIN, 'All libSQL connections of this cloud are in use');
      return;
    }
    const leave = this.#perDatabase.add(databaseId);
    this.#clients.add(client);
    const isAlive = () => {
      client.missed = 0;
    };
    webSocket.on('pong', isAlive).on('ping', isAlive);
    webSocket.on('message', (data: Buffer) => void this.#receive(client, data));
    webSocket.once('close', () => {
      this.#clients.delete(client);
      leave();
      giveBack();
      left.abort();
      void this.#deps.databases.closeSocket(client.database, client.socket).catch(() => {});
    });
    for (const data of early) void this.#receive(client, data);
  }

  async #receive(client: Client, data: Buffer): Promise<void> {
    const { webSocket } = client;
    client.underWay++;
    if (client.underWay >= MAX_UNDER_WAY) webSocket.pause();
    try {
      await this.#answer(client, data);
    } catch (thrown) {
      // The client has disconnected, which is not a failure.
      if (client.left.signal.aborted) return;
      const error = toAppError(thrown);
      if (error.code === 'internal_error') this.#deps.log.error({ err: thrown }, 'a Hrana message failed');
      webSocket.close(error.code === 'overloaded' ? TRY_AGAIN : 1011, textOf(error).slice(0, 120));
    } finally {
      client.underWay--;
      if (client.underWay < MAX_UNDER_WAY) webSocket.resume();
    }
  }

  async #answer(client: Client, data: Buffer): Promise<void> {
    const { bodies, databases, door } = this.#deps;
    const { webSocket, socket, encoding, left } = client;
    const { accountId } = client.database;
    const hello = readHello(data, encoding);
    if (hello !== null) return this.#logInAgain(client, hello);
    const held = bodies.hold(accountId);
    try {
      held.add(data.length);
      const found = client.checked.then(() => databases.find(client.databaseId, client.password));
      client.checked = found.catch(() => {});
      client.database = await found;
      if (left.signal.aborted) return;
      const { databaseId } = client.database;
      const message = { socket, encoding, body: data, signal: left.signal };
      const answer = await databases.receive(client.database, message);
      if (left.signal.aborted) return;
      if (answer === null) return webSocket.close(1002, 'The message is not valid Hrana');
      const read = door.holdUnread(answer.length, accountId);
      databases.egress.count(databaseId, answer.length);
      webSocket.send(answer, { binary: encoding === 'protobuf' }, read);
      while (webSocket.bufferedAmount > 0 && !left.signal.aborted) await sleep(STEP_MS);
    } finally {
      held.release();
    }
  }

  #ping(): void {
    for (const client of this.#clients) {
      // A busy client's pings are not read, so it may miss more.
      const most = client.underWay === 0 ? 1 : MOST_MISSED;
      if (client.missed >= most) client.webSocket.terminate();
      client.missed++;
      client.webSocket.ping();
    }
  }
}

function refuseHello({ webSocket, encoding }: Pick<Client, 'webSocket' | 'encoding'>, error: AppError): void {
  webSocket.send(helloError(encoding, { message: textOf(error), code: error.code.toUpperCase() }));
  webSocket.close(1008, 'The log-in was refused');
}

function anotherDatabase(): AppError {
  return new AppError('invalid_database_password', 'The password belongs to another database', {
    hint: 'Open one connection per database',
  });
}

function textOf({ message, hint }: AppError): string {
  return hint === undefined ? message : `${message}. ${hint}`;
}
