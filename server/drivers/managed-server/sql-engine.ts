/** An SQL engine over one server, ours or the operator's. Each engine adds its statements. */
import type { Readable } from 'node:stream';
import type {
  Access,
  Dump,
  DumpHow,
  Endpoint,
  Engine,
  EngineDatabase,
  EngineName,
  Insertion,
  Measured,
  Query,
  QueryResult,
  Readiness,
  RowChanges,
  Scan,
  Table,
  TestDatabase,
} from '../../databases/engine.ts';
import type { LoadHow } from '../../databases/left-out.ts';
import type { LogServer } from '../../databases/points/server-logs.ts';
import { JsonText } from '../../platform/json/json.ts';
import type { TenantLogs } from './accounts/tenant-logs.ts';
import { type Address, hostAndPort } from './links/server-tls.ts';
import { ManagedServer } from './managed-server.ts';
import { Watchdog, type Watched } from './processes/watchdog.ts';
import type { SqlLinks, SqlServer } from './sql-server.ts';

/** The use of a server now, by its own figures. */
export interface ServerUse {
  /** Sessions of its account, also those that wait for their users. */
  readonly sessions: number;
  /** Sessions with a running statement or transaction. */
  readonly busy: number;
  /** Age of the oldest one; 0: none. */
  readonly runsMs: number;
  /** A text per database that changes with each use. */
  readonly done: ReadonlyMap<string, string>;
  /** Sessions of each database's user, and the server's limit. */
  readonly users: ReadonlyMap<string, { readonly sessions: number; readonly most: number }>;
}

/** Versions. */
export interface Upgrade {
  readonly from: string;
  readonly to: string;
}

/** An engine over the server of one account. */
export interface AccountEngine extends Engine {
  readonly server: ManagedServer;
  /** The server's log, for continuous archiving; missing if the engine has none. */
  readonly ownLog?: Omit<LogServer, 'accountId'>;
  /** Position up to which a recovered copy was replayed. */
  readonly replayedTo?: bigint | null;
  change(database: EngineDatabase, changes: RowChanges): Promise<void>;
  scan(database: EngineDatabase, scan: Scan): Promise<void>;
  insert(database: EngineDatabase, insertion: Insertion): Promise<void>;
  use(): Promise<ServerUse>;
  /** Databases that its users created beside Cloudlet's. */
  testDatabases(): Promise<readonly TestDatabase[]>;
  /** The smallest valid limit. */
  readonly leastConnections: number;
  /** Limits the sessions of that database's user; open ones continue. */
  setConnections(database: string, connections: number): Promise<void>;
  /**
   * Stops all writing at once, because the host's disk is nearly full, and ends loads; false:
   * allows it again. Called repeatedly meanwhile.
   */
  hold(isHeld: boolean): Promise<void>;
  /** Disk bytes of its server, less those of a new server with as many databases. */
  serverBytes(databases: number): Promise<number>;
  /** Row counts by table. */
  counts(database: EngineDatabase): Promise<ReadonlyMap<string, string>>;
  /** The server's hash of its user's password. */
  verifierOf(database: EngineDatabase): Promise<string>;
  setVerifier(database: EngineDatabase, verifier: string): Promise<void>;
  /** Upgrades the data to the newest version here; null: nothing to do. If it throws, nothing has changed. */
  upgrade(): Promise<Upgrade | null>;
}

export interface SqlEngineParts<Admin, L> {
  readonly on: SqlServer<L>;
  /** Whether the server is the operator's. */
  readonly isGuest: boolean;
  readonly dumpFormats: readonly string[];
  readonly queries: {
    run(database: EngineDatabase, query: Query): Promise<QueryResult>;
    change(database: EngineDatabase, changes: RowChanges): Promise<void>;
    scan(database: EngineDatabase, scan: Scan): Promise<void>;
    insert(database: EngineDatabase, insertion: Insertion): Promise<void>;
    tables(database: EngineDatabase, signal: AbortSignal): Promise<readonly Table[]>;
  };
  readonly dumps: {
    dump(database: EngineDatabase, format: string, how: DumpHow): Promise<Dump>;
    load(database: EngineDatabase, dump: Readable, how: LoadHow): Promise<void>;
  };
  /** Statements of the watchdog, for the operator's server. */
  readonly watched: Watched<Admin>;
  readonly logs: TenantLogs;
  readonly warn: (text: string) => void;
  /** Names of all databases on the server, including others'. */
  readonly databases: (admin: Admin) => Promise<readonly string[]>;
}

type AdminLinks<Admin> = SqlLinks & { asAdmin<T>(work: (admin: Admin) => Promise<T>): Promise<T> };

export abstract class SqlEngine<Admin, L extends AdminLinks<Admin>> implements AccountEngine {
  abstract readonly name: EngineName;
  abstract readonly leastConnections: number;
  readonly dumpFormats: readonly string[];
  readonly #parts: SqlEngineParts<Admin, L>;
  readonly #watchdog: Watchdog<Admin> | null;
  /** Ids of databases, as Cloudlet calls them, by their names there. */
  readonly #ids = new Map<string, string>();

  constructor(parts: SqlEngineParts<Admin, L>) {
    this.#parts = parts;
    this.dumpFormats = parts.dumpFormats;
    const { on, logs, warn, watched, isGuest } = parts;
    // An account with its own server cannot harm others.
    this.#watchdog = isGuest ? new Watchdog({ ...on, logs, warn, watched }) : null;
  }

