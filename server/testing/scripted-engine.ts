/**
 * An engine in memory that meets the contract of databases/engine.ts and is controlled by a test. The content
 * of its databases is in an EngineDisk, which outlasts the ScriptedEngine, as files outlast a process. For
 * tests of the domain only.
 */
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import {
  type Access,
  type Dump,
  type DumpHow,
  type Endpoint,
  type Engine,
  type EngineDatabase,
  type EngineName,
  LoadFailed,
  type Measured,
  type Query,
  type QueryResult,
  type Readiness,
  type Table,
} from '../databases/engine.ts';
import type { LoadHow } from '../databases/left-out.ts';
import { AppError } from '../platform/errors.ts';
import type { Preparing } from '../platform/host/preparing.ts';
import { JsonText } from '../platform/json/json.ts';

interface Held {
  password: string;
  access: Access;
  sizeLimitBytes: number;
  rows: readonly string[];
}

/** State that survives a kill of Cloudlet. */
export class EngineDisk {
  readonly databases = new Map<string, Held>();

  /** Rows read by a driver with that password; throws if access is denied. */
  read(database: string, password: string): readonly string[] {
    const held = this.databases.get(database);
    if (held === undefined) throw new Error('no such database');
    if (held.access === 'none' || held.password !== password) throw new Error('not let in');
    return held.rows;
  }
}

type Scripted = 'prepare' | 'provision' | 'rotate' | 'restrict' | 'dump' | 'load' | 'fork' | 'drop' | 'list';

const HEADER = 'scripted dump\n';

export class ScriptedEngine implements Engine {
  readonly name: EngineName;
  readonly dumpFormats = ['text'];
  readonly disk: EngineDisk;
  isAway = false;
  /** Set: the host is still downloading it. */
  preparing: Preparing | undefined;
  readonly #active = new Set<string>();
  readonly #before = new Map<Scripted, (signal?: AbortSignal) => Promise<void>>();

  constructor(deps: { readonly disk: EngineDisk; readonly name?: EngineName }) {
    this.disk = deps.disk;
    this.name = deps.name ?? 'sqlite';
  }

  /** Each call of `method` waits for `work` first, and fails with it. Without `work`: normal again. */
  script(method: Scripted, work?: (signal?: AbortSignal) => Promise<void>): void {
    if (work === undefined) this.#before.delete(method);
    else this.#before.set(method, work);
  }

  async readiness(): Promise<Readiness> {
    const reason = this.isAway ? 'it is away' : null;
    const facts = { available: !this.isAway, version: '1', source: 'built-in', reason, fix: null } as const;
    if (this.preparing === undefined) return facts;
    return { ...facts, available: false, version: null, preparing: this.preparing };
  }

  prepare(): Promise<void> {
    return this.#begin('prepare');
  }

  async provision({ database, sizeLimitBytes }: EngineDatabase, password: string): Promise<void> {
    await this.#begin('provision');
    const rows = this.disk.databases.get(database)?.rows ?? [];
    this.disk.databases.set(database, { password, access: 'full', sizeLimitBytes, rows });
  }

  async rotate(database: EngineDatabase, password: string): Promise<void> {
    await this.#begin('rotate');
    this.#held(database).password = password;
  }

  async restrict(database: EngineDatabase, access: Access): Promise<void> {
    await this.#begin('restrict');
    const held = this.#held(database);
    held.access = access;
    held.sizeLimitBytes = database.sizeLimitBytes;
  }

  async endpoint({ databaseId }: EngineDatabase): Promise<Endpoint> {
    const uri = (password: string) => `scripted://${password}@127.0.0.1:1/${databaseId}`;
    return { host: '127.0.0.1', port: 1, tls: false, ca: null, uri };
  }

  async measure(database: EngineDatabase): Promise<Measured> {
    const sizeBytes = this.#held(database).rows.join('\n').length;
    return { sizeBytes, connections: null, statements: null, rowsReturned: null, rowsWritten: null };
  }

  takeActive(): readonly string[] {
    const active = [...this.#active];
    this.#active.clear();
    return active;
  }

  /** Every statement is a row to be inserted; there are no others. */
  async query(database: EngineDatabase, { statement }: Query): Promise<QueryResult> {
    this.#active.add(database.databaseId);
    const held = this.#held(database);
    held.rows = [...held.rows, String(statement)];
    return { columns: JsonText.of([]), rows: JsonText.of([]), rowCount: 0, affected: 1, truncated: false };
  }

  async tables(): Promise<JsonText<readonly Table[]>> {
    return JsonText.of([]);
  }

  async dump(database: EngineDatabase, _format: string, { signal }: DumpHow): Promise<Dump> {
    await this.#begin('dump', signal);
    const stream = Readable.from([Buffer.from(HEADER + this.#held(database).rows.join('\n'))]);
    return { contentType: 'text/plain', extension: 'txt', sizeBytes: null, stream };
  }

  async load(database: EngineDatabase, dump: Readable, { signal }: LoadHow): Promise<void> {
    const loaded = await text(dump);
    await this.#begin('load', signal);
    if (!loaded.startsWith(HEADER)) throw new LoadFailed('It is no scripted dump');
    this.#held(database).rows = loaded.slice(HEADER.length).split('\n').filter(Boolean);
  }

  async fork(from: EngineDatabase, to: EngineDatabase, signal: AbortSignal): Promise<void> {
    await this.#begin('fork', signal);
    this.#held(to).rows = this.#held(from).rows;
  }

  async drop(database: string): Promise<void> {
    await this.#begin('drop');
    this.disk.databases.delete(database);
  }

  async list(): Promise<readonly string[]> {
    await this.#begin('list');
    return [...this.disk.databases.keys()];
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async #begin(method: Scripted, signal?: AbortSignal): Promise<void> {
    if (this.isAway) throw new AppError('engine_unavailable', 'The scripted engine is away');
    await this.#before.get(method)?.(signal);
    signal?.throwIfAborted();
  }

  #held({ database }: EngineDatabase): Held {
    const held = this.disk.databases.get(database);
    if (held === undefined) throw new Error(`the engine has no ${database}`);
    return held;
  }
}
