/**
 * A stand-in for a MongoDB server with authorization, which is not available. The protocol, log-in and
 * documents are those of our own engine; users, roles and administrators' permissions follow MongoDB's
 * manual. A test that passes here has not been run against a real server.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as v8 from 'node:v8';
import { type Document, Long, serialize } from 'bson';
import {
  CommandError,
  DocumentDatabase,
  decodeCommand,
  decodeDocument,
  encodeReply,
  readDocuments,
} from '../../libs/mongo/index.ts';
import { readMessages, wire } from '../../libs/mongo-wire/index.ts';
import { ClientLogin } from '../drivers/engines/mongodb/wire/client-login.ts';
import { OPEN_COMMANDS } from '../drivers/engines/mongodb/wire/connection-commands.ts';
import type { Login } from '../drivers/engines/mongodb/wire/tenant-logins.ts';
import { scramKeys } from '../drivers/scram-keys.ts';
import { systemClock } from '../platform/clock.ts';
import { newDatabase } from './new-database.ts';

interface User {
  readonly login: Login;
  readonly roles: readonly string[];
  readonly customData: Document;
  readonly authenticationRestrictions: readonly unknown[];
}

const READS = new Set(
  'find aggregate count distinct getMore listCollections listIndexes collStats dbStats'.split(' '),
);
const CLEANS = new Set(['delete', 'drop', 'dropIndexes']);
const ADMIN = 'createUser dropUser createRole grantRole dropDatabase find insert dbStats';
const ON_SERVER = 'listDatabases inprog killop killAnySession';
const PASSWORD = 'p:/@ word';
/** Stored beside the databases, which have separate names. */
const USERS_FILE = '.users';

export class OperatorMongodb {
  /** Commands of administrators. */
  readonly asked: Document[] = [];
  /** Operations reported as running. */
  readonly running: Document[] = [];
  readonly #folder: string;
  readonly #users: Map<string, User>;
  readonly #databases = new Map<string, DocumentDatabase>();
  readonly #sockets = new Map<Socket, User | null>();
  readonly #server: Server;

  private constructor(server: Server, folder: string) {
    this.#server = server;
    this.#folder = folder;
    const users = join(folder, USERS_FILE);
    this.#users = existsSync(users) ? v8.deserialize(readFileSync(users)) : new Map();
  }

  static async start(): Promise<OperatorMongodb> {
    const folder = mkdtempSync(join(tmpdir(), 'cloudlet-operator-mongodb-'));
    const mongodb = await OperatorMongodb.open(folder, 0);
    await mongodb.#keep('admin', { createUser: 'chief', pwd: PASSWORD, roles: ['root'] });
    await mongodb.#keep('admin', { createUser: 'weak', pwd: PASSWORD, roles: [] });
    return mongodb;
  }

