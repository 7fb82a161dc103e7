/** What engines have in common that keep their databases on one server, ours or the operator's. */
import type { Readable } from 'node:stream';
import type { Dump, EngineDatabase, Query, QueryResult, Readiness, Table } from '../../databases/engine.ts';
import type { EngineServer } from './engine-server.ts';
import type { TenantLogs } from './tenant-logs.ts';

export interface ServerEngineParts<Admin> {
  readonly site: {
    readonly server: EngineServer;
    readonly links: { asAdmin<T>(work: (admin: Admin) => Promise<T>): Promise<T> };
    readiness(): Promise<Readiness>;
  };
  readonly queries: {
    run(database: EngineDatabase, query: Query): Promise<QueryResult>;
    tables(database: EngineDatabase, signal: AbortSignal): Promise<readonly Table[]>;
  };
  readonly dumps: {
    dump(database: EngineDatabase, format: string, signal: AbortSignal): Promise<Dump>;
    load(database: EngineDatabase, dump: Readable, signal: AbortSignal): Promise<void>;
  };
  readonly watchdog: { takeActive(): readonly string[] };
  readonly logs: TenantLogs;
  /** Names of all databases there, those of others too. */
  readonly databases: (admin: Admin) => Promise<readonly string[]>;
}

export class ServerEngine<Admin> {
  readonly #parts: ServerEngineParts<Admin>;
  readonly #server: EngineServer;
  /** Of each database, as Cloudlet calls it, by its name there. */
  readonly #ids = new Map<string, string>();
  readonly dumpFormats: readonly string[];

  constructor(dumpFormats: readonly string[], parts: ServerEngineParts<Admin>) {
    this.#parts = parts;
    this.#server = parts.site.server;
    this.dumpFormats = dumpFormats;
  }

  /** Of the server, for tests; null: it does not run. */
  get pid(): number | null {
    return this.#server.pid;
  }

  readiness(): Promise<Readiness> {
    return this.#parts.site.readiness();
  }

  prepare(): Promise<void> {
    return this.#server.up();
  }

  /** The server that there was, without anybody waiting for it. */
  wake(): void {
    if (this.#server.isMade) void this.#server.up().catch(() => {});
  }

  takeActive(): readonly string[] {
    return this.#parts.watchdog.takeActive().flatMap((name) => this.#ids.get(name) ?? []);
  }

  async query(database: EngineDatabase, query: Query): Promise<QueryResult> {
    await this.#server.up();
    return this.#parts.queries.run(database, query);
  }

  async tables(database: EngineDatabase, signal: AbortSignal): Promise<readonly Table[]> {
    await this.#server.up();
    return this.#parts.queries.tables(database, signal);
  }

  async dump(database: EngineDatabase, format: string, signal: AbortSignal): Promise<Dump> {
    await this.#server.up();
    return this.#parts.dumps.dump(database, format, signal);
  }

  async load(database: EngineDatabase, dump: Readable, signal: AbortSignal): Promise<void> {
    await this.#server.up();
    await this.#parts.dumps.load(database, dump, signal);
  }

  async fork(from: EngineDatabase, to: EngineDatabase, signal: AbortSignal): Promise<void> {
    const { stream } = await this.dump(from, this.dumpFormats[0] ?? '', signal);
    await this.load(to, stream, signal);
  }

  async log({ database }: EngineDatabase, maxBytes: number): Promise<string> {
    return this.#parts.logs.read(database, maxBytes);
  }

  async list(): Promise<readonly string[]> {
    if (!this.#server.isMade) return [];
    const all = await this.asAdmin(this.#parts.databases);
    return all.filter((name) => name.startsWith('d_'));
  }

  /** With a server that is up. */
  protected async asAdmin<T>(work: (admin: Admin) => Promise<T>): Promise<T> {
    await this.#server.up();
    return this.#parts.site.links.asAdmin(work);
  }

  /** Notes what Cloudlet calls the database, for takeActive(). */
  protected note({ database, databaseId }: EngineDatabase): void {
    this.#ids.set(database, databaseId);
  }

  protected forget(name: string): void {
    this.#ids.delete(name);
  }
}
