/**
 * Programs of a measurement that would usually be on separate computers, on the measured one: ours has
 * priority over all others, so that it notices answers immediately, and another runs after all others.
 *
 * Linux may share processors out between sessions first (autogroup): nice values of two processes count then
 * only where both are of one session.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, setPriority } from 'node:os';
import { fileURLToPath } from 'node:url';

const FIRST = -15;
/** Priority of a real-time thread, above those of Cloudlet: an answer is noticed immediately. */
const REAL_TIME = '5';
/** A third of the share of an ordinary program; less would be no attack on a busy host. */
const AFTER = 5;

/** Gives this process priority over all that it has not started yet. Returns false if this is not allowed. */
export function comesFirst(): boolean {
  try {
    setPriority(FIRST);
    setSessionNice('self', FIRST);
    for (const thread of threads())
      execFileSync('chrt', ['--rr', '--reset-on-fork', '--pid', REAL_TIME, thread]);
    return true;
  } catch {
    return false;
  }
}

/** Our threads but for V8's, which would take the processors from the cloud to collect our garbage. */
function threads(): string[] {
  const nameOf = (thread: string) => readFileSync(`/proc/self/task/${thread}/comm`, 'latin1').trim();
  return readdirSync('/proc/self/task').filter((thread) => nameOf(thread) !== 'node-V8Worker');
}

/**
 * Same as runChild(), in a separate session after the others, and on one processor: that of the long
 * computations it requests, so that it takes time from them and not from the cloud.
 */
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
    const last = String(availableParallelism() - 1);
    execFileSync('taskset', ['--all-tasks', '--pid', '--cpu-list', last, String(pid)]);
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
    // This kernel has no autogroups, or only root may raise one.
  }
}