  abstract provision(database: EngineDatabase, password: string): Promise<void>;
  abstract rotate(database: EngineDatabase, password: string): Promise<void>;
  abstract restrict(database: EngineDatabase, access: Access): Promise<void>;
  abstract measure(database: EngineDatabase): Promise<Measured>;
  abstract testDatabases(): Promise<readonly TestDatabase[]>;
  abstract use(): Promise<ServerUse>;
  abstract setConnections(database: string, connections: number): Promise<void>;
  abstract hold(isHeld: boolean): Promise<void>;
  abstract serverBytes(databases: number): Promise<number>;
  abstract counts(database: EngineDatabase): Promise<ReadonlyMap<string, string>>;
  abstract verifierOf(database: EngineDatabase): Promise<string>;
  abstract setVerifier(database: EngineDatabase, verifier: string): Promise<void>;
  /** Removes the database and its roles from a server that is up. */
  protected abstract remove(name: string): Promise<void>;

  /** The PID of the server's process, for tests; null: it does not run. */
  get pid(): number | null {
    return this.#parts.on.server.pid;
  }

  /** The server that Cloudlet runs. Throws for the operator's. */
  get server(): ManagedServer {
    const { server } = this.#parts.on;
    if (server instanceof ManagedServer) return server;
    throw new Error('Cloudlet does not manage this server');
  }

  /** The limits on an operator's server are not known: they are applied at each start. */
  async isLimited(): Promise<boolean> {
    return !this.#parts.isGuest;
  }

  protected get links(): L {
    return this.#parts.on.links;
  }

  readiness(): Promise<Readiness> {
    return this.#parts.on.readiness();
  }

  prepare(): Promise<void> {
    return this.#parts.on.server.up();
  }

  /** Starts the existing server in the background. */
  wake(): void {
    if (this.#parts.on.server.isMade) void this.prepare().catch(() => {});
  }

  takeActive(): readonly string[] {
    return (this.#watchdog?.takeActive() ?? []).flatMap((name) => this.#ids.get(name) ?? []);
  }

  async endpoint(of: EngineDatabase): Promise<Endpoint> {
    const { database, username } = of;
    this.note(of);
    const withUri = (address: Address): Endpoint => {
      const end = `@${hostAndPort(address)}/${database}${this.uriOptions(address)}`;
      return { ...address, uri: (password) => `${this.name}://${username}:${password}${end}` };
    };
    const verified = this.#parts.on.verifiedEndpoint();
    const endpoint = withUri(this.#parts.on.endpoint());
    return verified === null ? endpoint : { ...endpoint, verified: withUri(verified) };
  }

  async query(database: EngineDatabase, query: Query): Promise<QueryResult> {
    await this.prepare();
    return this.#parts.queries.run(database, query);
  }

  async change(database: EngineDatabase, changes: RowChanges): Promise<void> {
    await this.prepare();
    await this.#parts.queries.change(database, changes);
  }

  async scan(database: EngineDatabase, scan: Scan): Promise<void> {
    await this.prepare();
    await this.#parts.queries.scan(database, scan);
  }

  async insert(database: EngineDatabase, insertion: Insertion): Promise<void> {
    await this.prepare();
    await this.#parts.queries.insert(database, insertion);
  }

  async tables(database: EngineDatabase, signal: AbortSignal): Promise<JsonText<readonly Table[]>> {
    await this.prepare();
    return JsonText.of(await this.#parts.queries.tables(database, signal));
  }

  async dump(database: EngineDatabase, format: string, how: DumpHow): Promise<Dump> {
    await this.prepare();
    return this.#parts.dumps.dump(database, format, how);
  }

  async load(database: EngineDatabase, dump: Readable, how: LoadHow): Promise<void> {
    await this.prepare();
    await this.#parts.dumps.load(database, dump, how);
  }

  async fork(from: EngineDatabase, to: EngineDatabase, signal: AbortSignal): Promise<void> {
    const { stream } = await this.dump(from, this.dumpFormats[0] ?? '', { signal });
    await this.load(to, stream, { signal }).finally(() => stream.destroy());
  }

  /** The log of our server, else the entries that Cloudlet wrote about the database. */
  async log({ database }: EngineDatabase, maxBytes: number): Promise<string> {
    const { on, logs } = this.#parts;
    return on.server.log?.tail(maxBytes) ?? logs.read(database, maxBytes);
  }

  async drop(name: string): Promise<void> {
    this.#ids.delete(name);
    // The account never had a server, so no data exists.
    if (!this.#parts.on.server.isMade) return;
    await this.prepare();
    await this.remove(name);
    this.#parts.logs.remove(name);
  }

  async list(): Promise<readonly string[]> {
    if (!this.#parts.on.server.isMade) return [];
    const all = await this.asAdmin(this.#parts.databases);
    return all.filter((name) => name.startsWith('d_'));
  }

  /** Null: nothing to upgrade. */
  async upgrade(): Promise<Upgrade | null> {
    return null;
  }

  async close(): Promise<void> {
    await this.#watchdog?.close();
    await this.#parts.on.server.close();
    await this.links.close();
  }

  /** Runs with a running server. */
  protected async asAdmin<T>(work: (admin: Admin) => Promise<T>): Promise<T> {
    await this.prepare();
    return this.links.asAdmin(work);
  }

  /** Records Cloudlet's id of the database, for takeActive(). */
  protected note({ database, databaseId }: EngineDatabase): void {
    this.#ids.set(database, databaseId);
  }

  /** `?name=value` for the end of the URI. */
  protected uriOptions(_endpoint: Pick<Endpoint, 'tls' | 'ca'>): string {
    return '';
  }
}
