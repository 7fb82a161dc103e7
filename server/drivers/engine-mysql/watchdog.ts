/**
 * Looks every second at a server of the operator's, which the tenants share: ends what runs for too long, and
 * notes who was there.
 */
import type { EngineServer } from '../managed-server/engine-server.ts';
import { ServerRounds, UseMarks } from '../managed-server/server-rounds.ts';
import { ENDED_STATEMENT } from '../managed-server/slow-statements.ts';
import type { TenantLogs } from '../managed-server/tenant-logs.ts';
import { databaseOf } from './admin-store.ts';
import type { MysqlLinks } from './mysql-links.ts';
import * as store from './mysql-store.ts';
import * as sessions from './sessions-store.ts';

export interface WatchdogDeps {
  readonly links: MysqlLinks;
  readonly server: Pick<EngineServer, 'isUp'>;
  readonly warn: (text: string) => void;
  readonly logs: TenantLogs;
  /** Makes a database again that its tenant dropped, unless we did. */
  readonly makeAgain: (database: string) => Promise<void>;
}

const EVERY_MS = 1000;

export class Watchdog {
  readonly #deps: WatchdogDeps;
  readonly #rounds: ServerRounds;
  readonly #use = new UseMarks();

  constructor(deps: WatchdogDeps) {
    this.#deps = deps;
    const look = { everyMs: EVERY_MS, work: () => this.#look() };
    this.#rounds = new ServerRounds(() => deps.server.isUp, [look]);
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
    await links.asAdmin(async (admin) => {
      for (const { user, at } of await sessions.endRunaways(admin)) {
        const database = databaseOf(user);
        logs.add({ database, at, text: ENDED_STATEMENT });
        warn(`ended a statement of the database ${database} that ran for too long`);
      }
      logs.noteSlow(await sessions.slowStatements(admin));
      this.#use.note(await sessions.activity(admin), databaseOf);
      for (const database of await store.droppedByTenants(admin)) await this.#deps.makeAgain(database);
    });
  }
}
