/** Processes told apart from all others: a number alone may by now be someone else's. */
import { readFileSync, writeFileSync } from 'node:fs';
import { hostBootId as readBootId } from '../../platform/host-boot.ts';
import { isOver, userOf } from './user-processes.ts';

export interface ProcessIdentity {
  readonly pid: number;
  /** As in /proc: clock ticks from the boot of the host to the start of the process. */
  readonly startTime: number;
  readonly bootId: string;
  /** Under which it runs; null: ours, or whoever we were when it began. */
  readonly uid: number | null;
}

interface ProcessStat {
  readonly pid: number;
  /** It may be buried yet. */
  readonly isDead: boolean;
  readonly cpuTicks: number;
  readonly startTime: number;
}

/** Linux shows times to programs in hundredths of a second, whatever its own tick is. */
export const MS_PER_TICK = 10;
/** Between -1000 and 1000: when memory runs out a foreign process goes before the control plane. */
const OOM_SCORE_ADJ = 500;

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

/** What the kernel says of `<pid>` or `<pid>/task/<tid>`. */
export function readStat(path: string | number): ProcessStat | null {
  const text = readProc(`${path}/stat`);
  return text === null ? null : parseStat(text);
}

/** A line of `stat`; null when it is none. */
export function parseStat(text: string): ProcessStat | null {
  // The name, in parentheses, may itself hold anything.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [pid, startTime] = [Number.parseInt(text, 10), Number(fields[19])];
  if (!Number.isInteger(pid) || !Number.isInteger(startTime)) return null;
  return { pid, isDead: isOver(text), cpuTicks: Number(fields[11]) + Number(fields[12]), startTime };
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

/** Whether a process of that number runs, of whatever kind; also when it cannot be looked into. */
export function isThere(pid: number): boolean {
  try {
    return readStat(pid)?.isDead === false;
  } catch {
    return userOf(pid) !== null;
  }
}

/** The identity of the process that has that number now; null when there is none. */
export function identify(pid: number): Omit<ProcessIdentity, 'uid'> | null {
  const stat = readStat(pid);
  if (stat === null || stat.isDead) return null;
  return { pid, startTime: stat.startTime, bootId: hostBootId() };
}

/**
 * Whether that very process still runs. One that is dead and not yet buried does not. Its command line does
 * not matter: whoever took over a process can write anything there. One that cannot be looked into, because
 * we may open no more files, is taken to run on: nothing is told to be over, or begun in its place.
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

/** Sends a signal to that very process. False: it is gone, and nobody got one. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
  try {
    if (!isThatVery(identity)) return false;
    return process.kill(identity.pid, signal);
  } catch {
    return false;
  }
}

/** Makes the process the first to go when the host runs out of memory, where that is allowed. */
export function yieldMemoryFirst(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, String(OOM_SCORE_ADJ));
  } catch {
    // Some containers do not let us; the process is none the worse for it.
  }
}
