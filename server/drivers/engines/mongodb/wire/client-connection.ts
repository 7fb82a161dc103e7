/** One connection of a driver: reads its messages one by one and answers each. */
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Document, deserialize, serialize } from 'bson';
import { assertStableApi, CommandError, Malformed } from '../../../../../libs/mongo/index.ts';
import { readMessages, scanCommand, wire } from '../../../../../libs/mongo-wire/index.ts';
import type { EngineDatabase } from '../../../../databases/engine.ts';
import { AppError } from '../../../../platform/errors.ts';
import { isTestName } from '../../shared/test-databases.ts';
import { ClientLogin } from './client-login.ts';
import {
  asOwnSessions,
  type Connected,
  OPEN_COMMANDS,
  SESSIONS_STAGE,
  TRANSACTION_ENDS,
  USER_COMMANDS,
} from './connection-commands.ts';
import type { Login, TenantLogins } from './tenant-logins.ts';

/** For commands that are handled here and not in the process of a database. */
const MAX_OWN_BYTES = 32 * 1024;
/** For a reply that the client does not read. */
const DRAIN_MS = 60_000;
/** For the first message of a connection, encryption included. */
const FIRST_MS = 5000;
/** Idle timeout of an unauthenticated connection; drivers' monitors send a command at least every minute. */
const STRANGER_IDLE_MS = 2 * 60_000;
/** Messages of an unauthenticated connection: burst, and per second. Responses cost more than requests. */
const STRANGER_MESSAGES = 50;
const STRANGER_MESSAGES_PER_SECOND = 10;

export interface ConnectionDeps {
  readonly logins: Pick<TenantLogins, 'find'>;
  readonly now: () => Date;
  /** Throws CommandError when the connection limit is reached. */
  readonly admit: (login: Login, connection: ClientConnection) => void;
  /** Called after a logout; the connection is unauthenticated again. */
  readonly loggedOut: (connection: ClientConnection) => void;
  /** A message arrived. */
  readonly heard: (connection: ClientConnection) => void;
  /** Resolves when that database may receive a large message; call the result to end the turn. */
  readonly takeTurn: (database: string) => Promise<() => void>;
  /** Executes a command; resolves with the reply. Never rejects. */
  readonly execute: (database: EngineDatabase, sections: Buffer) => Promise<Uint8Array>;
  readonly sessionsOf: (database: string) => number;
  /** Resolves with the socket to read from: a new one if the client asks for TLS. */
  readonly enter: (socket: Socket, host: string) => Promise<Socket>;
}

export class ClientConnection implements Connected {
  readonly id: number;
  readonly address: string;
  readonly host: string;
  readonly login: ClientLogin;
  #socket: Socket;
  readonly #deps: ConnectionDeps;
  #user: Login | null = null;
  #lastReply = 0;
  #messagesLeft = STRANGER_MESSAGES;
  #countedAt: number;

