/** Shared by the tests of the client: it runs as for users, built, in its own home. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '../harness/client.ts';
import { inTerminal } from '../harness/terminal.ts';
import { eventually } from '../harness/waiting.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const { oldBuilds } = (await import(join(ROOT, 'scripts/builds.js'))) as {
  oldBuilds: (root: string) => readonly string[];
};
export const PROGRAM = join(ROOT, 'build/cli/cloudlet.mjs');

/** The oldest Node that the client supports, if this host has one; otherwise undefined. */
export const NODE_20 = ['/usr/bin/node', '/usr/local/bin/node'].find((path) => {
  try {
    return execFileSync(path, ['--version'], { encoding: 'utf8' }).startsWith('v20.');
  } catch {
    return false;
  }
});

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly input?: string | Uint8Array;
  readonly env?: Readonly<Record<string, string>>;
  /** Default: the current one. */
  readonly node?: string;
  readonly cwd?: string;
}

/** A user of the client: an empty home, and the commands that run there. */
export class CliUser {
  readonly home: string;

  constructor() {
    // The build must be up to date.
    assert.ok(!oldBuilds(ROOT).includes('client'), 'build/cli is out of date: run `node scripts/builds.js`');
    this.home = mkdtempSync(join(tmpdir(), 'cloudlet-cli-'));
  }

  /** Signed in to this cloud with a new account. */
  static async signedIn(api: string): Promise<CliUser & { readonly key: string }> {
    const user = new CliUser();
    const { api_key: key } = await new Client(api).register();
    await user.ok(['login', api, '--key', '-'], { input: key });
    return Object.assign(user, { key });
  }

  start(args: readonly string[], { env = {}, node = process.execPath, cwd }: RunOptions = {}): ChildProcess {
    const own = { PATH: process.env.PATH, HOME: this.home, ...env };
    return spawn(node, [PROGRAM, ...args], { env: own, cwd: cwd ?? this.home });
  }

  async run(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
    const child = this.start(args, options);
    const [out, err]: [Buffer[], Buffer[]] = [[], []];
    child.stdout?.on('data', (chunk) => out.push(chunk));
    child.stderr?.on('data', (chunk) => err.push(chunk));
    child.stdin?.on('error', () => {}).end(options.input ?? '');
    const [code] = await once(child, 'close');
    return { code, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(err).toString() };
  }

  /** The output of a successful command. */
  async ok(args: readonly string[], options: RunOptions = {}): Promise<string> {
    const { code, stdout, stderr } = await this.run(args, options);
    assert.equal(code, 0, `cloudlet ${args.join(' ')}: ${code}\n${stdout}${stderr}`);
    return stdout;
  }

  /** The messages of a command that must fail with this code. */
  async fails(code: number, args: readonly string[], options: RunOptions = {}): Promise<string> {
    const ran = await this.run(args, options);
    assert.equal(ran.code, code, `cloudlet ${args.join(' ')}: ${ran.code}\n${ran.stdout}${ran.stderr}`);
    return ran.stderr;
  }

  remove(): void {
    rmSync(this.home, { recursive: true, force: true });
  }
}

/** The command lines of all processes of this host, or of those with this variable, by id. */
export function commandLines(variable = ''): Map<number, string> {
  const found = new Map<number, string>();
  for (const id of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const read = (name: string) => readFileSync(`/proc/${id}/${name}`, 'latin1');
      if (variable !== '' && !read('environ').split('\0').includes(variable)) continue;
      found.set(Number(id), read('cmdline').replaceAll('\0', ' '));
    } catch {
      // It has ended, or belongs to another user.
    }
  }
  return found;
}

/** A command of the client on a terminal. */
export class TerminalSession {
  readonly #child: ChildProcess;
  seen = '';

  constructor({ home }: CliUser, line: string, env: Readonly<Record<string, string>>) {
    // The shell would end on an interrupt.
    const [command = '', ...args] = inTerminal(`exec "${process.execPath}" "${PROGRAM}" ${line}`);
    const own = { PATH: process.env.PATH, HOME: home, ...env };
    this.#child = spawn(command, ['--return', ...args], { env: own, cwd: home });
    this.#child.stdout?.setEncoding('utf8').on('data', (text) => {
      this.seen += text;
    });
  }

  async sees(what: RegExp): Promise<void> {
    await eventually('', () => what.test(this.seen)).catch(() => {
      throw new Error(`waited in vain for ${what} in ${JSON.stringify(this.seen)}`);
    });
  }

  /** Types the text once this output has appeared; the output is then discarded. */
  async type(text: string, prompt: RegExp): Promise<void> {
    await this.sees(prompt);
    this.seen = '';
    this.#child.stdin?.write(text);
  }

  /** The exit code. */
  async end(): Promise<number | null> {
    const { exitCode } = this.#child;
    if (exitCode !== null) return exitCode;
    const [code] = await once(this.#child, 'close');
    return code;
  }
}
