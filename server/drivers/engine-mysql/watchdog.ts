/** Looks at the server every second: ends what runs for too long, and notes who was there. */
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
  readonly #timer: NodeJS.Timeout;
  #looking: Promise<void> | null = null;
  /** Null: not known, a server that was adopted may have kept it. */
  #isHeld: boolean | null = null;
  #before: ReadonlyMap<string, string> = new Map();
  #active = new Set<string>();

  constructor(deps: WatchdogDeps) {
    this.#deps = deps;
    this.#timer = setInterval(() => this.#tick(), EVERY_MS);
    this.#timer.unref();
  }

  /** Databases that were used since the last call. */
  takeActive(): string[] {
    const active = [...this.#active];
    this.#active = new Set();
    return active;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
  }

  #tick(): void {
    if (this.#looking !== null || !this.#deps.isUp()) return;
    this.#looking = this.#look()
      // The server went: whoever looks after it knows.
      .catch(() => {})
      .finally(() => {
        this.#looking = null;
      });
  }

  async #look(): Promise<void> {
    const { links, isDiskLow, notice } = this.#deps;
    const isLow = isDiskLow();
    await links.asAdmin(async (admin) => {
      for (const { user } of await store.endRunaways(admin))
        notice(`ended a statement of the database ${databaseOf(user)} that ran for too long`);
      const now = await store.activity(admin);
      for (const [user, done] of now) if (this.#before.get(user) !== done) this.#active.add(databaseOf(user));
      this.#before = now;
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
