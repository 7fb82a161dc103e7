/** Runs bin/cloudlet to its end. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const LAUNCHER = fileURLToPath(new URL('../../bin/cloudlet', import.meta.url));

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
  readonly timeoutMs?: number;
}

/** Killed, and then with the code null, when it does not end in time. */
export async function runCloudlet(args: readonly string[], options: CommandOptions): Promise<Ended> {
  const { env, timeoutMs = 30_000, ...identity } = options;
  const child = spawn(LAUNCHER, args, {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
    ...identity,
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const [code] = await once(child, 'close');
  return { code, stdout, stderr };
}

/** The link that makes the first administrator of the cloud that runs on this directory. */
export async function makeSetupLink(dataDir: string): Promise<string> {
  const { stdout, stderr } = await runCloudlet(['admin', 'setup-link', '--data-dir', dataDir], { env: {} });
  const [link] = /^http\S+\/setup\?token=\S+$/m.exec(stdout) ?? [];
  if (link === undefined) throw new Error(`there is no set-up link: ${stdout}${stderr}`);
  return link;
}
