/**
 * Looks at the server every second: ends what runs for too long, notes who was there. While the disk is
 * nearly full it keeps tenants from writing: PostgreSQL stops altogether when it cannot write its log.
 */
import type { PostgresqlLinks } from './postgresql-links.ts';
import * as store from './postgresql-store.ts';

export interface WatchdogDeps {
  readonly links: PostgresqlLinks;
  readonly isUp: () => boolean;
  readonly isDiskLow: () => boolean;
  readonly notice: (text: string) => void;
}

const EVERY_MS = 1000;
const DISK_MS = 250;

export class Watchdog {
  readonly #deps: WatchdogDeps;
  readonly #timers: NodeJS.Timeout[];
  readonly #underWay = new Map<string, Promise<void>>();
  #isHeld = false;
  #before: ReadonlyMap<string, string> = new Map();
  #active = new Set<string>();

  constructor(deps: WatchdogDeps) {
    this.#deps = deps;
    const look = () => this.#alone('look', () => this.#look());
    const guard = () => this.#alone('guard', () => this.#guardDisk());
    this.#timers = [setInterval(look, EVERY_MS), setInterval(guard, DISK_MS)];
    for (const timer of this.#timers) timer.unref();
  }

  /** A server that was started anew may write. */
  began(): void {
    this.#isHeld = false;
  }

  /** Databases that were used since the last call. */
  takeActive(): string[] {
    const active = [...this.#active];
    this.#active = new Set();
    return active;
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.all(this.#underWay.values());
  }

  #alone(name: string, work: () => Promise<void>): void {
    if (this.#underWay.has(name) || !this.#deps.isUp()) return;
    const running = work()
      // The server went: whoever looks after it knows.
      .catch(() => {})
      .finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, running);
  }

  async #guardDisk(): Promise<void> {
    const { links, isDiskLow, notice } = this.#deps;
    const isLow = isDiskLow();
    if (!isLow && !this.#isHeld) return;
    await links.asAdmin(async (client) => {
      if (isLow !== this.#isHeld) await store.holdWrites(client, isLow);
      // Who may set it may lift it.
      if (isLow) await store.endWriters(client);
    });
    if (isLow && !this.#isHeld) notice('PostgreSQL takes no writes while the disk is nearly full');
    this.#isHeld = isLow;
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
