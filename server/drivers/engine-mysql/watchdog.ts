/** Looks at the server every second: ends what runs for too long, and notes who was there. */
import { ServerRounds, UseMarks } from '../managed-server/server-rounds.ts';
import { ENDED_STATEMENT } from '../managed-server/slow-statements.ts';
import type { TenantLogs } from '../managed-server/tenant-logs.ts';
import { droppedByTenants } from './dropped-store.ts';
import type { MysqlLinks } from './mysql-links.ts';
import { TEMPORARY_BYTES } from './mysql-server.ts';
import * as store from './mysql-store.ts';
import { TemporarySpace } from './temporary-space.ts';

export interface WatchdogDeps {
  readonly links: MysqlLinks;
  readonly isUp: () => boolean;
  readonly isDiskLow: () => boolean;
  readonly notice: (text: string) => void;
  readonly logs: TenantLogs;
  /** Of the server. */
  readonly pid: () => number | null;
  /** Makes a database again that its tenant dropped, unless we did. */
  readonly makeAgain: (database: string) => Promise<void>;
}

const EVERY_MS = 1000;
const SPACE_MS = 250;

export class Watchdog {
  readonly #deps: WatchdogDeps;
  readonly #rounds: ServerRounds;
  readonly #use = new UseMarks();
  /** Null: not known, a server that was adopted may have kept it. */
  #isHeld: boolean | null = null;

  constructor(deps: WatchdogDeps) {
    this.#deps = deps;
    const space = new TemporarySpace({ ...deps, bytes: TEMPORARY_BYTES });
    this.#rounds = new ServerRounds(deps.isUp, [
      { everyMs: EVERY_MS, work: () => this.#look() },
      { everyMs: SPACE_MS, work: () => space.look() },
    ]);
  }

  /** Databases that were used since the last call. */
  takeActive(): string[] {
    return this.#use.take();
  }

  close(): Promise<void> {
    return this.#rounds.close();
  }

  async #look(): Promise<void> {
    const { links, isDiskLow, notice, logs } = this.#deps;
    const isLow = isDiskLow();
    logs.flush();
    await links.asAdmin(async (admin) => {
      for (const { user, at } of await store.endRunaways(admin)) {
        const database = store.databaseOf(user);
        logs.add({ database, at, text: ENDED_STATEMENT });
        notice(`ended a statement of the database ${database} that ran for too long`);
      }
      logs.noteSlow(await store.slowStatements(admin));
      this.#use.note(await store.activity(admin), store.databaseOf);
      for (const database of await droppedByTenants(admin)) await this.#deps.makeAgain(database);
      // Again each time, as a server that came back has forgotten it.
      if (isLow || this.#isHeld !== false) await store.holdWrites(admin, isLow);
      if (isLow && !this.#isHeld) notice('MariaDB takes no writes while the disk is nearly full');
      this.#isHeld = isLow;
    });
  }
}
