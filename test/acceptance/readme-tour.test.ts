/** The tour of the README works as it is printed, with smaller amounts and on ports of the test's own. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { notInstalled } from '../../scripts/installed.ts';
import { OWN_GROUND } from '../harness/cloud-process.ts';
import { processesIn } from '../harness/leftovers.ts';
import { freePorts } from './proxy-kit.ts';
import { cannotRunGuests } from './vms-kit.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const MODULES = join(ROOT, 'node_modules');
const skip = cannotRunGuests() || notInstalled('curl', 'jq', 'xxd', 'ssh', 'ssh-keygen');
const FILES = 20;
/** A line of its own in the output after each block. */
const END_OF_BLOCK = '=== end of a block ===';

/** What a reader pastes, block by block; lines that begin with # are what the block prints. */
function blocksOfTheTour(): string[] {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
  const tour = readme.slice(readme.indexOf('\n## A tour\n'), readme.indexOf('\n## Become administrator\n'));
  return [...tour.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, language, block = '']) => {
    assert.equal(language, 'sh', `this block of the tour cannot be pasted into a shell:\n${block}`);
    return block;
  });
}

/** Replaces what must be there. */
function exchange(text: string, find: string, value: string): string {
  assert.ok(text.includes(find), `${find} is not in the tour`);
  return text.replaceAll(find, value);
}

/**
 * Lines without what differs from run to run, words with a digit, units behind these, long secrets; and from
 * user to user: machines of an ordinary one are reached at a port of their own.
 */
function linesOf(text: string): string[] {
  const shape = text
    .replace(/\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (?=\d)/g, '')
    .replace(/ (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) (?=\d)/g, ' ')
    .replace(/\bssh -p \d+ (?=root@)/g, 'ssh ')
    .replace(/[^\s"',{}[\]()]*\d[^\s"',{}[\]()]*( [KMG]?B\b)?/g, '#')
    .replace(/[\w+/=-]{30,}/g, '#')
    .replace(/[^\S\n]+/g, ' ');
  return shape.split('\n').map((line) => line.trim());
}

/** Every line that the block shows is among those that it printed. */
function assertPrinted(block: string, output: string) {
  const printed = linesOf(output);
  const shown = block
    .split('\n')
    .filter((line) => line.startsWith('#'))
    .map((line) => line.slice(1));
  for (const wanted of linesOf(shown.join('\n'))) {
    const at = printed.indexOf(wanted);
    assert.notEqual(at, -1, `${wanted}\nis not what this printed:\n${block}\nbut this:\n${output}`);
    printed.splice(at, 1);
  }
}

test('the tour runs as it is printed, in one shell, and leaves nothing', { skip }, async () => {
  const { api, data, http } = await freePorts();
  const blocks = blocksOfTheTour();
  let script = blocks.map((block) => `${block}echo '${END_OF_BLOCK}'\n`).join('');
  script = exchange(script, '127.0.0.1:8080', `127.0.0.1:${api}`);
  script = exchange(script, '7000', String(http));
  script = exchange(script, 'head -c 1G', 'head -c 8M');
  script = exchange(script, 'seq 1000', `seq ${FILES}`);
  // The clone's own packages, so that no registry is asked.
  script = exchange(script, ' @libsql/client mongodb\n', ` ${MODULES}/@libsql/client ${MODULES}/mongodb\n`);
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-tour-'));
  const [home, temporary] = [join(folder, 'home'), join(folder, 't')];
  for (const path of [home, temporary]) mkdirSync(path);
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    TMPDIR: temporary,
    CLOUDLET_PORT: String(api),
    CLOUDLET_DATA_PORT: String(data),
    CLOUDLET_VM_ACCEL: 'tcg',
    CLOUDLET_MONGODB_SERVER: 'built-in',
    npm_config_cache: join(folder, 'npm'),
    npm_config_offline: 'true',
    npm_config_ignore_scripts: 'true',
    npm_config_install_links: 'false',
    // Newer ones of npm keep their compiled code where temporary files are.
    NODE_DISABLE_COMPILE_CACHE: '1',
    ...OWN_GROUND,
  };
  // Read from its input as from a terminal: a command that reads there would swallow the next lines.
  const input = `exec 2>&1\n${script}`;
  const words = ['-e', '-o', 'pipefail'];
  const { status, stdout } = spawnSync('bash', words, {
    cwd: ROOT,
    env,
    input,
    encoding: 'utf8',
    timeout: 280_000,
  });
  try {
    const outputs = stdout.split(`${END_OF_BLOCK}\n`);
    const failed = blocks[outputs.length - 1];
    assert.equal(failed, undefined, `this block failed:\n${failed}\nIt printed:\n${outputs.at(-1)}`);
    assert.equal(status, 0, stdout);
    blocks.forEach((block, i) => {
      assertPrinted(block, outputs[i] ?? '');
    });
    assert.match(stdout, new RegExp(`^${FILES}$`, 'm'));
    const problems = [...stdout.matchAll(/"code":"(\w+)","request_id"/g)].map(([, code]) => code);
    assert.deepEqual(problems, ['object_not_found']);
    assert.deepEqual([readdirSync(home), readdirSync(temporary)], [[], []]);
  } finally {
    // What a tour that was cut short left running: its cloud and its machine work below this folder.
    for (const pid of processesIn(folder)) process.kill(pid, 'SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
});
