/**
 * Checks an operator's server, which tenants share, every second: ends statements that run for too
 * long, and records which databases are in use.
 */

import type { RunningStatement, TenantLogs } from '../accounts/tenant-logs.ts';
import type { EngineServer } from '../database-server.ts';
import { ServerRounds, UseMarks } from './server-rounds.ts';

/** The statements of one engine. */
export interface Watched<Admin> {
  /** Ends tenants' sessions with overlong statements. `at`: when each was ended. */
  endRunaways(admin: Admin): Promise<readonly { readonly database: string; readonly at: string }[]>;
  slowStatements(admin: Admin): Promise<readonly RunningStatement[]>;
  /** A text for each database that changes when it is used. */
  activity(admin: Admin): Promise<ReadonlyMap<string, string>>;
  /** Repairs other changes by which a tenant may harm others or itself. */
  mend(admin: Admin): Promise<void>;
}

export interface WatchdogDeps<Admin> {
  readonly server: Pick<EngineServer, 'isUp'>;
  readonly links: { asAdmin(work: (admin: Admin) => Promise<void>): Promise<void> };
  readonly logs: TenantLogs;
  readonly warn: (text: string) => void;
  readonly watched: Watched<Admin>;
}

const EVERY_MS = 1000;

export class Watchdog<Admin> {
  readonly #deps: WatchdogDeps<Admin>;
  readonly #rounds: ServerRounds;
  readonly #use = new UseMarks();

  constructor(deps: WatchdogDeps<Admin>) {
    this.#deps = deps;
    const round = { everyMs: EVERY_MS, work: () => this.#round() };
    this.#rounds = new ServerRounds(() => deps.server.isUp, [round]);
  }

  /** Databases used since the last call. */
  takeActive(): string[] {
    return this.#use.take();
  }

  close(): Promise<void> {
    return this.#rounds.close();
  }

  async #round(): Promise<void> {
    const { links, warn, logs, watched } = this.#deps;
    logs.flush();
    await links.asAdmin(async (admin) => {
      for (const { database, at } of await watched.endRunaways(admin)) {
        logs.add({ database, at, text: 'ERROR: a session was ended: its statement ran for too long' });
        warn(`ended a statement of the database ${database} that ran for too long`);
      }
      logs.noteSlow(await watched.slowStatements(admin));
      this.#use.note(await watched.activity(admin));
      await watched.mend(admin);
    });
  }
}
