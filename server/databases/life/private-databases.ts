/** An account's databases in its private network: by name, at the usual port of their engine. */
import type { Duplex } from 'node:stream';
import type { DatabaseViews } from '../database-view.ts';
import type { Engines } from '../engines.ts';
import type { DatabaseRow, DatabaseStore } from '../store.ts';
import type { Lifecycle } from './lifecycle.ts';
import { isOpen, notReady } from './states.ts';

export interface PrivateDatabasesDeps {
  readonly store: Pick<DatabaseStore, 'find' | 'findNamed' | 'findNumbered'>;
  readonly engines: Engines;
  readonly lifecycle: Pick<Lifecycle, 'inEngine' | 'passwordOf'>;
  readonly views: Pick<DatabaseViews, 'connection'>;
}

export class PrivateDatabases {
  readonly #deps: PrivateDatabasesDeps;
  readonly #open = new Map<Duplex, string>();

  constructor(deps: PrivateDatabasesDeps) {
    this.#deps = deps;
  }

  /** See NetworkServices. A database that is suspended keeps its name. */
  async find(accountId: number, name: string): Promise<number | null> {
    return (await this.#deps.store.findNamed(accountId, name))?.id ?? null;
  }

  /** See NetworkServices. Users log in there as usual. */
  async dial(request: {
    readonly accountId: number;
    readonly number: number;
    readonly port: number;
  }): Promise<Duplex | 'data' | null> {
    const row = await this.#deps.store.findNumbered(request.accountId, request.number);
    if (row === undefined || !isOpen(row)) return null;
    const { port, traits } = this.#deps.engines.about(row.engine);
    if (port !== request.port) return null;
    return traits.transport === 'http' ? 'data' : this.#connect(row);
  }

  /** See NetworkServices. */
  async uri(accountId: number, name: string): Promise<string | null> {
    const { store, lifecycle, views } = this.#deps;
    const row = await store.findNamed(accountId, name);
    if (row === undefined) return null;
    const { uri, private_uri } = await views.connection(row, lifecycle.passwordOf(row));
    if (uri === '') throw notReady(row);
    return private_uri;
  }

  /** Ends connections to suspended or deleted databases. Call every second or two. */
  async check(): Promise<void> {
    const isOpenNow = new Map<string, boolean>();
    for (const [stream, databaseId] of this.#open) {
      if (!isOpenNow.has(databaseId)) {
        const row = await this.#deps.store.find(databaseId);
        isOpenNow.set(databaseId, row !== undefined && isOpen(row));
      }
      if (isOpenNow.get(databaseId) === false) stream.destroy();
    }
  }

  async #connect(row: DatabaseRow): Promise<Duplex | null> {
    const opened = await this.#deps.engines.get(row.engine).connect?.(this.#deps.lifecycle.inEngine(row));
    if (opened === undefined) return null;
    const { stream } = opened;
    this.#open.set(stream, row.database_id);
    stream.once('close', () => this.#open.delete(stream));
    return stream;
  }
}
