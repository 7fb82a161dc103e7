/**
 * Processes by the user they run as. A foreign process has one of its own and cannot change it, whereas
 * command line and name are for the process to say.
 */
import { closeSync, openSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 10;

/** Kept open for when no other file can be: a process that is to end is found and ended all the same. */
let spare: number | null = null;

/** `work`, which opens one file at a time, with a descriptor for it. Throws EMFILE when others took that. */
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
    // Without room for it there may yet be some for the work.
  }
}

function isOutOfFiles(error: unknown): boolean {
  return ['EMFILE', 'ENFILE'].includes(String((error as NodeJS.ErrnoException).code));
}

/** The user of a process, which the kernel says of it whatever it does; null when it is gone. */
export function userOf(pid: number | string): number | null {
  try {
    return statSync(`/proc/${pid}`).uid;
  } catch {
    return null;
  }
}

/**
 * Sends SIGKILL to all that runs as a user that has no other use, and says whether there was anything. Who
 * was only about to be made by one of them is not among them: ask again until there is none. Throws EMFILE
 * when no file can be opened at all.
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
      // It ended by itself.
    }
  }
  return isAny;
}

/** As killProcessesOf, until there is none; false when there still is one after that time. */
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

/** Whether a line of /proc's `stat` is of a process that is dead, and at most not yet buried. */
export function isOver(stat: string): boolean {
  // The name, in parentheses, may itself hold anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  // One whose first thread has left looks dead, and its others run on.
  return (fields[0] === 'Z' || fields[0] === 'X') && Number(fields[17]) <= 1;
}
