/** What the tests of the client share: it runs as users run it, built, in a home of its own. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '../harness/client.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const { isCliCurrent } = (await import(join(ROOT, 'scripts/console-build.js'))) as {
  isCliCurrent: (root: string) => boolean;
};
export const PROGRAM = join(ROOT, 'build/cli/cloudlet.mjs');

/** The oldest Node that the client supports, where this computer has one; else undefined. */
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
  /** Default: that of the test. */
  readonly node?: string;
  readonly cwd?: string;
}

/** A user of the client: a home without anything in it, and the commands that run there. */
export class CliUser {
  readonly home: string;

  constructor() {
    // What is tested must be what is there.
    assert.ok(isCliCurrent(ROOT), 'build/cli is out of date: run `node scripts/console-build.js`');
    this.home = mkdtempSync(join(tmpdir(), 'cloudlet-cli-'));
  }

  /** Signed in to this cloud as a new account. */
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

  /** What a successful command printed. */
  async ok(args: readonly string[], options: RunOptions = {}): Promise<string> {
    const { code, stdout, stderr } = await this.run(args, options);
    assert.equal(code, 0, `cloudlet ${args.join(' ')}: ${code}\n${stdout}${stderr}`);
    return stdout;
  }

  /** What a command that must fail with this code said. */
  async fails(code: number, args: readonly string[], options: RunOptions = {}): Promise<string> {
    const ran = await this.run(args, options);
    assert.equal(ran.code, code, `cloudlet ${args.join(' ')}: ${ran.code}\n${ran.stdout}${ran.stderr}`);
    return ran.stderr;
  }

  remove(): void {
    rmSync(this.home, { recursive: true, force: true });
  }
}
