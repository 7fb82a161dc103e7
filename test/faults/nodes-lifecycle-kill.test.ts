/**
 * kill -9 of the node whose lease runs lifecycle rules: another node takes the lease and continues;
 * each removal is done once, and reported once.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, type CloudProcess } from '../harness/cloud-process.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';
import { eventually } from '../harness/waiting.ts';
import { WebhookReceiver } from '../harness/webhook-receiver.ts';
import { chooseSeed, randomFrom, rounds } from './load.ts';

/** For a node in the middle of a bucket's removals. */
const KILLS = rounds(1, 10);
/** One kill in this many must find remaining objects. */
const TRIES = 5;
/** More than rules inspect in one slice. */
const OBJECTS = 520;
const UPLOADS = 10;
const AT_ONCE = 16;
const LEASE = 'run lifecycle rules';
const lifecycle = [{ id: 'all', enabled: true, days: 1, abort_days: 1 }];
const env = {
  CLOUDLET_RATE_REQUESTS: '1000000',
  CLOUDLET_FETCH_ALLOW: '127.0.0.0/8',
  CLOUDLET_S3_LIFECYCLE_DAY_SECONDS: '1',
};

test('rules continue at another node when theirs is killed, and report each removal once', {
  skip: noCluster,
}, async (t) => {
  const cluster = await Cluster.start(2, env);
  const receiver = await WebhookReceiver.open();
  t.after(async () => {
    receiver.close();
    await cluster.stop();
  });
  const seed = chooseSeed();
  t.diagnostic(`FAULTS_SEED=${seed}`);
  const random = randomFrom(seed);
  const [host, front] = cluster.nodes as [CloudProcess, CloudProcess];
  const { api_key: key } = await (await CheckedClient.open(host.api)).register();
  const at = async (node: CloudProcess, as = key) => (await CheckedClient.open(node.api)).as(as);
  await (await at(host)).expect(201, '/api/webhooks', { json: { url: receiver.url, events: ['*'] } });
  const bucketAt = async (node: CloudProcess, name: string) =>
    (await at(node)).expect(200, `/api/buckets/${name}`);
  const leftAt = async (node: CloudProcess, name: string) =>
    (await bucketAt(node, name)).object_count as number;
  const holder = async () => {
    const nodes = await (await at(host, ADMIN_KEY)).expect(200, '/api/admin/nodes');
    const held = nodes.find(({ leases }: { leases: string[] }) =>
      leases.some((name) => name.endsWith(LEASE)),
    );
    return held === undefined ? null : held.name === 'host' ? host : front;
  };
  const buckets: string[] = [];
  let inTheMiddle = 0;
  while (inTheMiddle < KILLS) {
    assert.ok(buckets.length < TRIES * KILLS, 'a kill comes between two removals');
    const name = `expiring-${buckets.length}`;
    buckets.push(name);
    // On new ports after a start.
    const users = [await at(host), await at(front)] as const;
    await fill(users, name);
    const victim = await eventually('a node with the lease', holder);
    const other = victim === host ? front : host;
    await users[0].expect(200, `/api/buckets/${name}/settings`, { method: 'PATCH', json: { lifecycle } });
    await eventually('rules run', async () => (await leftAt(other, name)) < OBJECTS);
    await sleep(random() * 100);
    await victim.crash();
    const left = await leftAt(other, name);
    if (left > 0) {
      inTheMiddle++;
      await eventually('the other node continues', async () => (await leftAt(other, name)) < left);
    }
    await victim.start();
  }
  for (const name of buckets) {
    await eventually('everything was removed', async () => {
      const uploads = await (await at(front)).expect(200, `/api/buckets/${name}/uploads`);
      return (await leftAt(front, name)) === 0 && uploads.length === 0;
    });
  }
  const expected = buckets.length * (OBJECTS + UPLOADS);
  const removed = () => reportedBy(receiver);
  await eventually('each removal is reported', () => removed() >= expected);
  // A run at both nodes, or a report stored twice, would have arrived by now.
  await sleep(3000);
  t.diagnostic(`${inTheMiddle} of ${buckets.length} kills left objects`);
  assert.equal(removed(), expected);
  for (const name of buckets) {
    const bucket = await bucketAt(host, name);
    assert.deepEqual([bucket.object_count, bucket.version_count], [0, 0]);
  }
});

/** By both nodes, which takes half the time. */
async function fill(users: readonly [CheckedClient, CheckedClient], bucket: string): Promise<void> {
  await users[0].expect(201, '/api/buckets', { json: { name: bucket } });
  const lanes = Array.from({ length: AT_ONCE }, async (_, lane) => {
    const user = users[lane % 2] as CheckedClient;
    for (let i = lane; i < OBJECTS; i += AT_ONCE) {
      const body = new FormData();
      body.set('file', new Blob([`${i}`]), `object-${i}`);
      await user.expect(200, `/api/buckets/${bucket}/upload`, { body });
    }
    for (let i = lane; i < UPLOADS; i += AT_ONCE)
      await user.expect(201, `/api/buckets/${bucket}/uploads`, { json: { name: `upload-${i}` } });
  });
  await Promise.all(lanes);
}

/** Removals in all events; an event delivered twice counts once. */
function reportedBy(receiver: WebhookReceiver): number {
  const reports = receiver.received.map(({ id, body }) => [id, JSON.parse(body)] as const);
  const expired = new Map(reports.filter(([, event]) => event.type === 'bucket.objects_expired'));
  return [...expired.values()].reduce((sum, { data }) => sum + data.removed, 0);
}