  /** With the users and documents stored in that folder. */
  static async open(folder: string, port: number): Promise<OperatorMongodb> {
    const server = createServer();
    const mongodb = new OperatorMongodb(server, folder);
    server.on('connection', (socket) => void mongodb.#serve(socket).catch(() => socket.destroy()));
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    return mongodb;
  }

  url(user = 'chief', password = PASSWORD): string {
    const { port } = this.#server.address() as AddressInfo;
    return `mongodb://${user}:${encodeURIComponent(password)}@127.0.0.1:${port}/`;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets.keys()) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
    for (const database of this.#databases.values()) database.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #serve(socket: Socket): Promise<void> {
    this.#sockets.set(socket, null);
    socket.on('error', () => {}).on('close', () => this.#sockets.delete(socket));
    const logins = { find: async (db: string, name: string) => this.#mayCome(`${db}.${name}`) };
    const login = new ClientLogin({
      logins,
      admit: ({ database: { database, username } }) => {
        this.#sockets.set(socket, this.#users.get(`${database}.${username}`) ?? null);
      },
    });
    for await (const message of readMessages(socket, {
      isKnown: () => true,
      takeTurn: async () => () => {},
    })) {
      const [responseTo, opCode] = [message.readInt32LE(4), message.readInt32LE(12)];
      const isQuery = opCode === wire.OP.query;
      const command = isQuery ? decodeCommand(wire.readQuery(message)) : commandOf(message);
      const document = encodeReply(await this.#answer(socket, login, command));
      const reply = { requestId: 1, responseTo, document };
      const pieces = isQuery ? wire.writeQueryReply(reply) : wire.writeMessage(reply);
      for (const piece of pieces) socket.write(piece);
    }
  }

  #mayCome(key: string): Login | null {
    const user = this.#users.get(key);
    return user === undefined || user.authenticationRestrictions.length > 0 ? null : user.login;
  }

  async #answer(socket: Socket, login: ClientLogin, command: Document): Promise<Document> {
    const [name = ''] = Object.keys(command);
    const was = this.#sockets.get(socket) ?? null;
    // A user created again is a different one, and has none of the old permissions.
    const now = was && this.#users.get(`${was.login.database.database}.${was.login.database.username}`);
    const user = was?.login.database.databaseId === now?.login.database.databaseId ? (now ?? null) : null;
    const open = OPEN_COMMANDS.get(name);
    try {
      if (name === 'connectionStatus') return statusOf(user);
      if (open !== undefined) {
        const address = '127.0.0.1';
        const connected = {
          id: 1,
          address,
          login,
          user: null,
          now: () => new Date(),
          sessions: () => ({ current: 0, available: 0 }),
          ask: async () => ({}),
        };
        return await open({ ...connected, logOut: () => {} }, command, String(command.$db ?? 'admin'));
      }
      // The first connection from this host may create the first user.
      const isFirst = this.#users.size === 0 && name === 'createUser';
      if (isFirst || user?.roles.includes('root')) {
        const reply = await this.#administer(name, command);
        writeFileSync(join(this.#folder, USERS_FILE), v8.serialize(this.#users));
        return reply;
      }
      refuseUnless(user, name, command);
      return this.#databaseOf(command.$db).run(command, { readOnly: false });
    } catch (error) {
      if (error instanceof CommandError) return error.reply();
      throw error;
    }
  }

  async #administer(name: string, command: Document): Promise<Document> {
    this.asked.push(command);
    const db = String(command.$db);
    const key = `${db}.${command[name]}`;
    const ok = { ok: 1 };
    const ofDatabase = [...this.#users].filter(([each]) => each.startsWith(`${db}.`));
    switch (name) {
      case 'createUser':
        if (this.#users.has(key)) throw new CommandError(51_003, `User "${key}" already exists`);
        return this.#keep(db, command);
      case 'updateUser':
        if (!this.#users.has(key)) throw new CommandError(11, `Could not find user "${key}"`);
        return this.#keep(db, { ...command, createUser: command.updateUser });
      case 'dropUser':
        if (!this.#users.delete(key)) throw new CommandError(11, `Could not find user "${key}"`);
        return ok;
      case 'dropAllUsersFromDatabase':
        for (const [each] of ofDatabase) this.#users.delete(each);
        return ok;
      case 'usersInfo': {
        const isAll = command.usersInfo?.forAllDBs === true;
        const all = isAll ? [...this.#users] : ofDatabase;
        const wanted = typeof command.usersInfo === 'string' ? all.filter(([each]) => each === key) : all;
        return { users: wanted.map(([, user]) => describeUser(user)), ok: 1 };
      }
      case 'listDatabases':
        return { databases: [...this.#databases.keys()].map((each) => ({ name: each })), ok: 1 };
      case 'renameCollection':
        return this.#rename(command);
      case 'aggregate':
        return command.aggregate === 1 && db === 'admin' ? this.#currentOperations() : this.#run(command);
      case 'createRole':
      case 'dropAllRolesFromDatabase':
      case 'killAllSessions':
      case 'killOp':
        return ok;
      default:
        return this.#run(command);
    }
  }

  #run(command: Document): Document {
    return this.#databaseOf(command.$db).run(command, { readOnly: false });
  }

  async #keep(db: string, { createUser: username, ...about }: Document): Promise<Document> {
    const before = this.#users.get(`${db}.${username}`);
    const keys = about.pwd === undefined ? before?.login.keys : await scramKeys(String(about.pwd));
    if (keys === undefined) throw new CommandError('BadValue', 'a user needs a password');
    const database = before?.login.database ?? newDatabase({ database: db, username });
    this.#users.set(`${db}.${username}`, {
      login: { database, access: 'full', keys },
      roles:
        about.roles?.map((role: Document | string) => (typeof role === 'string' ? role : role.role)) ??
        before?.roles ??
        [],
      customData: about.customData ?? before?.customData ?? {},
      authenticationRestrictions:
        about.authenticationRestrictions ?? before?.authenticationRestrictions ?? [],
    });
    return { ok: 1 };
  }

  #rename({ renameCollection: from, to }: Document): Document {
    const [db = ''] = String(from).split('.');
    const [source, target] = [from, to].map((each) => String(each).slice(db.length + 1)) as [string, string];
    const run = (command: Document) => this.#run({ ...command, $db: db });
    const { cursor } = run({ listIndexes: source, cursor: {} });
    const indexes = cursor.firstBatch
      .map((each: Uint8Array) => decodeDocument(each))
      .filter(({ name }: Document) => name !== '_id_');
    const found = run({ listCollections: 1, filter: { name: source }, cursor: {} }).cursor.firstBatch;
    const options = found.map((each: Uint8Array | Document) =>
      each instanceof Uint8Array ? decodeDocument(each).options : each.options,
    );
    run({ drop: target });
    run({ create: target, ...options[0] });
    run({ aggregate: source, pipeline: [{ $out: target }], cursor: {} });
    if (indexes.length > 0) run({ createIndexes: target, indexes });
    return run({ drop: source });
  }

  #currentOperations(): Document {
    const users = [...this.#sockets.values()].filter((user) => user !== null);
    const idle = users.map(({ login: { database } }) => ({
      active: false,
      effectiveUsers: [{ user: database.username, db: database.database }],
    }));
    const firstBatch = [...idle, ...this.running];
    return { cursor: { firstBatch, id: Long.ZERO, ns: 'admin.$cmd.aggregate' }, ok: 1 };
  }

  #databaseOf(name: unknown): DocumentDatabase {
    const databaseName = String(name);
    const there = this.#databases.get(databaseName);
    const file = join(this.#folder, databaseName);
    const made =
      there ?? new DocumentDatabase({ file, databaseName, sizeLimit: () => 2 ** 30, clock: systemClock });
    this.#databases.set(databaseName, made);
    return made;
  }
}

function commandOf(message: Buffer): Document {
  const { body, sequences } = wire.readCommandMessage(message);
  const lists = sequences.map(({ identifier, bytes }) => ({ identifier, documents: readDocuments(bytes) }));
  const command = decodeCommand(body, lists);
  // A driver may send them in the body, as documents.
  if (Array.isArray(command.documents))
    command.documents = command.documents.map((each) =>
      each instanceof Uint8Array ? each : serialize(each),
    );
  return command;
}

function refuseUnless(user: User | null, name: string, { $db }: Document): void {
  const { database, username } = user?.login.database ?? {};
  const roles = new Set(user?.roles ?? []);
  const mayRead = roles.has('read') || roles.has('readWrite');
  const may =
    roles.has('readWrite') ||
    (READS.has(name) && mayRead) ||
    (CLEANS.has(name) && roles.has('cloudlet_cleaner')) ||
    name === 'killCursors';
  if (database === $db && may) return;
  throw new CommandError('Unauthorized', `not authorized on ${$db} to execute command ${name} (${username})`);
}

function statusOf(user: User | null): Document {
  const privileges = user?.roles.includes('root')
    ? [
        { resource: { db: '', collection: '' }, actions: ADMIN.split(' ') },
        { resource: { cluster: true }, actions: ON_SERVER.split(' ') },
      ]
    : [];
  return { authInfo: { authenticatedUserPrivileges: privileges }, ok: 1 };
}

function describeUser({
  login: { database },
  roles,
  customData,
  authenticationRestrictions,
}: User): Document {
  const { database: db, username: user } = database;
  return { user, db, roles: roles.map((role) => ({ role, db })), customData, authenticationRestrictions };
}
