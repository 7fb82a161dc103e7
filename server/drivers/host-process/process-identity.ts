/** Identifies processes of this host: by more than their number, which may be reused, and by their user. */
import { closeSync, openSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { hostBootId as readBootId } from '../../platform/host/host-facts.ts';

export interface ProcessIdentity {
  readonly pid: number;
  /** From /proc: clock ticks from the host's boot to the start. */
  readonly startTime: number;
  readonly bootId: string;
  /** User id; null: ours at that time. */
  readonly uid: number | null;
}

interface ProcessStat {
  readonly pid: number;
  /** The process may still be a zombie. */
  readonly isDead: boolean;
  /** The process runs, or waits for a processor. */
  readonly isRunning: boolean;
  /** Number of the process that started it. */
  readonly parent: number;
  readonly cpuTicks: number;
  readonly startTime: number;
}

/** Linux reports times to programs in hundredths of a second, regardless of its own tick. */
export const MS_PER_TICK = 10;
/** Between -1000 and 1000: when memory runs out, a foreign process is killed before the control plane. */
const OOM_SCORE_ADJ = 500;
const POLL_MS = 10;
/** In the keeper's folder: the process that runs, `<boot id> <line of /proc/…/stat>`. */
export const RUN = 'run';

/** Text of a file of /proc; null when the process is gone. Throws when we may open no more files. */
export function readProc(path: string): string | null {
  try {
    return readFileSync(`/proc/${path}`, 'latin1');
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (['EMFILE', 'ENFILE', 'ENOMEM'].includes(code)) throw error;
    return null;
  }
}

/** The kernel's figures of `<pid>` or `<pid>/task/<tid>`. */
export function readStat(path: string | number): ProcessStat | null {
  const text = readProc(`${path}/stat`);
  return text === null ? null : parseStat(text);
}

export interface ProcessorTimes {
  readonly cpuMs: number;
  /** Time in which it waited for a processor. */
  readonly waitedMs: number;
}

/**
 * Times of `<pid>`'s first thread, or of `<pid>/task/<tid>`, without a wait for a process that replaces its
 * program, unlike `stat`. Zeros: it is gone, or the kernel does not count them.
 */
export function processorTimes(path: string | number): ProcessorTimes {
  const [cpuNs = 0, waitedNs = 0] = (readProc(`${path}/schedstat`) ?? '').split(' ').map(Number);
  return { cpuMs: cpuNs / 1e6, waitedMs: waitedNs / 1e6 };
}

/** A parsed line of `stat`; null: another format. */
export function parseStat(text: string): ProcessStat | null {
  // The name, in parentheses, may itself hold anything.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [pid, startTime] = [Number.parseInt(text, 10), Number(fields[19])];
  if (!Number.isInteger(pid) || !Number.isInteger(startTime)) return null;
  const cpuTicks = Number(fields[11]) + Number(fields[12]);
  const [isDead, isRunning] = [isOver(text), fields[0] === 'R'];
  return { pid, isDead, isRunning, parent: Number(fields[1]), cpuTicks, startTime };
}

/** Memory of the host that the process has, bytes; null when it is gone. */
export function residentBytes(pid: number): number | null {
  const match = /^VmRSS:\s+(\d+) kB/m.exec(readProc(`${pid}/status`) ?? '');
  return match === null ? null : Number(match[1]) * 1024;
}

let bootId: string | null = null;

/** Read once: it lasts as long as we do. */
export function hostBootId(): string {
  bootId ??= readBootId();
  return bootId;
}

/** Whether any process has that id, even if it cannot be examined. */
export function isThere(pid: number): boolean {
  try {
    return readStat(pid)?.isDead === false;
  } catch {
    return userOf(pid) !== null;
  }
}

/** The identity of the process with that id; null: none. */
export function identify(pid: number): Omit<ProcessIdentity, 'uid'> | null {
  const stat = readStat(pid);
  if (stat === null || stat.isDead) return null;
  return { pid, startTime: stat.startTime, bootId: hostBootId() };
}

/**
 * Whether that very process still runs. A zombie does not count. Its command line does not matter: anyone who
 * took over a process can write anything there. A process that cannot be examined, because we may open no
 * more files, counts as running: it is neither reported as ended nor replaced.
 */
export function isAlive(identity: ProcessIdentity): boolean {
  try {
    return isThatVery(identity);
  } catch {
    return userOf(identity.pid) !== null;
  }
}

function isThatVery({ pid, startTime, bootId: ofBoot, uid }: ProcessIdentity): boolean {
  const stat = readStat(pid);
  if (stat === null || stat.isDead || stat.startTime !== startTime || ofBoot !== hostBootId()) return false;
  return uid === null || userOf(pid) === uid;
}

/** Signals exactly that process. False: it has ended. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
  try {
    if (!isThatVery(identity)) return false;
    return process.kill(identity.pid, signal);
  } catch {
    return false;
  }
}

/** Makes the process the first to be killed when the host runs out of memory, where that is allowed. */
export function yieldMemoryFirst(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, String(OOM_SCORE_ADJ));
  } catch {
    // Some containers forbid it, which does no harm.
  }
}

