/**
 * The server that all accounts shared in earlier versions: its databases move to their accounts'
 * own servers, by a dump whose rows are counted on both sides. It is kept for a while after all
 * were moved.
 */
import * as fs from 'node:fs';
import { join } from 'node:path';
import type { Access, EngineDatabase } from '../../databases/engine.ts';
import { systemClock } from '../../platform/clock.ts';
import { AppError, isAppError } from '../../platform/errors.ts';
import { randomBase62 } from '../../platform/ids.ts';
import { removeTree } from '../host-process/foreign-files.ts';
import { keptPort } from '../server-port.ts';
import type { ManagedServerDeps } from './managed-server.ts';
import { SHARED } from './processes/server-owner.ts';
import { withReason } from './processes/server-trouble.ts';
import type { AccountEngine } from './sql-engine.ts';

export interface Moving {
  readonly database: EngineDatabase;
  /** The access for its user. */
  readonly access: Access;
}

export interface SharedServerDeps {
  /** The folder of the engine; the server is in its folder `server`. */
  readonly folder: string;
  /** For humans. */
  readonly title: string;
  /** The engine over it; nothing is started. */
  readonly make: () => AccountEngine;
  readonly alarms: ManagedServerDeps['alarms'];
  readonly warn: (text: string) => void;
}

const KEEP_MS = 7 * 86_400_000;
const MOVE_MS = 6 * 3_600_000;

export class SharedServer {
  readonly #deps: SharedServerDeps;
  #engine: AccountEngine | null = null;
  #problem: AppError | null = null;
  /** Databases that the last attempt did not move. */
  #left: ReadonlySet<string> = new Set();

  constructor(deps: SharedServerDeps) {
    this.#deps = deps;
  }

  get #folder(): string {
    return join(this.#deps.folder, SHARED);
  }

  /** Folder of the data after every database was moved. */
  get #done(): string {
    return join(this.#deps.folder, 'server.moved');
  }

  /** Whether there may be databases that are not moved yet. */
  get isThere(): boolean {
    return fs.existsSync(join(this.#folder, 'home', 'data'));
  }

  /** The port at which it was reached. */
  get port(): number | null {
    return keptPort(join(this.#folder, 'keeper'));
  }

  /** Why the server does not start; null: it runs, or was not started yet. */
  get problem(): AppError | null {
    return this.#problem;
  }

  /** Why a database is still here, for its owner; null: its move has not failed. */
  trouble(name: string): string | null {
    if (!this.#left.has(name)) return null;
    if (this.#problem === null) return 'the database could not be moved from the old server';
    return `the old server that still holds the database is not available: ${this.#problem.message}`;
  }

  /** Opens it only for us: all other connections end. */
  async #open(): Promise<AccountEngine> {
    if (this.#engine !== null) return this.#engine;
    const engine = this.#deps.make();
    try {
      // A server that an earlier Cloudlet left running still serves its users.
      if (await engine.server.takeOver()) await engine.server.stop();
      await engine.server.up({ isPatient: true });
    } catch (error) {
      this.#problem = isAppError(error) ? error : null;
      // The next attempt creates another one.
      await engine.close();
      throw error;
    }
    this.#problem = null;
    this.#engine = engine;
    return engine;
  }

  /**
   * Moves all of them, and retires this server. `take` returns the new server of a database and
   * fills it. Rejects with the first that could not be moved, after all others were.
   */
  async moveOut(
    all: readonly Moving[],
    take: (moving: Moving, fill: (to: AccountEngine) => Promise<void>) => Promise<void>,
  ): Promise<void> {
    const failures: unknown[] = [];
    const left = new Set<string>();
    for (const moving of all) {
      try {
        await take(moving, (to) => this.#move(moving, to));
      } catch (error) {
        failures.push(error);
        const { database } = moving.database;
        left.add(database);
        const why = withReason(error);
        this.#deps.warn(`the database ${database} could not be moved to its account's own server: ${why}`);
      }
    }
    this.#left = left;
    this.#report(failures.length);
    if (failures.length > 0) throw failures[0];
    await this.#retire();
  }

  /**
   * Fills `to` with the content of the database of that name here, including its user's password.
   * Idempotent. Throws if they differ afterwards.
   */
  async #move({ database, access }: Moving, to: AccountEngine): Promise<void> {
    const from = await this.#open();
    const signal = AbortSignal.timeout(MOVE_MS);
    await to.provision(database, randomBase62(24));
    await to.restrict(database, 'none');
    const { stream } = await from.dump(database, 'sql', { signal });
    await to.load(database, stream, { signal });
    const [there, here] = [await from.counts(database), await to.counts(database)];
    for (const [table, rows] of there) {
      const found = here.get(table) ?? 'no such table';
      if (found !== rows) throw new Error(`the table ${table} has ${rows} rows, but ${found} after the move`);
    }
    await to.setVerifier(database, await from.verifierOf(database));
    await to.restrict(database, access);
  }

  /** Reports how many could not be moved. */
  #report(failures: number): void {
    const { title, alarms } = this.#deps;
    const code = 'databases_not_moved';
    const detail = `${failures} databases of ${title} could not be moved to their accounts' own servers`;
    if (failures === 0) alarms.clear(code);
    else alarms.raise(code, detail, 'The log of Cloudlet says why; Cloudlet retries every minute');
  }

  /** All databases were moved: stops the server, and keeps its data for a week. */
  async #retire(): Promise<void> {
    await this.#engine?.close();
    this.#engine = null;
    await removeTree(this.#done);
    fs.renameSync(this.#folder, this.#done);
    this.#deps.warn(
      `${this.#deps.title}: every account now has its own server; the old data is removed in a week`,
    );
  }

  /** Removes data that was retired a week ago. */
  async sweep(now = systemClock.now()): Promise<void> {
    // The rename was the last change of the directory.
    const retiredMs = fs.statSync(this.#done, { throwIfNoEntry: false })?.ctimeMs;
    if (retiredMs !== undefined && retiredMs < now - KEEP_MS) await removeTree(this.#done);
  }

  async close(): Promise<void> {
    await this.#engine?.close();
    this.#engine = null;
  }
}

export function beingMoved(trouble: string | null): AppError {
  if (trouble !== null)
    return new AppError('engine_unavailable', `The database cannot be used: ${trouble}`, {
      hint: 'ask the operator, who has an alarm with the reason; Cloudlet tries again every minute',
      retryAfterSeconds: 60,
    });
  return new AppError('engine_unavailable', "The database is being moved to its account's own server", {
    hint: 'try again in a few minutes; the log of Cloudlet says why a move fails',
    retryAfterSeconds: 5,
  });
}
