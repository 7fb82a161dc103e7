/** Starts the process of a guest, paused, and brings it to where its processor runs. */
import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '../../errors.ts';
import { BALLOON_ID } from './arguments.ts';
import type { GuestRun } from './guest-run.ts';
import { identify, type ProcessIdentity, yieldMemoryFirst } from './processes.ts';

export interface LaunchOptions {
  readonly program: string;
  readonly args: readonly string[];
  /** Its working directory, in which all its files are. */
  readonly folder: string;
  /** Takes what it says, path. */
  readonly log: string;
  /** The user and group it runs as; null: ours. */
  readonly user: { readonly uid: number; readonly gid: number } | null;
}

export interface Launched {
  readonly identity: ProcessIdentity;
  /** Calls back once with how it exited, for as long as this process is its parent. */
  readonly onExit: (listener: (text: string) => void) => void;
}

const POLL_MS = 5;
const READY_MS = 15_000;
const STATS_SECONDS = 5;
const LOG_TAIL_BYTES = 4096;

/**
 * Resolves when the program runs. User and group are changed before it begins, because its sandbox forbids it
 * to do so itself; it gets nothing of our environment, and a session of its own, so that it outlives us.
 */
export async function launch(options: LaunchOptions): Promise<Launched> {
  const { program, args, folder, log, user } = options;
  const fd = fs.openSync(log, 'w', 0o600);
  const child = spawn(program, args, {
    cwd: folder,
    env: { LANG: 'C' },
    detached: true,
    stdio: ['ignore', fd, fd],
    ...(user ?? {}),
  });
  fs.closeSync(fd);
  let exit: string | null = null;
  let listener = (_text: string) => {};
  child.once('exit', (status, signal) => {
    exit =
      signal === null ? `the process exited with status ${status}` : `the process was killed by ${signal}`;
    listener(exit);
  });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
  child.unref();
  const identity = child.pid === undefined ? null : identify(child.pid);
  if (identity === null) throw new Error('the process ended at once');
  yieldMemoryFirst(identity.pid);
  const onExit = (next: (text: string) => void) => {
    listener = next;
    if (exit !== null) next(exit);
  };
  return { identity, onExit };
}

/**
 * Waits until both QMP sockets answer, sets what can only be set now, and lets the processor run. Throws when
 * the process ends, or is not there after 15 s.
 */
export async function bringUp(run: GuestRun): Promise<void> {
  for (let waited = 0; ; waited += POLL_MS) {
    try {
      await run.watch();
      break;
    } catch (error) {
      if (!run.isAlive || waited > READY_MS) throw error;
      await sleep(POLL_MS);
    }
  }
  const interval = { property: 'guest-stats-polling-interval', value: STATS_SECONDS };
  await run.command('qom-set', { path: `/machine/peripheral/${BALLOON_ID}`, ...interval });
  await run.command('cont');
  const status = await runStatus(run);
  if (status !== 'running') throw new AppError('internal_error', `the guest is ${status} after its start`);
}

/** What QEMU calls it: `prelaunch`, `running`, `paused`, … Rejects with QmpError. */
export async function runStatus(run: GuestRun, timeoutMs?: number): Promise<string> {
  const answer = (await run.command('query-status', {}, timeoutMs)) as { status?: unknown } | null;
  return String(answer?.status);
}

/** The last line of a log, without anything that is a path; null when it is empty. */
export function lastLine(log: string): string | null {
  let text: string;
  try {
    text = tail(log, LOG_TAIL_BYTES).toString();
  } catch {
    return null;
  }
  const line = text.trim().split('\n').at(-1) ?? '';
  const plain = line.replace(/\S*\/\S*/g, '…').slice(0, 300);
  return plain === '' ? null : plain;
}

/** The last bytes of a file that is no link. */
export function tail(path: string, maxBytes: number): Buffer {
  const fd = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK);
  try {
    const { size } = fs.fstatSync(fd);
    const bytes = Buffer.alloc(Math.min(size, maxBytes));
    const got = fs.readSync(fd, bytes, 0, bytes.length, size - bytes.length);
    return bytes.subarray(0, got);
  } finally {
    fs.closeSync(fd);
  }
}
