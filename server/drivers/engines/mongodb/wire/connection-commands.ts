/** Commands that concern a connection and not a database. */
import { createHash } from 'node:crypto';
import { Binary, type Document, ObjectId } from 'bson';
import { CommandError, SERVER_VERSION, TRANSACTION_SECONDS } from '../../../../../libs/mongo/index.ts';
import { wire } from '../../../../../libs/mongo-wire/index.ts';
import type { ClientLogin } from './client-login.ts';
import type { Login } from './tenant-logins.ts';

/** SERVER_VERSION's wire version. */
const MAX_WIRE_VERSION = 21;
const MAX_DOCUMENT_BYTES = 16 * 2 ** 20;
const MAX_BATCH = 100_000;
const SESSION_MINUTES = 30;
const SERVICE_ID = new ObjectId();

/** A connection, as its commands know it. */
export interface Connected {
  readonly id: number;
  /** `127.0.0.1:40000`. */
  readonly address: string;
  readonly login: ClientLogin;
  /** The authenticated user. */
  readonly user: Login | null;
  now(): Date;
  /** Connections to the user's database: how many are open, and how many more are allowed. */
  sessions(): { current: number; available: number };
  /** The reply of the user's database to a command. */
  ask(command: Document): Promise<Document>;
  logOut(): void;
}

type Command = (connected: Connected, command: Document, database: string) => Document | Promise<Document>;

const hello: Command = async (connected, command) => ({
  ...(command.helloOk === true || command.hello !== undefined ? { helloOk: true } : {}),
  ...(command.hello === undefined ? { ismaster: true } : { isWritablePrimary: true }),
  maxBsonObjectSize: MAX_DOCUMENT_BYTES,
  maxMessageSizeBytes: wire.MAX_MESSAGE_BYTES,
  maxWriteBatchSize: MAX_BATCH,
  localTime: connected.now(),
  logicalSessionTimeoutMinutes: SESSION_MINUTES,
  connectionId: connected.id,
  minWireVersion: 0,
  maxWireVersion: MAX_WIRE_VERSION,
  readOnly: false,
  // Requested by `loadBalanced=true`: the driver then treats all connections as one service.
  ...(command.loadBalanced === true ? { serviceId: SERVICE_ID } : {}),
  ...(command.saslSupportedMechs === undefined ? {} : { saslSupportedMechs: ['SCRAM-SHA-256'] }),
  ...(await speculative(connected, command.speculativeAuthenticate)),
  ok: 1,
});

/** Ignores a failed speculative login: the driver retries with the full exchange and gets the error then. */
async function speculative({ login }: Connected, command: unknown): Promise<Document> {
  if (typeof command !== 'object' || command === null) return {};
  const { db, saslStart } = command as Document;
  if (saslStart === undefined || typeof db !== 'string') return {};
  try {
    return { speculativeAuthenticate: await login.start(command as Document, db) };
  } catch (error) {
    if (error instanceof CommandError) return {};
    throw error;
  }
}

const OPEN: Readonly<Record<string, Command>> = {
  hello,
  isMaster: hello,
  ismaster: hello,
  ping: () => ({ ok: 1 }),
  saslStart: ({ login }, command, database) => login.start(command, database),
  saslContinue: ({ login }, command) => login.proceed(command),
  logout: (connected) => {
    connected.logOut();
    return { ok: 1 };
  },
  endSessions: () => ({ ok: 1 }),
  whatsmyuri: ({ address }) => ({ you: address, ok: 1 }),
  buildInfo: () => BUILD_INFO,
  buildinfo: () => BUILD_INFO,
  connectionStatus: ({ user }, { showPrivileges }) => {
    const { username, database = '' } = user?.database ?? {};
    const privileges =
      user === null ? [] : [{ resource: { db: database, collection: '' }, actions: ACTIONS }];
    return {
      authInfo: {
        authenticatedUsers: user === null ? [] : [{ user: username, db: database }],
        authenticatedUserRoles: user === null ? [] : rolesOf(database),
        ...(showPrivileges === true ? { authenticatedUserPrivileges: privileges } : {}),
      },
      ok: 1,
    };
  },
};

const rolesOf = (db: string) => [
  { role: 'readWrite', db },
  { role: 'dbAdmin', db },
];
/** Compass displays the permitted actions. */
const ACTIONS = (
  'bypassDocumentValidation collMod collStats createCollection createIndex dbStats dropCollection ' +
  'dropDatabase dropIndex find indexStats insert listCollections listIndexes remove update'
).split(' ');

/** Commands for a whole server: refused with the errors of a standalone server for a database's user. */
const REFUSED: Readonly<Record<string, CommandError>> = {
  replSetGetStatus: new CommandError('NoReplicationEnabled', 'not running with --replSet'),
  replSetGetConfig: new CommandError('NoReplicationEnabled', 'not running with --replSet'),
  ...Object.fromEntries(
    // `bulkWrite` belongs to `admin`; drivers do not send it to our version.
    ['bulkWrite', 'listShards', 'enableSharding', 'shardCollection'].map((name) => [
      name,
      new CommandError('CommandNotFound', `no such command: '${name}'`),
    ]),
  ),
};

