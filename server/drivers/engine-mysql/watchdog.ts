/** Looks at the server every second: ends what runs for too long, and notes who was there. */
import { ServerRounds, UseMarks } from '../managed-server/server-rounds.ts';
import type { MysqlLinks } from './mysql-links.ts';
import * as store from './mysql-store.ts';

export interface WatchdogDeps {
  readonly links: MysqlLinks;
  readonly isUp: () => boolean;
  readonly isDiskLow: () => boolean;
  readonly notice: (text: string) => void;
}

const EVERY_MS = 1000;

export class Watchdog {
  readonly #deps: WatchdogDeps;
  readonly #rounds: ServerRounds;
  readonly #use = new UseMarks();
  /** Null: not known, a server that was adopted may have kept it. */
  #isHeld: boolean | null = null;

  constructor(deps: WatchdogDeps) {
    this.#deps = deps;
    this.#rounds = new ServerRounds(deps.isUp, [{ everyMs: EVERY_MS, work: () => this.#look() }]);
  }

  /** Databases that were used since the last call. */
  takeActive(): string[] {
    return this.#use.take();
  }

  close(): Promise<void> {
    return this.#rounds.close();
  }

  async #look(): Promise<void> {
    const { links, isDiskLow, notice } = this.#deps;
    const isLow = isDiskLow();
    await links.asAdmin(async (admin) => {
      for (const { user } of await store.endRunaways(admin))
        notice(`ended a statement of the database ${databaseOf(user)} that ran for too long`);
      this.#use.note(await store.activity(admin), databaseOf);
      // Again each time, as a server that came back has forgotten it.
      if (isLow || this.#isHeld !== false) await store.holdWrites(admin, isLow);
      if (isLow && !this.#isHeld) notice('MariaDB takes no writes while the disk is nearly full');
      this.#isHeld = isLow;
    });
  }
}

function databaseOf(user: string): string {
  return user.replace(/^[uwr]_/, 'd_');
}
