/** A folder with packages of npm, for tests of programs that people run on databases. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';

const INSTALL_MS = 900_000;
const RUN_MS = 120_000;
const QUIET = ['--no-audit', '--no-fund', '--no-progress', '--loglevel=error'];

export class NpmFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));

  /** With packages of exact versions, installed without their scripts, and files beside them. */
  static async with(
    packages: readonly string[],
    files: Readonly<Record<string, string>>,
  ): Promise<NpmFolder> {
    const folder = new NpmFolder();
    writeFileSync(join(folder.path, 'package.json'), '{"type":"module"}');
    const words = ['install', '--ignore-scripts', '--save-exact', ...QUIET, ...packages];
    const npm = spawn('npm', words, {
      cwd: folder.path,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: INSTALL_MS,
    });
    await folder.#outputOf(npm, 'npm');
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(join(folder.path, name)), { recursive: true });
      writeFileSync(join(folder.path, name), content);
    }
    return folder;
  }

  /** A program of Node, running; its first word is a file of the folder. */
  start(words: readonly string[], env: Readonly<Record<string, string>>) {
    const options = { cwd: this.path, env: { PATH: process.env.PATH, HOME: this.path, ...env } };
    return spawn(process.execPath, words, { ...options, stdio: ['ignore', 'pipe', 'pipe'], timeout: RUN_MS });
  }

  /** What such a program prints. Rejects when it fails. */
  run(words: readonly string[], env: Readonly<Record<string, string>>): Promise<string> {
    return this.#outputOf(this.start(words, env), words.join(' '));
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
