/**
 * Main loop of every child: locks its file, handles calls and reports counters. It sees only its
 * folder of the host, and Cloudlet kills it when it is silent for too long.
 */
import { Socket } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { damageWatch, hostSpace, isBusy, isDamage, noteDamage } from '../../../libs/sqlite/index.ts';
import type { EngineLimits } from '../../databases/engine.ts';
import type { Counters, Handler, SizeLimit } from './child-call.ts';
import { ChildSocket } from './child-socket.ts';
import { breakSeal, sealFile } from './file-seal.ts';

/** Standard output, the socket to Cloudlet. */
const DESCRIPTOR = 1;
const LOCK_FILE = 'lock';
const LOCK_WAIT_MS = 20;
const LOCK_TRIES = 250;
const TELL_MS = 1000;

/** The statement exceeded the time of its call, by the clock of this process. */
export class OverTime extends Error {}

/** Arguments of the call `open`. The files are in the tenant's folder. */
export interface OpenHead extends SizeLimit {
  /** Path of the folder: the working directory from now on. */
  readonly at: string;
  /** The database's name in its engine. */
  readonly name: string;
  readonly file: string;
  /** File name of a copy. */
  readonly copy: string;
  readonly limits: EngineLimits;
  /** HostSpace.keepFreeBytes. */
  readonly keepFreeBytes: number;
}

/** A tenant's file that is open. */
export interface OpenedFile {
  readonly handlers: Readonly<Record<string, Handler>>;
  /** DurableLog.flush(); null: nothing to wait for. */
  flush(): Promise<void> | null;
  figures(): Counters & { readonly sizeBytes: number };
  /** Called every second without calls. */
  whenIdle(): void;
  close(): void;
}

export interface ChildKind {
  /** Calls that need no open file, by kind. */
  readonly handlers: Readonly<Record<string, Handler>>;
  /** Called by the holder of the lock only. */
  open(head: OpenHead): OpenedFile;
  /** Public name of an error; null: none. */
  errorName(error: unknown): string | null;
}

/** Referenced forever: garbage collection would close the file and release the lock. */
const kept: DatabaseSync[] = [];

/** Called once; serves until Cloudlet closes the socket. */
export function runChild({ handlers: first, open, errorName }: ChildKind): void {
  let opened: OpenedFile | null = null;
  const handlers: Record<string, Handler> = {
    ...first,
    keepFree: async ({ head }) => {
      hostSpace.keepFreeBytes = Number(head.bytes);
      return { head: {} };
    },
    open: async ({ head }) => {
      const opening = head as unknown as OpenHead;
      process.chdir(opening.at);
      await takeLock();
      hostSpace.keepFreeBytes = opening.keepFreeBytes;
      breakSeal(opening.file);
      const file = open(opening);
      opened = file;
      const tell = teller(socket, file);
      const tick = setInterval(() => {
        if (!socket.isBusy) file.whenIdle();
        tell();
      }, TELL_MS);
      Object.assign(handlers, file.handlers, {
        end: async () => {
          clearInterval(tick);
          tell();
          file.close();
          opened = null;
          sealFile(opening.file);
          return { head: {} };
        },
      });
      tell();
      return { head: {} };
    },
  };
  const socket = new ChildSocket(new Socket({ fd: DESCRIPTOR }), {
    handlers,
    flush: () => opened?.flush() ?? null,
    describe: (error) => {
      noteDamage(error);
      return {
        message: (error as Error).message,
        engineCode: errorName(error),
        isDiskFull: hostSpace.isWhy(error),
        isDamaged: isDamage(error),
        isOverTime: error instanceof OverTime,
      };
    },
  });
  damageWatch.tell = (what) => socket.send({ id: 0, damage: what });
}

/** POSIX locks end with the process: no other process has the file open. */
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

/** Reports counters when they have changed. */
function teller(socket: ChildSocket, file: OpenedFile): () => void {
  let sent = '';
  return () => {
    const counters = file.figures();
    const now = JSON.stringify(counters);
    if (now === sent) return;
    sent = now;
    socket.send({ id: 0, counters });
  };
}
