/**
 * Programs of a measurement that would have computers of their own, on that of what is measured: ours comes
 * before all, so that it notices answers at once, and another comes after all.
 *
 * Linux may share processors out between sessions first (autogroup): nice values of two processes count then
 * only where both are of one session.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { fileURLToPath } from 'node:url';

const FIRST = -15;
/** A third of the share of a usual program; less would be no attack on a machine that does something else. */
const AFTER = 5;

/** Has this process come before all that it has not started yet. False: it may not. */
export function comesFirst(): boolean {
  try {
    setPriority(FIRST);
    setSessionNice('self', FIRST);
    return true;
  } catch {
    return false;
  }
}

/** Same as runChild(), in a session of its own that comes after the others. */
export async function runApart<Result>(script: URL, input: object): Promise<Result> {
  const child = spawn(process.execPath, [fileURLToPath(script), JSON.stringify(input)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const { pid } = child;
  if (pid !== undefined) {
    setPriority(pid, AFTER);
    setSessionNice(pid, AFTER);
  }
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const [code] = await once(child, 'close');
  process.off('exit', kill);
  if (code !== 0) throw new Error(`${fileURLToPath(script)} ended with ${code}`);
  return JSON.parse(output) as Result;
}

function setSessionNice(pid: number | 'self', nice: number): void {
  try {
    writeFileSync(`/proc/${pid}/autogroup`, String(nice));
  } catch {
    // This kernel has no autogroups, or lets nobody but root raise one.
  }
}