/** The process started for that folder of a keeper, if it still runs as that user; else null. */
export function keptProcess(keeper: string, uid: number | null): ProcessIdentity | null {
  let text: string;
  try {
    text = readFileSync(join(keeper, RUN), 'latin1');
  } catch {
    return null;
  }
  const [ofBoot = '', ...stat] = text.split(' ');
  const found = parseStat(stat.join(' '));
  if (found === null) return null;
  const identity = { pid: found.pid, startTime: found.startTime, bootId: ofBoot, uid };
  return isAlive(identity) ? identity : null;
}

/** Reserved, so that a process that must be ended can be found even when no other file can be opened. */
let spare: number | null = null;

/** Runs `work`, which opens one file at a time. Throws EMFILE if no descriptor is free. */
function withDescriptor<T>(work: () => T): T {
  keepSpare();
  try {
    return work();
  } catch (error) {
    if (spare === null || !isOutOfFiles(error)) throw error;
    closeSync(spare);
    spare = null;
    try {
      return work();
    } finally {
      keepSpare();
    }
  }
}

function keepSpare(): void {
  try {
    spare ??= openSync('/proc', 'r');
  } catch {
    // A descriptor may become free anyway.
  }
}

function isOutOfFiles(error: unknown): boolean {
  return ['EMFILE', 'ENFILE'].includes(String((error as NodeJS.ErrnoException).code));
}

/** A process's user id, from the kernel, not forgeable; null when it is gone. */
export function userOf(pid: number | string): number | null {
  try {
    return statSync(`/proc/${pid}`).uid;
  } catch {
    return null;
  }
}

/**
 * Sends SIGKILL to all processes of a user that has no other use, and returns whether there were any.
 * Processes that are just being forked are missed: repeat until none are found. Throws EMFILE when no file
 * can be opened.
 */
export function killProcessesOf(uid: number): boolean {
  if (uid === 0 || uid === process.getuid?.())
    throw new Error('the user of a foreign process must be nobody else');
  return withDescriptor(() => killAll(uid));
}

function killAll(uid: number): boolean {
  let isAny = false;
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name) || userOf(name) !== uid || isDead(name)) continue;
    isAny = true;
    try {
      process.kill(Number(name), 'SIGKILL');
    } catch {
      // The process has ended.
    }
  }
  return isAny;
}

/** Repeats killProcessesOf until none is left; false after the timeout. */
export async function endProcessesOf(uid: number, withinMs: number): Promise<boolean> {
  for (let waited = 0; killProcessesOf(uid); waited += POLL_MS) {
    if (waited >= withinMs) return false;
    await sleep(POLL_MS);
  }
  return true;
}

function isDead(pid: string): boolean {
  try {
    return isOver(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch (error) {
    if (isOutOfFiles(error)) throw error;
    return true;
  }
}

/** Whether a line of /proc's `stat` shows a dead process that was not reaped yet. */
function isOver(stat: string): boolean {
  // The name, in parentheses, may itself hold anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  // A process whose first thread has exited looks dead while others run.
  return (fields[0] === 'Z' || fields[0] === 'X') && Number(fields[17]) <= 1;
}
