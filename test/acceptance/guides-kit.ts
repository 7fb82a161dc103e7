/** Runs a guide as printed, in one shell, with smaller amounts and on ports of the test. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { OWN_GROUND } from '../harness/cloud-process.ts';
import { processesIn } from '../harness/leftovers.ts';
import { portsOfProxy } from './proxy-kit.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const MODULES = join(ROOT, 'node_modules');
/** Pages whose commands need no machine, and those whose commands do. */
export const GUIDES = [
  'docs/client.md',
  'docs/databases.md',
  'docs/operating.md',
  'docs/people.md',
  'docs/recovery.md',
  'docs/s3.md',
];
export const GUIDES_WITH_MACHINES = ['docs/machines.md', 'docs/billing.md', 'docs/webhooks.md'];

const FILES = 20;
/** A separate line in the output after each block. */
const END_OF_BLOCK = '=== end of a block ===';

/** Languages of blocks that nobody pastes. */
const SHOWN = ['text', 'js', 'sql', ''];

/** Text that a reader pastes, block by block; lines that begin with # are the output of the block. */
function blocksOf(guide: string): string[] {
  const text = readFileSync(join(ROOT, guide), 'utf8');
  const found = [...text.matchAll(/^```(\w*)\n(.*?)^```$/gms)];
  return found.flatMap(([, language = '', block = '']) => {
    if (language === 'sh') return [block];
    assert.ok(SHOWN.includes(language), `${guide} has a block of ${language}`);
    return [];
  });
}

/**
 * Lines without parts that differ between runs: words with a digit, their units, long secrets; and between
 * users: machines of an ordinary user have their own port.
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

/** Every output line in the block is among the printed lines. */
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

/** Replacements in the text of a guide; all except `seq` and amounts are ports. */
async function ownPorts(script: string) {
  const { api, data, http } = await portsOfProxy();
  const own = script
    .replaceAll('127.0.0.1:8080', `127.0.0.1:${api}`)
    .replaceAll('7000', String(http))
    .replaceAll('head -c 1G', 'head -c 8M')
    .replaceAll('seq 1000', `seq ${FILES}`)
    // The clone's own packages, so that no registry is used.
    .replaceAll(' @libsql/client mongodb\n', ` ${MODULES}/@libsql/client ${MODULES}/mongodb\n`);
  return { own, api, data };
}

/** `problems`: error codes with which its calls are answered, in this order. */
export async function runGuide(guide: string, problems: readonly string[] = []): Promise<void> {
  const blocks = blocksOf(guide);
  assert.ok(blocks.length > 0, `${guide} has nothing to paste`);
  const { own, api, data } = await ownPorts(
    blocks.map((block) => `${block}echo '${END_OF_BLOCK}'\n`).join(''),
  );
  // With a digit: linesOf() treats such words as different between runs.
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-guide-1-'));
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
    // Newer versions of npm keep compiled code with temporary files unless configured otherwise.
    NODE_COMPILE_CACHE: join(MODULES, '.cache/node'),
    ...OWN_GROUND,
  };
  // Read from standard input as from a terminal: a command that reads there would consume the next lines.
  const input = `exec 2>&1\n${own}`;
  const options = { cwd: ROOT, env, input, encoding: 'utf8', timeout: 150_000 } as const;
  const { status, stdout } = spawnSync('bash', ['-e', '-o', 'pipefail'], options);
  try {
    const outputs = stdout.split(`${END_OF_BLOCK}\n`);
    const failed = blocks[outputs.length - 1];
    assert.equal(failed, undefined, `this block failed:\n${failed}\nIt printed:\n${outputs.at(-1)}`);
    assert.equal(status, 0, stdout);
    blocks.forEach((block, i) => {
      assertPrinted(block, outputs[i] ?? '');
    });
    const codes = [...stdout.matchAll(/"code":"(\w+)","request_id"/g)].map(([, code]) => code);
    assert.deepEqual(codes, problems);
    assert.deepEqual([readdirSync(home), readdirSync(temporary)], [[], []]);
  } finally {
    // Processes left by an interrupted guide: its cloud and its machine work below this folder.
    for (const pid of processesIn(folder)) process.kill(pid, 'SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
}
