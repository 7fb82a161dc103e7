/** Looks at the server every second: ends what runs for too long, and notes who was there. */
import type { EngineServer } from '../managed-server/engine-server.ts';
import { ServerRounds, UseMarks } from '../managed-server/server-rounds.ts';
import { ENDED_STATEMENT } from '../managed-server/slow-statements.ts';
import type { TenantLogs } from '../managed-server/tenant-logs.ts';
import { type Admin, databaseOf } from './admin-store.ts';
import type { MysqlLinks } from './mysql-links.ts';
import { TEMPORARY_BYTES } from './mysql-server.ts';
import * as store from './mysql-store.ts';
import * as sessions from './sessions-store.ts';
import { TemporarySpace } from './temporary-space.ts';
import { TemporaryTables } from './temporary-tables.ts';

export interface WatchdogDeps {
  readonly links: MysqlLinks;
  readonly server: Pick<EngineServer, 'isUp' | 'pid'>;
  /** The server is the operator's: its disk and its temporary files are not ours to bound. */
  readonly isGuest: boolean;
  readonly isDiskLow: () => boolean;
  readonly warn: (text: string) => void;
  readonly logs: TenantLogs;
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
    const { server, isGuest } = deps;
    const pid = () => server.pid;
    const space = new TemporarySpace({ ...deps, pid, bytes: TEMPORARY_BYTES });
    const tables = new TemporaryTables({ ...deps, pid });
    const look = { everyMs: EVERY_MS, work: () => this.#look() };
    const atSpace = [space, tables].map((one) => ({ everyMs: SPACE_MS, work: () => one.look() }));
    this.#rounds = new ServerRounds(() => server.isUp, isGuest ? [look] : [look, ...atSpace]);
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
      if (!this.#deps.isGuest) await this.#holdWrites(admin);
    });
  }

  async #holdWrites(admin: Admin): Promise<void> {
    const isLow = this.#deps.isDiskLow();
    // Again each time, as a server that came back has forgotten it.
    if (isLow || this.#isHeld !== false) await store.holdWrites(admin, isLow);
    if (isLow && !this.#isHeld) this.#deps.warn('MariaDB takes no writes while the disk is nearly full');
    this.#isHeld = isLow;
  }
}