  /** `host`: the client's address, which may differ from the socket's. */
  constructor(id: number, { socket, host }: { socket: Socket; host: string }, deps: ConnectionDeps) {
    this.id = id;
    this.host = host;
    this.address = `${host}:${socket.remotePort}`;
    this.#socket = socket;
    this.#deps = deps;
    this.#countedAt = deps.now().getTime();
    this.login = new ClientLogin({ logins: deps.logins, admit: (login) => this.#admit(login) });
  }

  get user(): Login | null {
    return this.#user;
  }

  /** Resolves when the connection is gone. */
  async serve(): Promise<void> {
    this.#socket
      .on('error', () => {})
      .setNoDelay(true)
      .setKeepAlive(true);
    const first = setTimeout(() => this.end(), FIRST_MS);
    try {
      const socket = await this.#deps.enter(this.#socket, this.host);
      if (socket !== this.#socket) socket.on('error', () => {});
      this.#socket = socket;
      socket.setTimeout(STRANGER_IDLE_MS, () => socket.destroy());
      const isKnown = () => this.#user !== null;
      const takeTurn = () => this.#deps.takeTurn(this.#user?.database.database ?? '');
      for await (const message of readMessages(socket, { isKnown, takeTurn })) {
        clearTimeout(first);
        this.#deps.heard(this);
        if (this.#user === null) await this.#strangersTurn();
        await this.#answer(message);
        if (this.login.isExhausted) break;
      }
    } catch {
      // A protocol error or a disconnect: no reply is possible.
    } finally {
      clearTimeout(first);
      this.end();
    }
  }

  /** Closes at once, even during a command. */
  end(): void {
    this.#socket.destroy();
  }

  now(): Date {
    return this.#deps.now();
  }

  sessions(): { current: number; available: number } {
    const { database = '', limits } = this.#user?.database ?? {};
    const current = this.#deps.sessionsOf(database);
    return { current, available: Math.max(0, (limits?.connections ?? 0) - current) };
  }

  async ask(command: Document): Promise<Document> {
    const own = (this.#user as Login).database;
    const database = isTestName(String(command.$db)) ? command.$db : own.database;
    const body = serialize({ ...command, $db: database });
    return deserialize(await this.#deps.execute(own, Buffer.concat([Buffer.alloc(1), body])));
  }

  logOut(): void {
    if (this.#user === null) return;
    this.#deps.loggedOut(this);
    this.#user = null;
    this.#socket.setTimeout(STRANGER_IDLE_MS);
  }

  #admit(login: Login): void {
    this.logOut();
    this.#deps.admit(login, this);
    this.#user = login;
    this.#socket.setTimeout(0);
  }

  /** Waits while an unauthenticated client exceeds its message rate; further bytes stay in its socket. */
  async #strangersTurn(): Promise<void> {
    const now = this.#deps.now().getTime();
    const more = (Math.max(0, now - this.#countedAt) * STRANGER_MESSAGES_PER_SECOND) / 1000;
    this.#messagesLeft = Math.min(STRANGER_MESSAGES, this.#messagesLeft + more) - 1;
    this.#countedAt = now;
    if (this.#messagesLeft < 0) await sleep(1000 / STRANGER_MESSAGES_PER_SECOND);
  }

  async #answer(message: Buffer): Promise<void> {
    const [requestId, opCode] = [message.readInt32LE(4), message.readInt32LE(12)];
    if (opCode === wire.OP.query) {
      const document = await this.#greet(wire.readQuery(message));
      await this.#send(wire.writeQueryReply({ ...this.#replyTo(requestId), document }));
    } else if (opCode === wire.OP.message) {
      const command = wire.readCommandMessage(message);
      const document = await this.#run(command);
      if (command.moreToCome) return;
      await this.#send(wire.writeMessage({ ...this.#replyTo(requestId), document }));
    } else throw new Malformed(`unsupported opcode: ${opCode}`);
  }

  #replyTo(responseTo: number) {
    this.#lastReply = (this.#lastReply + 1) & 0x7fffffff;
    return { requestId: this.#lastReply, responseTo };
  }

  /** Handles the legacy handshake that drivers send first. */
  async #greet(query: Buffer): Promise<Uint8Array> {
    const { name } = scanCommand(query);
    if (/^(?:hello|ismaster)$/i.test(name)) return this.#runOwn(name, query, 'admin');
    return failure(new CommandError(352, `Unsupported OP_QUERY command: ${name}`));
  }

  async #run({ body, bytes }: wire.CommandMessage): Promise<Uint8Array> {
    const { name, database } = scanCommand(body);
    if (database === null) return failure(new CommandError(40571, 'OP_MSG requests require a $db argument'));
    if (OPEN_COMMANDS.has(name)) return this.#runOwn(name, body, database);
    if (this.#user === null)
      return failure(new CommandError('Unauthorized', `Command ${name} requires authentication`));
    if (USER_COMMANDS.has(name)) return this.#runOwn(name, body, database);
    const own = this.#user.database;
    if (name === 'aggregate' && body.length <= MAX_OWN_BYTES && body.includes(SESSIONS_STAGE)) {
      const reply = await this.#listSessions(own, body);
      if (reply !== null) return reply;
    }
    const isOwn = database === own.database || isTestName(database);
    if (!isOwn && !(database === 'admin' && TRANSACTION_ENDS.has(name)))
      return failure(notAuthorized(own.database, database, name));
    return this.#deps.execute(own, bytes);
  }

  /** Null: the command only names the stage. */
  async #listSessions(own: EngineDatabase, body: Buffer): Promise<Uint8Array | null> {
    try {
      const asked = readBody(body);
      const command = asOwnSessions(this, asked);
      if (command === null) return null;
      assertStableApi(asked);
      return await this.#deps.execute(own, Buffer.concat([Buffer.alloc(1), serialize(command)]));
    } catch (error) {
      return failure(error);
    }
  }

  async #runOwn(name: string, body: Buffer, database: string): Promise<Uint8Array> {
    try {
      if (body.length > MAX_OWN_BYTES) throw new CommandError('InvalidLength', `${name} is too long`);
      const command = readBody(body);
      assertStableApi(command);
      const run = OPEN_COMMANDS.get(name) ?? USER_COMMANDS.get(name);
      return serialize((await run?.(this, command, database)) ?? {});
    } catch (error) {
      return failure(error);
    }
  }

  async #send(pieces: readonly Uint8Array[]): Promise<void> {
    const socket = this.#socket;
    if (socket.destroyed) return;
    socket.cork();
    const isTaken = pieces.map((piece) => socket.write(piece)).every(Boolean);
    socket.uncork();
    if (isTaken) return;
    const timer = setTimeout(() => socket.destroy(), DRAIN_MS);
    const { promise, resolve } = Promise.withResolvers<void>();
    socket.once('drain', resolve).once('close', resolve);
    await promise;
    socket.off('drain', resolve).off('close', resolve);
    clearTimeout(timer);
  }
}

function notAuthorized(own: string, database: string, name: string): CommandError {
  const hint =
    database === 'admin' || database === 'config' || database === 'local'
      ? ''
      : `: besides ${own}, only test databases are allowed, named test…, …_test… or …_shadow…`;
  return new CommandError('Unauthorized', `not authorized on ${database} to execute command ${name}${hint}`);
}

function readBody(body: Buffer): Document {
  try {
    return deserialize(body);
  } catch (error) {
    throw new CommandError(22, `invalid BSON: ${(error as Error).message}`);
  }
}

function failure(error: unknown): Uint8Array {
  const said = error instanceof AppError ? `${error.message}. ${error.hint}` : 'internal error';
  return serialize((error instanceof CommandError ? error : new CommandError(8, said)).reply());
}
