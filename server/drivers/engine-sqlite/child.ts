/**
 * The process that has one tenant's file open: all that a tenant says to SQLite is said here. It sees nothing
 * of the host but its folder, and Cloudlet ends it with a signal whenever it is silent for too long.
 * The first call is `open`, or, of a file that a tenant sent, `check`.
 */
import { statfsSync } from 'node:fs';
import { Socket } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EngineLimits } from '../../databases/engine.ts';
import type { Handler } from './child-call.ts';
import { checkHandler, copyHandler, DiskFull } from './child-copies.ts';
import { queryHandler } from './child-query.ts';
import { ChildSocket } from './child-socket.ts';
import { tablesHandler } from './child-tables.ts';
import { DurableLog } from './durable-log.ts';
import { hranaHandler } from './hrana-handler.ts';
import { isBusy, isFull, sqliteErrorName } from './sqlite-error.ts';
import { TenantConnections } from './tenant-connections.ts';
import { numberOf, type Room } from './tenant-file.ts';

/** Standard output, which is as good a socket as any, and the one that is left to us. */
const DESCRIPTOR = 1;
const LOCK_FILE = 'lock';
const LOCK_WAIT_MS = 20;
const LOCK_TRIES = 250;
const TELL_MS = 1000;
/** Kept for what is written next. */
const SPARE_PAGES = 256;
const SHRINK_PAGES = 2000;
/** SQLITE_FULL means the disk when there is less left on it. */
const DISK_FULL_BYTES = 1024 * 1024;

/** Of `open`. The file is in the working directory, the tenant's folder. */
interface OpenHead extends Room {
  readonly file: string;
  /** Where copies of it are made. */
  readonly copy: string;
  readonly limits: EngineLimits;
}

let log: DurableLog | null = null;
/** Held as long as this process lives: one that nobody refers to would be closed, and the lock be gone. */
const kept: DatabaseSync[] = [];

const handlers: Record<string, Handler> = {
  check: checkHandler,
  open: async ({ head }) => {
    const { file, copy, limits, ...room } = head as unknown as OpenHead;
    await takeLock();
    const connections = new TenantConnections(file, room, limits);
    const watcher = connections.openFor('own', true);
    log = new DurableLog(file, watcher);
    Object.assign(handlers, handlersOf(connections, copy));
    const tick = setInterval(() => {
      if (!socket.isBusy) shrink(connections, watcher);
      tell(connections, watcher);
    }, TELL_MS);
    handlers.end = async () => {
      clearInterval(tick);
      tell(connections, watcher);
      connections.closeAll();
      log = null;
      return { head: {} };
    };
    tell(connections, watcher);
    return { head: {} };
  },
};

function handlersOf(connections: TenantConnections, copy: string): Record<string, Handler> {
  return {
    query: queryHandler(connections),
    tables: tablesHandler(connections),
    copy: copyHandler(connections, copy),
    hrana: hranaHandler(connections),
    room: async ({ head }) => {
      const { limits, ...room } = head as unknown as Room & { limits: EngineLimits };
      connections.setRoom(room, limits);
      return { head: {} };
    },
  };
}

/** POSIX locks end with the process: who has this one knows that no other child has the file open. */
async function takeLock(): Promise<void> {
  const lock = new DatabaseSync(LOCK_FILE, { timeout: 0 });
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

function freeBytes(): number {
  const { bavail, bsize } = statfsSync('.');
  return bavail * bsize;
}

/** Gives room that deleted rows left back to the disk, a little at a time, while nobody has a session. */
function shrink(connections: TenantConnections, watcher: DatabaseSync): void {
  if (connections.counters.connections > 0 || numberOf(watcher, 'PRAGMA freelist_count') < SPARE_PAGES)
    return;
  const database = connections.open();
  try {
    database.exec(`PRAGMA incremental_vacuum(${SHRINK_PAGES})`);
  } catch (error) {
    if (!isBusy(error)) throw error;
  } finally {
    connections.close(database);
  }
}

let told = '';

/** How much there is, and was done. */
function tell({ counters }: TenantConnections, watcher: DatabaseSync): void {
  const sizeBytes = numberOf(watcher, 'PRAGMA page_count') * numberOf(watcher, 'PRAGMA page_size');
  const now = JSON.stringify({ ...counters, sizeBytes });
  if (now === told) return;
  told = now;
  socket.send({ id: 0, counters: { ...counters, sizeBytes } });
}

const socket = new ChildSocket(new Socket({ fd: DESCRIPTOR }), {
  handlers,
  settle: () => log?.settle() ?? null,
  describe: (error) => ({
    message: (error as Error).message,
    engineCode: sqliteErrorName(error),
    isDiskFull: error instanceof DiskFull || (isFull(error) && freeBytes() < DISK_FULL_BYTES),
  }),
});
