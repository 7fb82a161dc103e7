/**
 * Looks every second at a server of the operator's, which the tenants share: ends what runs for too long,
 * and sessions in databases of others; notes who was there.
 */
import { ServerRounds, UseMarks } from '../managed-server/server-rounds.ts';
import { ENDED_STATEMENT } from '../managed-server/slow-statements.ts';
import type { TenantLogs } from '../managed-server/tenant-logs.ts';
import type { PostgresqlLinks } from './postgresql-links.ts';
import * as store from './postgresql-store.ts';

export interface WatchdogDeps {
  readonly links: PostgresqlLinks;
  readonly isUp: () => boolean;
  readonly warn: (text: string) => void;
  readonly logs: TenantLogs;
}

const EVERY_MS = 1000;

export class Watchdog {
  readonly #deps: WatchdogDeps;
  readonly #rounds: ServerRounds;
  readonly #use = new UseMarks();

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
    const { links, warn, logs } = this.#deps;
    logs.flush();
    await links.asAdmin(async (client) => {
      for (const { database, at } of await store.endRunaways(client)) {
        logs.add({ database, at, text: ENDED_STATEMENT });
        warn(`ended a statement of the database ${database} that ran for too long`);
      }
      logs.noteSlow(await store.slowStatements(client));
      await store.endStrays(client);
      this.#use.note(await store.activity(client));
    });
  }
}
