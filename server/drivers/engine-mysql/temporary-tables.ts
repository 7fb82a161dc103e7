/**
 * InnoDB keeps the temporary tables of all tenants in one file. It gives room back to others, but never
 * shrinks while the server runs, and a full one may end the server. So who fills it is ended before.
 */
import * as fs from 'node:fs';
import type { TenantLogs } from '../managed-server/tenant-logs.ts';
import { databaseOf } from './admin-store.ts';
import type { MysqlLinks } from './mysql-links.ts';
import * as sessions from './sessions-store.ts';

export interface TemporaryTablesDeps {
  readonly links: MysqlLinks;
  /** The process of the server, which works in the folder of that file. */
  readonly pid: () => number | null;
  readonly logs: TenantLogs;
  readonly warn: (text: string) => void;
}

/** The file is at most 2 GiB, and grows by 64 MiB. */
export const TEMPORARY_TABLES = 'ibtmp1:12M:autoextend:max:2G';
const FILE = 'ibtmp1';
/** From there on, whoever makes it grow is ended. */
const MOST_BYTES = 256 * 2 ** 20;
const ENDED = 'FATAL: sessions were ended, as their temporary tables took the room of all others';

export class TemporaryTables {
  readonly #deps: TemporaryTablesDeps;
  #pid: number | null = null;
  /** The size of the file when the last one was ended, or the server was first seen. */
  #seen = 0;
  #isEnding = false;

  constructor(deps: TemporaryTablesDeps) {
    this.#deps = deps;
  }

  async look(): Promise<void> {
    const { links, logs, warn } = this.#deps;
    const pid = this.#deps.pid();
    const bytes = bytesOf(pid);
    if (pid !== this.#pid) this.#seen = bytes;
    this.#pid = pid;
    if (this.#isEnding) {
      // Who is ended still writes a little, for which nobody else is to be ended.
      this.#isEnding = await links.asAdmin(sessions.isAnyEnding);
      this.#seen = bytesOf(pid);
      return;
    }
    if (bytes <= Math.max(this.#seen, MOST_BYTES)) return;
    await links.asAdmin(async (admin) => {
      const writer = await sessions.largestTemporaryWriter(admin);
      // Between two statements: it is asked again.
      if (writer === null) return;
      this.#isEnding = true;
      // All of them: others may hold what they wrote before.
      await sessions.endSessions(admin, [writer.user]);
      const database = databaseOf(writer.user);
      logs.add({ database, at: writer.at, text: ENDED });
      warn(`ended the sessions of the database ${database}, whose temporary tables took too much room`);
    });
  }
}

/** 0: there is no server, or we may not look. */
function bytesOf(pid: number | null): number {
  try {
    return pid === null ? 0 : fs.statSync(`/proc/${pid}/cwd/${FILE}`).size;
  } catch {
    return 0;
  }
}