const BUILD_INFO: Document = {
  version: SERVER_VERSION,
  gitVersion: 'cloudlet',
  versionArray: [...SERVER_VERSION.split('.').map(Number), 0],
  modules: ['cloudlet'],
  storageEngines: ['sqlite'],
  bits: 64,
  debug: false,
  maxBsonObjectSize: MAX_DOCUMENT_BYTES,
  ok: 1,
};

const PARAMETERS: Document = {
  featureCompatibilityVersion: { version: SERVER_VERSION.slice(0, 3) },
  transactionLifetimeLimitSeconds: TRANSACTION_SECONDS,
};

const USER: Readonly<Record<string, Command>> = {
  listDatabases: (connected, command) => connected.ask(command),
  getParameter: (_, command) => {
    const wanted = Object.entries(PARAMETERS).filter(
      ([name]) => command.getParameter === '*' || name in command,
    );
    if (wanted.length === 0) throw new CommandError('InvalidOptions', 'no option found to get');
    return { ...Object.fromEntries(wanted), ok: 1 };
  },
  refreshSessions: () => ({ ok: 1 }),
  // Drivers send it to `admin`; both names include the database.
  renameCollection: (connected, command) =>
    connected.ask({ ...command, $db: String(command.renameCollection).split('.', 1)[0] }),
  serverStatus: async (connected) => {
    const { current, available } = connected.sessions();
    const { ok: _ok, ...ofDatabase } = await connected.ask({ serverStatus: 1 });
    const connections = { current, available, active: current };
    return { ...ofDatabase, process: 'mongod', connections, localTime: connected.now(), ok: 1 };
  },
  hostInfo: (connected) => ({
    system: { currentTime: connected.now(), cpuAddrSize: 64, cpuArch: process.arch },
    os: { type: 'Linux', name: 'Cloudlet', version: SERVER_VERSION },
    extra: {},
    ok: 1,
  }),
  getCmdLineOpts: () => ({ argv: ['mongod'], parsed: {}, ok: 1 }),
  getLog: (_, command) => {
    if (command.getLog === '*') return { names: ['global', 'startupWarnings'], ok: 1 };
    if (command.getLog === 'global' || command.getLog === 'startupWarnings')
      return { totalLinesWritten: 0, log: [], ok: 1 };
    throw new CommandError('OperationFailed', `No log named '${String(command.getLog)}'`);
  },
  usersInfo: ({ user }, command) => {
    const { username = '', database = '' } = user?.database ?? {};
    const wanted = command.usersInfo?.user ?? command.usersInfo;
    const isOwn = typeof wanted !== 'string' || wanted === username;
    const own = { _id: `${database}.${username}`, user: username, db: database, roles: rolesOf(database) };
    return { users: isOwn ? [{ ...own, mechanisms: ['SCRAM-SHA-256'] }] : [], ok: 1 };
  },
  ...Object.fromEntries(
    Object.entries(REFUSED).map(([name, error]) => [
      name,
      () => {
        throw error;
      },
    ]),
  ),
};

/** The stage that lists sessions; this engine only knows that of the command. */
export const SESSIONS_STAGE = '$listLocalSessions';

/**
 * An aggregation of `$listLocalSessions` as one that the user's database runs; null: another aggregation.
 * Throws CommandError for sessions of other users.
 */
export function asOwnSessions(connected: Connected, command: Document): Document | null {
  const [first, ...rest] = Array.isArray(command.pipeline) ? command.pipeline : [];
  if (command.aggregate !== 1 || first?.[SESSIONS_STAGE] === undefined) return null;
  const { username = '', database = '' } = connected.user?.database ?? {};
  const { allUsers, users } = first[SESSIONS_STAGE];
  const isOwn = ({ user: name, db }: Document) => name === username && db === database;
  if (allUsers || (users !== undefined && !(Array.isArray(users) && users.every(isOwn))))
    throw new CommandError('Unauthorized', `not authorized to list sessions of other users than ${username}`);
  const uid = new Binary(createHash('sha256').update(`${username}@${database}`).digest());
  const id = command.lsid?.id;
  const own = id === undefined ? [] : [{ _id: { id, uid }, lastUse: connected.now() }];
  return { ...command, $db: database, pipeline: [{ $documents: own }, ...rest] };
}

/** Commands allowed without a login. */
export const OPEN_COMMANDS: ReadonlyMap<string, Command> = new Map(Object.entries(OPEN));
/** Drivers send these to `admin`, whichever database the transaction is on. */
export const TRANSACTION_ENDS: ReadonlySet<string> = new Set(['commitTransaction', 'abortTransaction']);
/** Commands for authenticated users on any database; they reveal nothing about others. */
export const USER_COMMANDS: ReadonlyMap<string, Command> = new Map(Object.entries(USER));
