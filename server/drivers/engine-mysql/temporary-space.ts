/**
 * MariaDB's temporary files are all in one place of one size, and it bounds nobody's part of it. Before that
 * is full, the statement that took most of it is ended, of the tenant that took most: so nobody else fails.
 */
import * as fs from 'node:fs';
import type { TenantLogs } from '../managed-server/tenant-logs.ts';
import { databaseOf } from './admin-store.ts';
import type { MysqlLinks } from './mysql-links.ts';
import * as sessions from './sessions-store.ts';

export interface TemporarySpaceDeps {
  readonly links: MysqlLinks;
  /** The server's PID. */
  readonly pid: () => number | null;
  /** The size of the place where the server sees its own /tmp. */
  readonly bytes: number;
  readonly logs: TenantLogs;
  readonly warn: (text: string) => void;
}

/**
 * Parts of all there is: from where on it is watched, and what ends a statement. The rest is for what is
 * written until we look again: MariaDB 10.11 crashes when the place is full.
 */
const WATCHED = 0.025;
const MOST = 0.25;
const ENDED = 'ERROR: a statement was ended, as its temporary files took the room of all others';

export class TemporarySpace {
  readonly #deps: TemporarySpaceDeps;
  /** Bytes that a session had written when its statement was first seen. */
  #before = new Map<string, number>();

  constructor(deps: TemporarySpaceDeps) {
    this.#deps = deps;
  }

  async look(): Promise<void> {
    const { links, pid } = this.#deps;
    const server = pid();
    if (server === null || this.#usedPart(server) < WATCHED) {
      this.#before.clear();
      return;
    }
    await links.asAdmin(async (admin) => {
      const statements = await sessions.runningThreads(admin);
      const written = writtenBy(server);
      const before = this.#before;
      const seen = statements.map((one) => ({ ...one, bytes: written.get(one.thread) ?? 0 }));
      this.#before = new Map(seen.map(({ key, bytes }) => [key, before.get(key) ?? bytes]));
      const shares = seen.map((one) => ({ ...one, bytes: one.bytes - (this.#before.get(one.key) ?? 0) }));
      // Asked after the statements: one that is gone has left its room.
      if (this.#usedPart(server) < MOST) return;
      const victim = largestOf(shares);
      if (victim !== null && victim.bytes > WATCHED * this.#deps.bytes) await this.#end(admin, victim);
    });
  }

  async #end(admin: Parameters<typeof sessions.killQuery>[0], { id, user, at }: sessions.RunningThread) {
    const { logs, warn } = this.#deps;
    await sessions.killQuery(admin, id);
    const database = databaseOf(user);
    logs.add({ database, at, text: ENDED });
    warn(`ended a statement of the database ${database} that took too much temporary space`);
  }

  /** 0: it has no place of its own there, or we may not look. */
  #usedPart(server: number): number {
    try {
      const { blocks, bfree, bsize } = fs.statfsSync(`/proc/${server}/root/tmp`);
      return blocks * bsize === this.#deps.bytes ? (blocks - bfree) / blocks : 0;
    } catch {
      return 0;
    }
  }
}

/** By the number that the server itself knows a thread by. */
function writtenBy(server: number): Map<number, number> {
  const tasks = `/proc/${server}/task`;
  return new Map(
    fs.readdirSync(tasks).flatMap((task) => {
      try {
        const status = fs.readFileSync(`${tasks}/${task}/status`, 'latin1');
        const io = fs.readFileSync(`${tasks}/${task}/io`, 'latin1');
        const thread = /^NSpid:.*?(\d+)$/m.exec(status)?.[1] ?? task;
        return [[Number(thread), Number(/^wchar: (\d+)$/m.exec(io)?.[1])] as const];
      } catch {
        // It ended meanwhile.
        return [];
      }
    }),
  );
}

type Share = sessions.RunningThread & { readonly bytes: number };

/** The largest share of the tenant that has most in all. */
function largestOf(shares: readonly Share[]): Share | null {
  const tenants = [...Map.groupBy(shares, ({ user }) => databaseOf(user)).values()];
  const sum = (of: readonly Share[]) => of.reduce((bytes, share) => bytes + share.bytes, 0);
  const most = tenants.sort((one, other) => sum(other) - sum(one))[0] ?? [];
  return [...most].sort((one, other) => other.bytes - one.bytes)[0] ?? null;
}
