/** Runs `ip` and `nft`, which change the host's network. */
import { once } from 'node:events';
import { patienceMs } from '../../platform/host/host-facts.ts';
import { hostPath, startProgram } from '../../platform/host/host-programs.ts';

const LIMIT_MS = 10_000;
const MAX_OUTPUT = 1024 * 1024;

/** A program of the host failed, or is not installed. */
export class HostToolError extends Error {
  readonly isMissing: boolean;

  constructor(message: string, isMissing: boolean) {
    super(message);
    this.isMissing = isMissing;
  }
}

/** Applies a whole ruleset with `nft`, atomically. Rejects with HostToolError. */
export function nft(rules: string): Promise<string> {
  return run('nft', ['-f', '-'], rules);
}

/** `ip` with these arguments. Resolves with its output. Rejects with HostToolError. */
export function ip(words: readonly string[]): Promise<string> {
  return run('ip', words, '');
}

async function run(program: string, words: readonly string[], input: string): Promise<string> {
  const env = { PATH: hostPath(), LANG: 'C' };
  // A separate process group: Ctrl+C for Cloudlet must not interrupt it.
  const options = { env, timeout: patienceMs(LIMIT_MS), killSignal: 'SIGKILL', detached: true } as const;
  const child = await startProgram(program, words, options).catch((error: NodeJS.ErrnoException) => {
    const isMissing = error.code === 'ENOENT';
    const what = isMissing ? 'is not installed' : `cannot be run (${error.code})`;
    throw new HostToolError(`${program} ${what}`, isMissing);
  });
  let [output, complaint] = ['', ''];
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    if (output.length < MAX_OUTPUT) output += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    if (complaint.length < MAX_OUTPUT) complaint += text;
  });
  // The tool may exit without reading; its status reports why.
  child.stdin?.on('error', () => undefined).end(input);
  const [status] = await once(child, 'close');
  if (status === 0) return output;
  throw new HostToolError(`${program}: ${firstLine(complaint) ?? `status ${status}`}`, false);
}

function firstLine(text: string): string | undefined {
  const line = text.trim().split('\n', 1)[0];
  return line === '' ? undefined : line;
}
