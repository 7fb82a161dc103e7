/** The bytes of objects are in S3, which fails under load and recovers. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { S3Server } from '../harness/s3-server.ts';
import { eventually } from '../harness/waiting.ts';
import { Checker } from './check.ts';
import { amount, chooseSeed, Load, makeBuckets, randomFrom } from './load.ts';
import { Oracle } from './oracle.ts';

const AWAY_MS = amount(8000, 60_000);
const LARGE = Buffer.alloc(100_000, 1);
const folder = mkdtempSync(join(tmpdir(), 'cloudlet-blobs-server-'));
after(() => rmSync(folder, { recursive: true, force: true }));

test('S3 goes away under load: errors are clear, it goes on by itself, and nothing is lost', async (t) => {
  const s3 = await S3Server.start(join(folder, 's3'));
  t.after(() => s3.kill());
  const env = { CLOUDLET_BLOBS_URL: s3.url('away'), CLOUDLET_RATE_REQUESTS: '1000000' };
  const cloud = await CloudProcess.start({ env });
  t.after(() => cloud.stop());
  const { key } = await new Client(cloud.api).newUser();
  const client = new Client(cloud.api, key);
  const admin = new Client(cloud.api, ADMIN_KEY);
  await makeBuckets(client);
  // In addition to the oracle's knowledge.
  assert.equal((await client.call('/api/buckets', { json: { name: 'probes' } })).status, 201);
  const probe = (name: string, bytes: Uint8Array) => client.upload('probes', name, bytes);
  const kept = (await probe('kept', LARGE)).body.object_id;
  const seed = chooseSeed();
  t.diagnostic(`FAULTS_SEED=${seed}`);
  const oracle = new Oracle();
  const load = new Load({ client, oracle, random: randomFrom(seed), clients: 4 });
  load.start();
  await sleep(1000);
  const until = performance.now() + AWAY_MS;
  await s3.kill();
  let refusals = 0;
  while (performance.now() < until) {
    const { status, body, headers } = await probe('away', LARGE);
    assert.deepEqual([status, body.code], [503, 'overloaded'], JSON.stringify(body));
    assert.match(headers.get('retry-after') ?? '', /^\d+$/);
    refusals++;
    // Objects in rows need no S3.
    assert.equal((await probe('small', Buffer.alloc(10))).status, 200);
    const read = await client.call(`/api/storage/${kept}/download`);
    assert.equal(read.status, 503, JSON.stringify(read.body));
    await sleep(200);
  }
  assert.ok(refusals > 1, `${refusals} refusals`);
  const { storage } = (await admin.call('/api/system/status')).body.components;
  assert.deepEqual([storage.status, storage.engine, typeof storage.fix], ['degraded', 's3', 'string']);
  const shown = await client.call('/api/buckets/probes/files');
  assert.deepEqual(
    (shown.body as { name: string }[]).map(({ name }) => name),
    ['kept', 'small'],
    'something was stored that was refused',
  );
  await s3.start();
  await eventually('it is back', async () => (await probe('back', LARGE)).status === 200);
  await eventually('the alarm ends', async () => {
    return !JSON.stringify((await admin.call('/api/system/status')).body).includes('blobs_unreachable');
  });
  await sleep(500);
  await load.stop();
  assert.ok(!load.answers.has(500), cloud.output.slice(-3000));
  assert.deepEqual(await client.download(kept), LARGE);
  await new Checker(oracle).check(client);
  t.diagnostic(`${refusals} refusals, ${oracle.count('acked')} writes acknowledged, none lost`);
  oracle.close();
});
