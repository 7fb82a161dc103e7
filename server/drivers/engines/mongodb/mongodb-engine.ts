/**
 * MongoDB, built in: our router (mongo-router.ts) receives drivers' commands, and a process per
 * database (child.ts) executes them on a SQLite file.
 */
import { join } from 'node:path';
import { ARCHIVE_KIND, CommandError, SERVER_VERSION, TailWaits } from '../../../../libs/mongo/index.ts';
import type {
  Access,
  Endpoint,
  Engine,
  EngineDatabase,
  Measured,
  Readiness,
  TestDatabase,
  UserConnection,
} from '../../../databases/engine.ts';
import { isAppError } from '../../../platform/errors.ts';
import { programFile } from '../../../platform/program-files.ts';
import { socketPair } from '../../dialed.ts';
import { ChildEngine, type ChildEngineOptions } from '../../engine-children/child-engine.ts';
import { DISPLACED_HINT, dataDamaged } from '../../engine-children/child-failures.ts';
import type { ChildEngineKind } from '../../engine-children/child-kind.ts';
import { ChildGone, ChildRefused } from '../../engine-children/tenant-child.ts';
import {
  type Address,
  endpointOf,
  hostAndPort,
  type ServerTls,
  verifiedEndpointOf,
} from '../../managed-server/links/server-tls.ts';
import { scramKeys } from '../../scram-keys.ts';
import { MongoRouter, type MongoRouterDeps } from './wire/mongo-router.ts';
import { TenantLogins } from './wire/tenant-logins.ts';

export interface MongodbEngineOptions extends ChildEngineOptions {
  readonly alarms: MongoRouterDeps['alarms'];
  /** For users on other hosts, and local ones that use TLS; null: local users without TLS only. */
  readonly tls?: ServerTls | null;
  /** The router's port at its first start; if taken, the next free one. */
  readonly firstPort: number;
  readonly ports?: MongoRouterDeps['ports'];
  readonly maxSessions?: MongoRouterDeps['maxSessions'];
  /** Whether no driver may connect. */
  readonly isPrivate?: boolean;
  /** Called with the bytes of each reply to a driver. */
  readonly sent?: (database: EngineDatabase, bytes: number) => void;
  /** Why an existing server is not used, for messages; null: no server exists. */
  readonly whyNoServer?: string | null;
}

const WHAT_IT_IS = "Cloudlet's own engine, not a MongoDB server: unsupported commands are refused by name";

/** Marks the version as ours, unlike any of MongoDB's servers. */
export const BUILT_IN_VERSION = `${SERVER_VERSION}-cloudlet`;

const KIND: ChildEngineKind = {
  program: {
    name: 'mongodb',
    entry: programFile('drivers/engines/mongodb/child/child'),
    // The documents of a command (a sort, a group, a reply) are objects in memory.
    heapMb: 192,
    youngMb: 4,
    packages: ['bson', 'mingo', 'nodes2ts', '@orama/stemmers/english', '@orama/stopwords/english'],
  },
  version: BUILT_IN_VERSION,
  dump: { format: 'archive', contentType: 'application/octet-stream' },
  loaded: ARCHIVE_KIND,
  batch: ({ whole }) => whole().statement,
  spareMs: 1000,
  errorName: 'UnknownError',
  timeLimitName: 'MaxTimeMSExpired',
};

export class MongodbEngine extends ChildEngine implements Engine {
  readonly name = 'mongodb';
  readonly #whatItIs: string;
  readonly #logins: TenantLogins;
  readonly #router: MongoRouter;
  readonly #tls: ServerTls | null;
  readonly #isPrivate: boolean;
  readonly #tails = new TailWaits();
  readonly #clock: MongodbEngineOptions['clock'];

