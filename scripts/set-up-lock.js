/**
 * Locks between the set-ups of one clone: a file with the process id of its holder, and its start time. Plain
 * JavaScript without dependencies, because an old Node runs it.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

const LOOK_MS = 200;
/** Between the creation of the file and the write into it; on a full disk it may stay empty. */
const WRITTEN_MS = 2000;

/** State and start of a process as reported by Linux, or undefined. */
function statOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0], start: fields[19] };
  } catch {
    return undefined;
  }
}

/**
 * Whether a process runs. An ended one stays in the table of processes until its parent reads its status,
 * which some parents never do. `start`: the start time of the expected process, because numbers are reused.
 */
export function isAlive(pid, start) {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (error.code !== 'EPERM') return false;
  }
  const stat = statOf(pid);
  if (stat === undefined) return true;
  return !/[ZX]/.test(stat.state) && (start === undefined || start === stat.start);
}

/** The text in the lock of this process. */
const OWN = [process.pid, statOf(process.pid)?.start].filter((word) => word !== undefined).join(' ');

/** The process that holds the lock, 0 until it is written, or null. A dead holder does not count. */
function holderOf(file) {
  try {
    const [pid, start] = readFileSync(file, 'utf8').split(' ');
    if (pid === '') return Date.now() - statSync(file).mtimeMs < WRITTEN_MS ? 0 : null;
    return isAlive(Number(pid), start) ? Number(pid) : null;
  } catch {
    return null;
  }
}

function take(file) {
  mkdirSync(dirname(file), { recursive: true });
  if (existsSync(file) && holderOf(file) === null) rmSync(file, { force: true });
  try {
    writeFileSync(file, OWN, { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

/** Error codes of a file that this user may not write: then it can only be read. */
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
 * once. Without write permission it runs without the lock.
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
