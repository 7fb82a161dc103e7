/**
 * The process that has one tenant's file open: all that a tenant says to SQLite is said here. It sees nothing
 * of the host but its folder, and Cloudlet ends it with a signal whenever it is silent for too long.
 * Descriptor 3 is the socket; the first call is `open`.
 */
import { Socket } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EngineLimits } from '../../databases/engine.ts';
import type { Handler } from './child-call.ts';
import { ChildSocket } from './child-socket.ts';
import { DurableLog } from './durable-log.ts';
import { isBusy, sqliteErrorName } from './sqlite-error.ts';
import { TenantConnections } from './tenant-connections.ts';
import type { Room } from './tenant-file.ts';

const DESCRIPTOR = 3;
const LOCK_FILE = 'lock';
const LOCK_WAIT_MS = 20;
const LOCK_TRIES = 250;
const COUNTERS_MS = 1000;

/** Of `open`. Paths are relative to the working directory, the tenant's folder. */
interface OpenHead extends Room {
  readonly file: string;
  readonly limits: EngineLimits;
}

let log: DurableLog | null = null;
/** Held as long as this process lives: one that nobody refers to would be closed, and the lock be gone. */
const kept: DatabaseSync[] = [];

const handlers: Record<string, Handler> = {
  open: async ({ head }) => {
    const { file, limits, ...room } = head as unknown as OpenHead;
    await takeLock(LOCK_FILE);
    const connections = new TenantConnections(file, room, limits);
    log = new DurableLog(file, connections.openFor('own', false));
    Object.assign(handlers, handlersOf(connections));
    tellCounters(connections);
    return { head: {} };
  },
};

function handlersOf(connections: TenantConnections): Record<string, Handler> {
  return {
    room: async ({ head }) => {
      const { limits, ...room } = head as unknown as OpenHead;
      connections.setRoom(room, limits);
      return { head: {} };
    },
    end: async () => {
      connections.closeAll();
      log = null;
      return { head: {} };
    },
  };
}

/** POSIX locks end with the process: who has this one knows that no other child has the file open. */
async function takeLock(path: string): Promise<void> {
  const lock = new DatabaseSync(path, { timeout: 0 });
  kept.push(lock);
  for (let tries = 1; ; tries++) {
    try {
      return lock.exec('BEGIN EXCLUSIVE');
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (tries === LOCK_TRIES) throw new Error('another process has the file open', { cause: error });
      await sleep(LOCK_WAIT_MS);
    }
  }
}

function tellCounters({ counters }: TenantConnections): void {
  let told = '';
  setInterval(() => {
    const now = JSON.stringify(counters);
    if (now === told) return;
    told = now;
    socket.send({ id: 0, counters });
  }, COUNTERS_MS);
}

const socket = new ChildSocket(new Socket({ fd: DESCRIPTOR }), {
  handlers,
  settle: () => log?.settle() ?? null,
  describe: (error) => ({ message: (error as Error).message, engineCode: sqliteErrorName(error) }),
});