  constructor(options: MongodbEngineOptions) {
    super(KIND, options);
    this.#isPrivate = options.isPrivate === true;
    const { folder, clock, alarms, tls = null, firstPort, whyNoServer = null } = options;
    this.#tls = tls;
    this.#clock = clock;
    this.#whatItIs = whyNoServer === null ? WHAT_IT_IS : `${WHAT_IT_IS}; ${whyNoServer}`;
    const logins = new TenantLogins(join(folder, '.logins'), alarms);
    this.#logins = logins;
    this.#router = new MongoRouter({
      logins,
      folder: join(folder, '.router'),
      firstPort,
      tls,
      alarms,
      ports: options.ports,
      maxSessions: options.maxSessions,
      now: () => new Date(clock.now()),
      execute: async (database, sections) => {
        const reply = await this.#execute(database, sections);
        options.sent?.(database, reply.length);
        return reply;
      },
    });
  }

  override async readiness(): Promise<Readiness> {
    const { problem } = this.#router;
    const readiness = await super.readiness();
    if (problem === null) return { ...readiness, reason: readiness.reason ?? this.#whatItIs };
    return { ...readiness, available: false, reason: problem.message, fix: problem.hint ?? null };
  }

  override async prepare(): Promise<void> {
    await Promise.all([super.prepare(), this.#isPrivate ? undefined : this.#router.listen()]);
  }

  /** Opens the previous port, without waiting. */
  wake(): void {
    if (this.#router.isMade) this.prepare().catch(() => {});
  }

  override async provision(database: EngineDatabase, password: string): Promise<void> {
    // The process starts in the background, so that the first connection is fast.
    const keep = async () => this.#logins.keep(database, { keys: await scramKeys(password) });
    await Promise.all([keep(), super.provision(database, password), this.#router.everywhere()]);
  }

  /** Does not restart the process: Cloudlet checks the password. */
  override async rotate(database: EngineDatabase, password: string): Promise<void> {
    await this.#logins.keep(database, { keys: await scramKeys(password) });
    this.#router.endSessions(database.database);
  }

  override async restrict(database: EngineDatabase, access: Access): Promise<void> {
    await this.#logins.keep(database, { access });
    if (access === 'none') this.#router.endSessions(database.database);
    await super.restrict(database, access);
  }

  async isLimited({ database, limits }: EngineDatabase): Promise<boolean> {
    const login = await this.#logins.find(database);
    return login === null || login.database.limits.connections === limits.connections;
  }

  async endpoint(database: EngineDatabase): Promise<Endpoint> {
    const [{ port }, tls] = [this.#router, this.#tls];
    return {
      ...withUri(endpointOf(port, tls), database),
      // The CA is created on first use.
      get verified() {
        const verified = verifiedEndpointOf(port, tls);
        return verified === null ? undefined : withUri(verified, database);
      },
    };
  }

  /** Replies of this connection are counted like those of all. */
  async connect({ accountId }: EngineDatabase): Promise<UserConnection> {
    await this.#router.listen();
    const [near, far] = await socketPair();
    this.#router.take(far, accountId);
    return { stream: near, isUncounted: false };
  }

  async testDatabases(database: EngineDatabase): Promise<readonly TestDatabase[]> {
    const { signal } = new AbortController();
    const { statementMs: timeoutMs } = database.limits;
    const { body } = await this.ask(database, { kind: 'tests' }, { timeoutMs, signal });
    const found = JSON.parse(body.toString()) as { name: string; sizeBytes: number }[];
    return found.map(({ name, sizeBytes }) => ({ name, sizeBytes, madeBy: database.database }));
  }

  override async measure(database: EngineDatabase): Promise<Measured> {
    return { ...(await super.measure(database)), connections: this.#router.sessionsOf(database.database) };
  }

  override async drop(name: string): Promise<void> {
    await this.#logins.remove(name);
    this.#router.endSessions(name);
    await super.drop(name);
  }

  override async close(): Promise<void> {
    await this.#router.close();
    await super.close();
  }

  /** The reply to a command, failed or not; a tailable cursor's may come later. */
  async #execute(database: EngineDatabase, sections: Buffer): Promise<Uint8Array> {
    const clock = this.#clock;
    const from = clock.monotonic();
    try {
      for (;;) {
        const { head, body } = await this.call(database, { kind: 'command' }, { body: sections });
        const leftMs = typeof head.waitMs === 'number' ? from + head.waitMs - clock.monotonic() : 0;
        if (head.waitMs === null) this.#tails.wake(database.database);
        if (leftMs <= 0) return body;
        await this.#tails.wait(database.database, leftMs);
      }
    } catch (error) {
      const { lostReply } = await import('./lost-transactions.ts');
      return lostReply(asReply(error), sections);
    }
  }
}

/** Drivers open 100 connections by default: the URI limits them to half of a database's connections. */
function withUri(address: Address, { database, username, limits }: EngineDatabase): Endpoint {
  const pool = Math.max(1, Math.floor(limits.connections / 2));
  const options = [`authSource=${database}`, 'directConnection=true', `maxPoolSize=${pool}`];
  if (address.tls) options.push('tls=true');
  if (address.ca !== null) options.push('tlsCAFile=ca.pem');
  const end = `@${hostAndPort(address)}/${database}?${options.join('&')}`;
  return { ...address, uri: (password) => `mongodb://${username}:${password}${end}` };
}

/** These codes do not suggest to a driver that the server changed, so that it keeps its connections. */
function asReply(error: unknown): CommandError {
  if (error instanceof ChildGone && error.why === 'silent') {
    const what = 'A command timed out and its database process was terminated, with all its other commands';
    return new CommandError('MaxTimeMSExpired', `${what}. Query less data at once, or add an index`);
  }
  if (error instanceof ChildGone && error.why === 'displaced')
    return new CommandError(11601, `${error.message}. ${DISPLACED_HINT}`);
  if (error instanceof ChildRefused && error.isDamaged) return asReply(dataDamaged(error.message, error));
  if (error instanceof ChildRefused)
    return new CommandError(error.isDiskFull ? 'OutOfDiskSpace' : 8, error.message);
  if (isAppError(error, 'database_not_ready')) return new CommandError('Unauthorized', error.message);
  if (isAppError(error, 'data_missing') || isAppError(error, 'data_damaged'))
    return new CommandError('DataCorruptionDetected', `${error.message}. ${error.hint}`);
  const why =
    'The database process exited during the request. Check whether the last write succeeded, then retry';
  return new CommandError(11601, error instanceof ChildGone ? why : (error as Error).message);
}
