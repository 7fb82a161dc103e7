/** Starts processes of databases: the spare one of the engine if it is ready, or a new one. */
import type { Logger } from 'pino';
import type { EngineDatabase } from '../../../databases/engine.ts';
import type { Clock } from '../../../platform/clock.ts';
import { dataMissing } from '../child-failures.ts';
import type { ChildHost, LaunchedChild } from '../child-host.ts';
import type { ChildSlots } from '../child-slots.ts';
import type { TenantFolders } from '../tenant-folders.ts';
import { type Spare, SpareChild, type SpareOptions } from './spare-child.ts';
import type { SpareUsers } from './spare-users.ts';

interface ChildStartsDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly slots: ChildSlots;
  readonly folders: TenantFolders;
  readonly host: ChildHost;
  /** undefined: no process is started ahead. */
  readonly spares?: SpareOptions | undefined;
  /** Reports missing data of a database; null: complete. */
  readonly onFault: (databaseId: string, what: string | null) => void;
}

export class ChildStarts {
  readonly #deps: ChildStartsDeps;
  #spares: { readonly child: SpareChild; readonly users: SpareUsers } | null = null;
  /** Users of folders whose database got a spare process, by its name. */
  readonly #lent = new Map<string, number>();

  constructor(deps: ChildStartsDeps) {
    this.#deps = deps;
  }

  /** Whether a process waits for the next database. */
  get hasSpare(): boolean {
    return this.#spares?.child.isReady === true;
  }

  /** Called before the first launch. Finds users of spare processes that folders have from an earlier run. */
  async prepare(): Promise<void> {
    const { clock, log, slots, folders, host, spares } = this.#deps;
    if (spares === undefined || this.#spares !== null || !(await host.canMove())) return;
    const { users } = spares;
    for (const [name, uid] of await folders.owners()) if (users.hold(uid)) this.#lent.set(name, uid);
    const launch = async (name: string, uid: number | null) =>
      host.launch(await folders.empty(), { name, uid, isLast: true, isSpare: true });
    this.#spares = { child: new SpareChild({ ...spares, clock, log, slots, launch }), users };
  }

  /** A database will be opened soon. */
  expect(): void {
    this.#spares?.child.wanted();
  }

  /** Starts a database's process in its folder. `isLast`: with low priority until it is open. */
  async launch(database: EngineDatabase, isLast: boolean): Promise<LaunchedChild> {
    const { folders, host, onFault } = this.#deps;
    const { database: name, databaseId, number } = database;
    const missing = await folders.missing(name);
    onFault(databaseId, missing);
    if (missing !== null) throw dataMissing(missing);
    this.#spares?.child.wanted();
    const spare = isLast ? null : (this.#spares?.child.take() ?? null);
    const given = spare === null ? null : await this.#give(spare, database);
    if (given !== null) return given;
    await this.#settle(database);
    return host.launch(folders.folder(name), { name, uid: host.uidOf(number), isLast });
  }

  /** The process has ended and none is starting: the folder belongs to its own user again. */
  async ended(database: EngineDatabase): Promise<void> {
    // The folder may be gone with its database.
    if (this.#lent.has(database.database)) await this.#settle(database).catch(() => {});
  }

  async close(): Promise<void> {
    await this.#spares?.child.close();
  }

  async #settle({ database: name, number }: EngineDatabase): Promise<void> {
    const { folders, host } = this.#deps;
    await folders.settle(name, host.uidOf(number));
    this.#release(name);
  }

  /** null: the spare process is unusable, and has ended. */
  async #give({ launched, uid }: Spare, { database: name, databaseId }: EngineDatabase) {
    const { folders, log } = this.#deps;
    try {
      await folders.settle(name, uid);
      this.#release(name);
      if (uid !== null) this.#lent.set(name, uid);
      return await launched.moveTo(folders.folder(name));
    } catch (error) {
      log.warn({ id: databaseId, err: error }, 'could not assign a spare process to the database');
      launched.kill();
      await launched.ended;
      if (this.#lent.get(name) !== uid) this.#spares?.users.release(uid);
      return null;
    }
  }

  #release(name: string): void {
    const uid = this.#lent.get(name);
    if (uid === undefined) return;
    this.#lent.delete(name);
    this.#spares?.users.release(uid);
  }
}
