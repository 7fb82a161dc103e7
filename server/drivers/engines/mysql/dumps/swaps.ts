/**
 * The last step of a load: the loaded database replaces the existing one. MariaDB moves all tables
 * at once, but views, routines, triggers and events must be recreated. So the steps are recorded
 * first, and any later process completes them, also after Cloudlet or the server was killed.
 */
import * as fs from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Access, LoadFailed } from '../../../../databases/engine.ts';
import { KeyedMutex } from '../../../../platform/concurrency.ts';
import { isCode, syncFolder, writeDurableFile } from '../../../../platform/files.ts';
import * as contents from '../contents-store.ts';
import type { MysqlLinks } from '../mysql-links.ts';
import * as store from '../mysql-store.ts';
import * as sessions from '../sessions-store.ts';

export interface Swap {
  readonly database: string;
  /** The database that was loaded; empty after the swap. */
  readonly fresh: string;
  /** The database that receives the old tables. */
  readonly old: string;
  readonly replaced: readonly string[];
  /** The tenant's access before the load. */
  readonly access: Access;
}

export interface SwapsDeps {
  /** Cloudlet's directory for the journals. */
  readonly folder: string;
  readonly links: Pick<MysqlLinks, 'asAdmin' | 'putBackPassword'>;
  /** Runs SQL as one of our users. Throws LoadFailed. */
  readonly fill: (database: string, user: string, sql: Buffer) => Promise<void>;
  /** Resolves once the server responds. */
  readonly up: () => Promise<void>;
  readonly warn: (text: string) => void;
}

const NOTE = /^(t_[a-z0-9]{16})\.swap$/;
const TRIES = 3;
/**
 * The server ended, nothing may be written now, a disk is full, or a lock was held; or the client
 * was killed.
 */
const LATER = /^ERROR (?:20\d\d|1290|1021|1114|1205|1927|1053)\b|^the client was ended/;
const POLL_MS = 50;

export class Swaps {
  readonly #deps: SwapsDeps;
  readonly #locks = new KeyedMutex();

  constructor(deps: SwapsDeps) {
    this.#deps = deps;
  }

  /** `programs`: views, routines and triggers of `fresh`, as SQL. Repeated if interrupted. */
  async run(swap: Swap, programs: Buffer): Promise<void> {
    this.#note(swap, programs);
    for (let tries = 1; ; tries++) {
      try {
        await this.#finish(swap.fresh);
        return;
      } catch (error) {
        if (tries === TRIES || error instanceof LoadFailed) throw error;
        await this.#deps.up();
      }
    }
  }

  /** Whether the database is part of an unfinished swap. */
  isPending(name: string): boolean {
    return this.#pending().some(({ database, fresh, old }) => [database, fresh, old].includes(name));
  }

  /** Completes interrupted swaps. A failure is logged, and retried by the next call. */
  async finishAll(): Promise<void> {
    for (const { database, fresh } of this.#pending()) {
      try {
        await this.#finish(fresh);
      } catch (error) {
        this.#deps.warn(`a load of the database ${database} could not be finished: ${error}`);
      }
    }
  }

  /** Completes the swaps of one database. */
  async finish(database: string): Promise<void> {
    for (const swap of this.#pending()) if (swap.database === database) await this.#finish(swap.fresh);
  }

  /** For a deleted database. */
  forget(database: string): void {
    for (const swap of this.#pending()) if (swap.database === database) this.#forget(swap.fresh);
  }

  /** Each step is idempotent. */
  #finish(fresh: string): Promise<void> {
    return this.#locks.run(fresh, async () => {
      const found = this.#read(fresh);
      if (found === null) return;
      const { swap, programs } = found;
      const { links } = this.#deps;
      const users = store.usersOf(swap.database);
      // The database was dropped.
      if ((await links.asAdmin((admin) => store.accessOf(admin, users))) === null) return this.#forget(fresh);
      await this.#moveTables(swap);
      const failure = await this.#makePrograms(users, programs);
      await links.asAdmin((admin) => store.setAccess(admin, users, swap.access));
      this.#forget(fresh);
      await links.asAdmin(async (admin) => {
        for (const name of [swap.old, fresh]) await store.dropDatabase(admin, name);
      });
      // Sessions that are just starting may not know yet that the account is locked.
      await sleep(POLL_MS);
      if (failure !== null) throw failure;
    });
  }

  /** No other session is connected until views and routines exist. */
  async #moveTables({ database, fresh, old, replaced }: Swap): Promise<void> {
    const { links } = this.#deps;
    const users = store.usersOf(database);
    await links.asAdmin(async (admin) => {
      await store.setAccess(admin, users, 'none');
      await sessions.endSessions(admin, [users.user, users.writer, users.reader]);
      for (const name of [database, fresh, old]) await store.makeDatabase(admin, name);
      for (const name of [database, fresh]) await contents.dropPrograms(admin, name);
      await contents.swapTables(admin, { name: database, fresh, old, replaced });
      await contents.mendDefaults(admin, { name: database, fresh });
    });
  }

  async #makePrograms(users: store.Users, programs: Buffer): Promise<LoadFailed | null> {
    const { links, fill } = this.#deps;
    // The tenant may have changed the password of its role.
    await links.putBackPassword(users.writer);
    let failure: LoadFailed | null = null;
    try {
      await fill(users.database, users.writer, programs);
    } catch (error) {
      if (!(error instanceof LoadFailed)) throw error;
      // Can be retried: these programs were valid where the dump was made.
      if (LATER.test(error.message)) throw new Error(error.message, { cause: error });
      failure = new LoadFailed(
        `The tables were loaded, but not all views, routines and triggers: ${error.message}`,
      );
    }
    await links.asAdmin((admin) => contents.giveRoutines(admin, users));
    return failure;
  }

  #note(swap: Swap, programs: Buffer): void {
    const { folder } = this.#deps;
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
    const note = Buffer.concat([Buffer.from(`${JSON.stringify(swap)}\n`), programs]);
    writeDurableFile(this.#pathOf(swap.fresh), note, 0o600);
  }

  /** null: missing or damaged. */
  #read(fresh: string): { readonly swap: Swap; readonly programs: Buffer } | null {
    try {
      const note = fs.readFileSync(this.#pathOf(fresh));
      const end = note.indexOf('\n');
      return { swap: JSON.parse(note.subarray(0, end).toString()), programs: note.subarray(end + 1) };
    } catch (error) {
      if (error instanceof SyntaxError || isCode(error, 'ENOENT')) return null;
      throw error;
    }
  }

  #forget(fresh: string): void {
    fs.rmSync(this.#pathOf(fresh), { force: true });
    syncFolder(this.#deps.folder);
  }

  /** Loaded databases with unreadable journals, whose related databases are unknown. */
  damaged(): string[] {
    return this.#noted().filter((fresh) => this.#read(fresh) === null);
  }

  #pending(): Swap[] {
    return this.#noted().flatMap((fresh) => this.#read(fresh)?.swap ?? []);
  }

  #noted(): string[] {
    const { folder } = this.#deps;
    const names = fs.existsSync(folder) ? fs.readdirSync(folder) : [];
    return names.flatMap((name) => NOTE.exec(name)?.[1] ?? []);
  }

  #pathOf(fresh: string): string {
    return join(this.#deps.folder, `${fresh}.swap`);
  }
}
