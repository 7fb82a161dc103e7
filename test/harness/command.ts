/** Runs bin/cloudlet to its end. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { StartProgress } from './start-progress.ts';

const LAUNCHER = process.env.TEST_LAUNCHER ?? fileURLToPath(new URL('../../bin/cloudlet', import.meta.url));

/**
 * A command that makes progress for this many times its timeout does not end by itself: a cloud that starts.
 */
const MOST_WAITS = 10;

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  /** The whole environment besides PATH. */
  readonly env: Readonly<Record<string, string>>;
  readonly uid?: number;
  readonly gid?: number;
  /** Maximum wait for others, without processor time and output. */
  readonly timeoutMs?: number;
}

/** Killed, and then with the code null, when it makes no progress. */
export async function runCloudlet(args: readonly string[], options: CommandOptions): Promise<Ended> {
  const { env, timeoutMs = 30_000, ...identity } = options;
  const child = spawn(LAUNCHER, args, {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    // Its own process group, whose processor time is known, and which ends with this process.
    detached: true,
    ...identity,
  });
  const kill = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  };
  process.once('exit', kill);
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const limits = { stalledMs: timeoutMs, mostProcessorMs: Number.POSITIVE_INFINITY };
  const progress = new StartProgress(child.pid ?? 0, limits);
  const startedAt = performance.now();
  const look = setInterval(() => {
    const isStuck = progress.fault(stdout.length + stderr.length) !== undefined;
    if (isStuck || performance.now() - startedAt > MOST_WAITS * timeoutMs) kill();
  }, 1000);
  const [code] = await once(child, 'close').finally(() => {
    clearInterval(look);
    process.off('exit', kill);
  });
  return { code, stdout, stderr };
}

/** The link that creates the first administrator of the cloud on this directory. */
export async function makeSetupLink(dataDir: string): Promise<string> {
  const { stdout, stderr } = await runCloudlet(['admin', 'setup-link', '--data-dir', dataDir], { env: {} });
  const [link] = /^http\S+\/setup\?token=\S+$/m.exec(stdout) ?? [];
  if (link === undefined) throw new Error(`there is no set-up link: ${stdout}${stderr}`);
  return link;
}
