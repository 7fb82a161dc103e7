/**
 * A MongoDB server as an engine, the operator's or the one of this host: each database has its own
 * users. Uses only the driver; never run against a MongoDB server, because none is available
 * (docs/databases/mongodb.md).
 */
import { closeSync, mkdirSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { serialize } from 'bson';
import { type Document, type MongoClient, MongoError, MongoServerError } from 'mongodb';
import {
  ARCHIVE_FILE,
  ARCHIVE_KIND,
  BrokenArchive,
  CommandError,
  decodeDocument,
} from '../../../../../libs/mongo/index.ts';
import {
  type Access,
  type Dump,
  type DumpHow,
  type Endpoint,
  type Engine,
  type EngineDatabase,
  LoadFailed,
  type Measured,
  type Query,
  QueryFailed,
  type QueryResult,
  type Readiness,
  type Table,
} from '../../../../databases/engine.ts';
import type { LoadHow } from '../../../../databases/left-out.ts';
import { JsonText } from '../../../../platform/json/json.ts';
import { receiveFile } from '../../../engine-children/load-file.ts';
import type { EngineServer } from '../../../managed-server/database-server.ts';
import { connectionEnded, timedOut } from '../../../managed-server/database-server.ts';
import { markOf, rolePassword } from '../../../managed-server/links/server-secret.ts';
import { hostAndPort } from '../../../managed-server/links/server-tls.ts';
import { caOf } from '../../../managed-server/links/server-url.ts';
import { ServerRounds } from '../../../managed-server/processes/server-rounds.ts';
import { writtenResult } from '../../shared/written-result.ts';
import { commandOf, describeCollection, resultOf } from '../query-results.ts';
import type { MongodbDeployment } from './deployment.ts';
import { clientOf } from './operator-mongodb.ts';
import { archiveOf, loadArchive } from './server-archives.ts';
import { readerOf, TenantUsers, writerOf } from './tenant-users.ts';

const TITLE = 'MongoDB';
const ROUND_MS = 5000;
const TIME_IS_OVER = 50;
const EXACT = { promoteValues: false, bsonRegExp: true } as const;
const TENANT = /^[uqr]_[a-z0-9]{16}$/;

export interface ServerMongodbOptions {
  /** Cloudlet's directory for files being loaded. */
  readonly folder: string;
  readonly deployment: MongodbDeployment;
}

export class ServerMongodb implements Engine {
  readonly name = 'mongodb';
  readonly dumpFormats = ['archive'];
  readonly #folder: string;
  readonly #deployment: MongodbDeployment;
  readonly #server: EngineServer;
  readonly #users: TenantUsers;
  readonly #rounds: ServerRounds;
  /** The latest request for each database, by its name on the server. */
  readonly #known = new Map<string, EngineDatabase>();
  /** Connections per database at the last poll. */
  #connections: ReadonlyMap<string, number> = new Map();
  #loads = 0;

  constructor({ folder, deployment }: ServerMongodbOptions) {
    this.#folder = folder;
    this.#deployment = deployment;
    this.#server = deployment.server;
    this.#users = new TenantUsers(deployment.client, () => markOf(deployment.secret()));
    const round = { everyMs: ROUND_MS, work: () => this.#checkOperations() };
    this.#rounds = new ServerRounds(() => this.#server.isUp, [round]);
  }

  get #client(): MongoClient {
    return this.#deployment.client();
  }

  readiness(): Promise<Readiness> {
    return this.#deployment.readiness();
  }

  prepare(): Promise<void> {
    return this.#server.up();
  }

  /** Opens the existing server, without waiting. */
  wake(): void {
    if (this.#server.isMade) this.#server.up().catch(() => {});
  }

  async provision(database: EngineDatabase, password: string): Promise<void> {
    const { database: name, username } = database;
    await this.#ready(database);
    const ours = [readerOf(name), writerOf(name)].map((user) => [user, this.#passwordOf(user)]);
    await this.#users.make(name, { [username]: password, ...Object.fromEntries(ours) });
  }

  async rotate(database: EngineDatabase, password: string): Promise<void> {
    await this.#ready(database);
    await this.#users.renew(database.database, database.username, password);
  }

  async restrict(database: EngineDatabase, access: Access): Promise<void> {
    const { database: name, username } = database;
    await this.#ready(database);
    await this.#users.allow(name, [username, writerOf(name)], access);
  }

  async endpoint({ database, username }: Pick<EngineDatabase, 'database' | 'username'>): Promise<Endpoint> {
    const address = this.#deployment.address();
    const { host, port, tls, replicaSet } = address;
    const ca = tls ? caOf(address) : null;
    // A standalone server acknowledges writes in memory, unless the journal is requested.
    const options = new URLSearchParams({ authSource: database, journal: 'true' });
    if (replicaSet !== null) options.set('replicaSet', replicaSet);
    if (tls) options.set('tls', 'true');
    if (ca !== null) options.set('tlsCAFile', 'ca.pem');
    const end = `@${hostAndPort({ host, port })}/${database}?${options}`;
    return { host, port, tls, ca, uri: (password) => `mongodb://${username}:${password}${end}` };
  }

  /** Measured by unpacked documents: the size on disk is known a minute later. */
  async measure(database: EngineDatabase): Promise<Measured> {
    await this.#ready(database);
    const { dataSize, indexSize } = await this.#client.db(database.database).command({ dbStats: 1 });
    const connections = this.#connections.get(database.database) ?? 0;
    const sizeBytes = Number(dataSize) + Number(indexSize);
    return { sizeBytes, connections, statements: null, rowsReturned: null, rowsWritten: null };
  }

  /** Databases with connections at the last poll. */
  takeActive(): readonly string[] {
    return [...this.#connections.keys()].flatMap((name) => this.#known.get(name)?.databaseId ?? []);
  }

  async query(database: EngineDatabase, query: Query): Promise<QueryResult> {
    await this.#ready(database);
    const { database: name, limits } = database;
    const user = query.readOnly ? readerOf(name) : writerOf(name);
    const login = { user, password: this.#passwordOf(user), authSource: name };
    const client = clientOf(this.#deployment.address(), login, { maxPoolSize: 1 });
    const leave = () => void client.close(true);
    query.signal.addEventListener('abort', leave, { once: true });
    try {
      const command = commandOf(query.statement as Document, query, (bytes) => decodeDocument(bytes));
      const { $db: db = name, ...rest } = command;
      const maxTimeMS = Math.min(query.timeoutMs, limits.statementMs);
      const reply = await client.db(String(db)).command({ ...rest, maxTimeMS }, EXACT);
      const { rows, ...about } = resultOf(command, decodeDocument(serialize(reply)), query);
      return await writtenResult({ ...about, rows: Iterator.from(rows).map((row) => JSON.stringify(row)) });
    } catch (error) {
      throw asQueryError(error);
    } finally {
      query.signal.removeEventListener('abort', leave);
      await client.close(true);
    }
  }

  async tables(database: EngineDatabase, signal: AbortSignal): Promise<JsonText<readonly Table[]>> {
    await this.#ready(database);
    const db = this.#client.db(database.database);
    const tables: Table[] = [];
    for (const { name, type } of await db.listCollections({}, { nameOnly: true }).toArray()) {
      if (type === 'view' || name.startsWith('system.')) continue;
      signal.throwIfAborted();
      const indexes = await db.collection(name).listIndexes().toArray();
      tables.push(describeCollection(name, indexes, await db.command({ collStats: name })));
    }
    return JsonText.of(tables.sort((one, other) => (one.name < other.name ? -1 : 1)));
  }

  async dump(database: EngineDatabase, format: string, { signal }: DumpHow): Promise<Dump> {
    await this.#ready(database);
    const { version = '', isReplicaSet: isSnapshot = false } = this.#deployment.facts() ?? {};
    const pieces = archiveOf(this.#client, database.database, { version, isSnapshot, signal });
    const stream = Readable.from(pieces, { objectMode: false });
    return { contentType: 'application/octet-stream', extension: format, sizeBytes: null, stream };
  }

  async load(database: EngineDatabase, dump: Readable, how: LoadHow): Promise<void> {
    await this.#ready(database);
    const folder = join(this.#folder, 'loads', String(++this.#loads));
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const open: number[] = [];
    try {
      await receiveFile(dump, { folder, kind: ARCHIVE_KIND, sizeLimitBytes: database.sizeLimitBytes });
      const again = () => {
        open.push(openSync(join(folder, ARCHIVE_FILE), 'r'));
        return open.at(-1) as number;
      };
      await loadArchive(this.#client.db(database.database), again, how);
    } catch (error) {
      if (error instanceof BrokenArchive || error instanceof MongoServerError)
        throw new LoadFailed(error.message);
      throw error;
    } finally {
      for (const descriptor of open) closeSync(descriptor);
      rmSync(folder, { recursive: true, force: true });
    }
  }

  async fork(from: EngineDatabase, to: EngineDatabase, signal: AbortSignal): Promise<void> {
    const { stream } = await this.dump(from, 'archive', { signal });
    const boundless = { ...to, sizeLimitBytes: Number.POSITIVE_INFINITY };
    await this.load(boundless, stream, { signal }).finally(() => stream.destroy());
  }

  async drop(name: string): Promise<void> {
    // There never was a server, so nothing has to be dropped.
    if (!this.#server.isMade) return;
    await this.#server.up();
    await this.#users.drop(name);
    this.#known.delete(name);
  }

  async list(): Promise<readonly string[]> {
    if (!this.#server.isMade) return [];
    await this.#server.up();
    return this.#users.databases();
  }

  async close(): Promise<void> {
    await this.#rounds.close();
    await this.#server.close();
    if (this.#server.isMade) await this.#client.close(true);
  }

  async #ready(database: EngineDatabase): Promise<void> {
    this.#known.set(database.database, database);
    await this.#server.up();
  }

  #passwordOf(user: string): string {
    return rolePassword(this.#deployment.secret(), user);
  }

  /** Counts connections, and ends operations that run for too long. */
  async #checkOperations(): Promise<void> {
    const admin = this.#client.db('admin');
    const stages = [{ $currentOp: { allUsers: true, idleConnections: true } }];
    const connections = new Map<string, number>();
    for await (const operation of admin.aggregate(stages)) {
      const [who] = (operation.effectiveUsers ?? []) as Document[];
      if (who === undefined || !TENANT.test(String(who.user))) continue;
      const name = String(who.db);
      if (String(who.user).startsWith('u_')) connections.set(name, (connections.get(name) ?? 0) + 1);
      const mostMs = this.#known.get(name)?.limits.statementMs ?? Number.POSITIVE_INFINITY;
      if (operation.active && Number(operation.secs_running ?? 0) * 1000 > mostMs)
        await admin.command({ killOp: 1, op: operation.opid });
    }
    this.#connections = connections;
  }
}

function asQueryError(error: unknown): unknown {
  if (error instanceof CommandError) return new QueryFailed(error.message, error.codeName);
  if (error instanceof MongoServerError) {
    if (error.code === TIME_IS_OVER) return timedOut(error);
    return new QueryFailed(error.message, String(error.codeName ?? error.code));
  }
  return error instanceof MongoError ? connectionEnded(TITLE, error) : error;
}
