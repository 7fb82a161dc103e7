/**
 * Looks at the server every second: ends what runs for too long, notes who was there. While the disk is
 * nearly full it keeps tenants from writing: PostgreSQL stops altogether when it cannot write its log.
 */
import { ServerRounds, UseMarks } from '../managed-server/server-rounds.ts';
import { ENDED_STATEMENT } from '../managed-server/slow-statements.ts';
import type { TenantLogs } from '../managed-server/tenant-logs.ts';
import type { PostgresqlLinks } from './postgresql-links.ts';
import * as store from './postgresql-store.ts';

export interface WatchdogDeps {
  readonly links: PostgresqlLinks;
  readonly isUp: () => boolean;
  /** Whether others have databases there, to which tenants can connect. */
  readonly isGuest: boolean;
  readonly isDiskLow: () => boolean;
  readonly warn: (text: string) => void;
  readonly logs: TenantLogs;
}

const EVERY_MS = 1000;
const DISK_MS = 250;

export class Watchdog {
  readonly #deps: WatchdogDeps;
  readonly #rounds: ServerRounds;
  readonly #use = new UseMarks();
  #isHeld = false;

  constructor(deps: WatchdogDeps) {
    this.#deps = deps;
    const look = { everyMs: EVERY_MS, work: () => this.#look() };
    const guard = { everyMs: DISK_MS, work: () => this.#guardDisk() };
    // The disk of another host is not ours to guard.
    this.#rounds = new ServerRounds(deps.isUp, deps.isGuest ? [look] : [look, guard]);
  }

  /** A server that was started anew may write. */
  began(): void {
    this.#isHeld = false;
  }

  /** Databases that were used since the last call. */
  takeActive(): string[] {
    return this.#use.take();
  }

  close(): Promise<void> {
    return this.#rounds.close();
  }

  async #guardDisk(): Promise<void> {
    const { links, isDiskLow, warn } = this.#deps;
    const isLow = isDiskLow();
    if (!isLow && !this.#isHeld) return;
    await links.asAdmin(async (client) => {
      if (isLow !== this.#isHeld) await store.holdWrites(client, isLow);
      // Who may set it may lift it.
      if (isLow) await store.endWriters(client);
    });
    if (isLow && !this.#isHeld) warn('PostgreSQL takes no writes while the disk is nearly full');
    this.#isHeld = isLow;
  }

  async #look(): Promise<void> {
    const { links, warn, logs } = this.#deps;
    logs.flush();
    await links.asAdmin(async (client) => {
      for (const { database, at } of await store.endRunaways(client)) {
        logs.add({ database, at, text: ENDED_STATEMENT });
        warn(`ended a statement of the database ${database} that ran for too long`);
      }
      logs.noteSlow(await store.slowStatements(client));
      if (this.#deps.isGuest) await store.endStrays(client);
      this.#use.note(await store.activity(client));
    });
  }
}
