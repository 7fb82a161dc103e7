/** A second start without a network: nothing is downloaded, requested or waited for. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { eventually } from '../harness/waiting.ts';

const ROOT = join(import.meta.dirname, '../..');
/** The program run by `npm start`, after its set-up has completed once. */
const START = 'ip link set lo up && node scripts/setup.js start && exec bin/cloudlet start';
/** Runs in the cloud's network, which leads nowhere. */
const ASK = 'fetch(process.argv[1]).then(async (answer) => console.log(await answer.text()))';

const noRoot = process.getuid?.() === 0 ? false : 'needs root, for its own network';
const skip = noRoot || notInstalled('unshare') || notInstalled('nsenter') || notInstalled('ip');

test('a start without any network is as another', { skip }, async (t) => {
  const data = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('CLOUDLET_'));
  const own = { CLOUDLET_DATA_DIR: data, CLOUDLET_PORT: '0', CLOUDLET_DATA_PORT: '0' };
  const env = { ...Object.fromEntries(kept), ...own };
  const child = spawn('unshare', ['--net', 'sh', '-c', START], { cwd: ROOT, env });
  const ended = once(child, 'exit');
  t.after(async () => {
    child.kill('SIGTERM');
    await ended;
    rmSync(data, { recursive: true });
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (piece) => {
      said += piece;
    });
  const find = () => {
    assert.equal(child.exitCode, null, said);
    return said.includes('Ready in') ? /Console +([^ \n]+)/.exec(said)?.[1] : undefined;
  };
  const url = await eventually('it is ready', find);
  assert.doesNotMatch(said, /could not|failed|no network/i);
  const asked = spawn('nsenter', [
    '--net',
    '--target',
    String(child.pid),
    process.execPath,
    '-e',
    ASK,
    `${url}healthz`,
  ]);
  let answer = '';
  asked.stdout.setEncoding('utf8').on('data', (piece) => {
    answer += piece;
  });
  await once(asked, 'close');
  assert.deepEqual(JSON.parse(answer), { status: 'ok' });
  child.kill('SIGTERM');
  assert.equal((await ended)[0], 0, said);
});
