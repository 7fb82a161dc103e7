/** kill -9 at random moments of mixed work: nothing acknowledged is lost, nothing partial is visible. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { blobFiles, eventually } from '../harness/waiting.ts';
import { Checker } from './check.ts';
import { chooseSeed, Load, makeBuckets, randomFrom, rounds } from './load.ts';
import { Oracle } from './oracle.ts';

const ROUNDS = rounds(8, 300);
const INLINE_MAX_BYTES = 16_384;
const env = { CLOUDLET_RATE_REQUESTS: '1000000', CLOUDLET_SWEEP_GRACE_SECONDS: '1' };

async function storedFiles(client: Client): Promise<number> {
  let files = 0;
  for (const { name } of (await client.call('/api/buckets')).body) {
    const { body } = await client.call(`/api/buckets/${name}/files?include_versions=true`);
    files += body.filter((entry: { size: number }) => entry.size > INLINE_MAX_BYTES).length;
  }
  return files;
}

function tell(t: TestContext, oracle: Oracle, readyMs: number[]): void {
  const sorted = readyMs.toSorted((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
  t.diagnostic(`${oracle.count('acked')} writes acknowledged, none lost in ${ROUNDS} kills`);
  t.diagnostic(`ready again after ${at(0.5)} ms (median), ${at(1)} ms (longest)`);
}

test('kill -9 at random moments loses nothing acknowledged and leaves nothing behind', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'cloudlet-kill-'));
  const seed = chooseSeed();
  t.diagnostic(`FAULTS_SEED=${seed}`);
  const random = randomFrom(seed);
  const oracle = new Oracle();
  const checker = new Checker(oracle);
  const cloud = await CloudProcess.start({ dataDir, env });
  t.after(() => cloud.crash());
  const { key } = await new Client(cloud.api).newUser();
  await makeBuckets(new Client(cloud.api, key));
  const readyMs: number[] = [];
  let interrupted = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const load = new Load({ client: new Client(cloud.api, key), oracle, random });
    load.start();
    await sleep(random() * 800);
    await cloud.crash();
    await load.stop();
    interrupted += oracle.count('unknown');
    assert.ok(!load.answers.has(500), 'an answer of 500');
    const began = performance.now();
    await cloud.start();
    readyMs.push(performance.now() - began);
    await checker.check(new Client(cloud.api, key));
  }
  assert.ok(interrupted > ROUNDS, `only ${interrupted} writes were under way when the process was killed`);
  const client = new Client(cloud.api, key);
  // One that is kept and one that no row names: the next line is only true once a sweep has checked both.
  await client.call('/api/buckets', { json: { name: 'kept' } });
  await client.upload('kept', 'file', Buffer.alloc(100_000));
  const [file = ''] = blobFiles(dataDir);
  const unnamed = file.replace(/.(?=.{9}$)/, (char) => (char === '0' ? '1' : '0'));
  writeFileSync(unnamed, 'no row names this');
  await eventually('only the files of visible versions are left', async () => {
    return blobFiles(dataDir).length === (await storedFiles(client));
  });
  await checker.check(client, { allBytes: true });
  tell(t, oracle, readyMs);
  await cloud.stop();
  oracle.close();
  rmSync(dataDir, { recursive: true });
});
