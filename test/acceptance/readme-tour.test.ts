/** The tour of the README works as it is printed, with smaller amounts and on ports of the test's own. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
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
const skip = cannotRunGuests() || notInstalled('curl', 'jq', 'xxd', 'ssh', 'ssh-keygen');
const FILES = 20;

/** What a reader types. */
function commandsOfTheTour(): string[] {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
  const tour = readme.slice(readme.indexOf('\n## A tour\n'), readme.indexOf('\n#### Other images\n'));
  const blocks = [...tour.matchAll(/^```console\n(.*?)^```$/gms)].map(([, block = '']) => block);
  return blocks.flatMap((block) => block.split('\n').filter((line) => line.startsWith('$ ')));
}

/** Replaces what must be there. */
function exchange(text: string, find: string, value: string): string {
  assert.ok(text.includes(find), `${find} is not in the tour`);
  return text.replaceAll(find, value);
}

test('the tour runs as it is printed, and leaves nothing', { skip }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-tour-'));
  const { api, data } = await freePorts();
  let script = commandsOfTheTour()
    .map((line) => line.slice(2))
    .join('\n');
  script = exchange(script, '127.0.0.1:8080', `127.0.0.1:${api}`);
  script = exchange(script, 'head -c 1G', 'head -c 8M');
  script = exchange(script, 'seq 1000', `seq ${FILES}`);
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    TMPDIR: folder,
    CLOUDLET_PORT: String(api),
    CLOUDLET_DATA_PORT: String(data),
    CLOUDLET_VM_ACCEL: 'tcg',
    ...OWN_GROUND,
  };
  const words = ['-e', '-o', 'pipefail', '-c', `exec 2>&1\n${script}`];
  const { status, stdout } = spawnSync('bash', words, { cwd: ROOT, env, encoding: 'utf8', timeout: 280_000 });
  try {
    assert.equal(status, 0, stdout);
    for (const wanted of ['the first text', 'the same', 'all the same', 'kept', `\n${FILES}\n`])
      assert.ok(stdout.includes(wanted), `${wanted}:\n${stdout}`);
    assert.match(stdout, /^\d+ transfers verified/m);
    const problems = [...stdout.matchAll(/"code":"(\w+)","request_id"/g)].map(([, code]) => code);
    assert.deepEqual(problems, ['object_not_found']);
    assert.deepEqual(readdirSync(folder), []);
  } finally {
    // What a tour that was cut short left running: its cloud and its machine work below this folder.
    for (const pid of processesIn(folder)) process.kill(pid, 'SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
});
