/** Looks at the server every second: ends what runs for too long, and notes who was there. */
import type { PostgresqlLinks } from './postgresql-links.ts';
import * as store from './postgresql-store.ts';

export interface WatchdogDeps {
  readonly links: PostgresqlLinks;
  readonly isUp: () => boolean;
  readonly notice: (text: string) => void;
}

const EVERY_MS = 1000;

export class Watchdog {
  readonly #deps: WatchdogDeps;
  readonly #timer: NodeJS.Timeout;
  #looking: Promise<void> = Promise.resolve();
  #isLooking = false;
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
    if (this.#isLooking || !this.#deps.isUp()) return;
    this.#isLooking = true;
    this.#looking = this.#look()
      // The server went: whoever looks after it knows.
      .catch(() => {})
      .finally(() => {
        this.#isLooking = false;
      });
  }

  async #look(): Promise<void> {
    const { links, notice } = this.#deps;
    await links.asAdmin(async (client) => {
      for (const { database } of await store.endRunaways(client))
        notice(`ended a statement of the database ${database} that ran for too long`);
      const now = await store.activity(client);
      for (const [name, done] of now) if (this.#before.get(name) !== done) this.#active.add(name);
      this.#before = now;
    });
  }
}
