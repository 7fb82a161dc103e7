/**
 * Locks between the set-ups of one clone: a file with the process id of its holder. Plain JavaScript without
 * dependencies, because an old Node runs it.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

const LOOK_MS = 200;

/** One that has ended stays in the table of processes until its parent asks, which not every parent does. */
function hasEnded(pid) {
  try {
    return /\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return !hasEnded(pid);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** The process that holds the lock, or null. A holder that died holds nothing. */
function holderOf(file) {
  try {
    const pid = Number(readFileSync(file, 'utf8'));
    // Between making the file and writing into it there is no number.
    return pid === 0 || isAlive(pid) ? pid : null;
  } catch {
    return null;
  }
}

function take(file) {
  mkdirSync(dirname(file), { recursive: true });
  if (existsSync(file) && holderOf(file) === null) rmSync(file, { force: true });
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

/** Codes of a file that this user may not write: then there is nothing to do but to read what is there. */
const NOT_OURS = ['EACCES', 'EPERM', 'EROFS'];

function takeOrPass(file) {
  try {
    return take(file);
  } catch (error) {
    if (NOT_OURS.includes(error.code)) return true;
    throw error;
  }
}

/**
 * Runs `work` while holding `file`. Waits for another holder first, and calls `onWait` with its process id
 * once. Who may not write there works without.
 */
export async function withLock(file, { onWait, work }) {
  let waits = false;
  while (!takeOrPass(file)) {
    const pid = holderOf(file);
    if (!waits && pid) {
      waits = true;
      onWait(pid);
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  try {
    return await work();
  } finally {
    if (holderOf(file) === process.pid) rmSync(file, { force: true });
  }
}
