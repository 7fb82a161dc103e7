/** kill -9 while rules remove objects and abort uploads: each removal is done once, and reported once. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { WebhookReceiver } from '../harness/webhook-receiver.ts';
import { chooseSeed, randomFrom, rounds } from './load.ts';

const KILLS = rounds(4, 30);
/** More than rules inspect in one slice. */
const OBJECTS = 300 * KILLS;
const UPLOADS = 20 * KILLS;
const AT_ONCE = 16;
const BUCKET = 'expiring';
const env = {
  CLOUDLET_RATE_REQUESTS: '1000000',
  CLOUDLET_FETCH_ALLOW: '127.0.0.0/8',
  CLOUDLET_S3_LIFECYCLE_DAY_SECONDS: '1',
};

function storedIn(dataDir: string): number {
  const metadata = new DatabaseSync(join(dataDir, 'metadata.db'), { readOnly: true });
  const row = metadata.prepare('SELECT count(*) AS objects FROM objects WHERE current IS NOT NULL').get();
  metadata.close();
  return Number(row?.objects);
}

test('rules that are killed again and again tell of each removal', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'cloudlet-lifecycle-'));
  const cloud = await CloudProcess.start({ dataDir, env });
  const receiver = await WebhookReceiver.open();
  t.after(async () => {
    await cloud.crash();
    receiver.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const seed = chooseSeed();
  t.diagnostic(`FAULTS_SEED=${seed}`);
  const random = randomFrom(seed);
  const anyone = await CheckedClient.open(cloud.api);
  const { api_key: key } = await anyone.register();
  // It has other ports after a kill.
  const opened = async () => (await CheckedClient.open(cloud.api)).as(key);
  let user = await opened();
  await user.expect(201, '/api/buckets', { json: { name: BUCKET } });
  await user.expect(201, '/api/webhooks', { json: { url: receiver.url, events: ['*'] } });
  const lanes = Array.from({ length: AT_ONCE }, async (_, lane) => {
    for (let i = lane; i < OBJECTS; i += AT_ONCE) {
      const body = new FormData();
      body.set('file', new Blob([`${i}`]), `object-${i}`);
      await user.expect(200, `/api/buckets/${BUCKET}/upload`, { body });
    }
    for (let i = lane; i < UPLOADS; i += AT_ONCE)
      await user.expect(201, `/api/buckets/${BUCKET}/uploads`, { json: { name: `upload-${i}` } });
  });
  await Promise.all(lanes);
  const lifecycle = [{ id: 'all', enabled: true, days: 1, abort_days: 1 }];
  await user.expect(200, `/api/buckets/${BUCKET}/settings`, { method: 'PATCH', json: { lifecycle } });
  const left = async () => (await user.expect(200, `/api/buckets/${BUCKET}`)).object_count as number;
  let inTheMiddle = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    const before = await left();
    if (before === 0) break;
    // Asked without a pause, and the first kill comes immediately: an idle host removes all of them soon.
    while ((await left()) >= before);
    await sleep(kill === 0 ? 0 : random() * 100);
    await cloud.crash();
    // Counted before the start: the rules run again before it can be asked.
    if (storedIn(dataDir) > 0) inTheMiddle++;
    await cloud.start();
    user = await opened();
  }
  await eventually('everything has gone', async () => {
    const uploads = await user.expect(200, `/api/buckets/${BUCKET}/uploads`);
    return (await left()) === 0 && uploads.length === 0;
  });
  const removed = () => {
    const told = receiver.received.map(({ id, body }) => [id, JSON.parse(body)] as const);
    const expired = new Map(told.filter(([, event]) => event.type === 'bucket.objects_expired'));
    return [...expired.values()].reduce((sum, { data }) => sum + data.removed, 0);
  };
  await eventually('each removal is told', () => removed() >= OBJECTS + UPLOADS);
  t.diagnostic(`${inTheMiddle} of ${KILLS} kills left objects`);
  assert.equal(removed(), OBJECTS + UPLOADS);
  assert.ok(inTheMiddle > 0, 'a kill came between two removals');
});
