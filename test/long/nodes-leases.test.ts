/** Work of the whole cluster while its leases move from node to node all the time. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ADMIN_KEY, type CloudProcess } from '../harness/cloud-process.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';
import { ClusterLoad } from '../harness/cluster-load.ts';
import { eventually } from '../harness/waiting.ts';
import { WebhookReceiver } from '../harness/webhook-receiver.ts';

const KEY = { 'x-api-key': ADMIN_KEY };
/** Charges are made once a minute. */
const SECONDS = 150;
const DRAINED_MS = 1200;
const BUCKET = 'expiring';
/** Not in the row. */
const BYTES = 20_000;

let cluster: Cluster;
before(async () => {
  if (noCluster !== false) return;
  cluster = await Cluster.start(3, {
    CLOUDLET_FETCH_ALLOW: '127.0.0.0/8',
    CLOUDLET_S3_LIFECYCLE_DAY_SECONDS: '5',
    CLOUDLET_SWEEP_GRACE_SECONDS: '2',
  });
});
after(() => cluster?.stop());

test('what is due is done once, whichever node has the lease in the middle', {
  skip: noCluster,
}, async (t) => {
  const receiver = await WebhookReceiver.open();
  t.after(() => receiver.close());
  const [host] = cluster.nodes as [CloudProcess];
  await json(host, 'POST /api/buckets', { name: BUCKET });
  const lifecycle = [{ id: 'all', enabled: true, days: 1 }];
  await json(host, `PATCH /api/buckets/${BUCKET}/settings`, { lifecycle });
  const load = new ClusterLoad(cluster.nodes);
  const holders = new Set<string>();
  let [stored, moves] = [0, 0];
  await load.during(receiver, async () => {
    const end = performance.now() + SECONDS * 1000;
    const storing = (async () => {
      while (performance.now() < end - 20_000) {
        const node = cluster.nodes[stored % cluster.nodes.length] as CloudProcess;
        await upload(node, `${BUCKET}-${stored}`);
        stored++;
      }
    })();
    while (performance.now() < end) {
      const node = cluster.nodes[moves++ % cluster.nodes.length] as CloudProcess;
      await json(node, 'POST /api/admin/nodes/self/drain');
      await sleep(DRAINED_MS);
      await json(node, 'POST /api/admin/nodes/self/resume');
      for (const { name, leases } of await json(host, 'GET /api/admin/nodes'))
        if (leases.includes('job:run lifecycle rules')) holders.add(name);
      await sleep(DRAINED_MS);
    }
    await storing;
  });
  await eventually('every object has expired', async () => {
    return (await json(host, `GET /api/buckets/${BUCKET}`)).object_count === 0;
  });
  await load.check();
  assert.deepEqual(load.faults, []);
  const removed = () => {
    const told = receiver.received.map(({ id, body }) => [id, JSON.parse(body)] as const);
    const expired = new Map(told.filter(([, event]) => event.type === 'bucket.objects_expired'));
    return [...expired.values()].reduce((sum, { data }) => sum + data.removed, 0);
  };
  await eventually('each removal is told', () => removed() >= stored);
  await sleep(2000);
  assert.equal(removed(), stored);
  const ids = new Set(receiver.received.map(({ id }) => id));
  t.diagnostic(JSON.stringify({ ...load.counts, stored, moves, holders: [...holders] }));
  assert.equal(receiver.received.length, ids.size, 'each event is delivered once');
  assert.ok(holders.size > 1, 'the lease has moved');
});

async function upload(node: CloudProcess, name: string): Promise<void> {
  const body = new FormData();
  body.append('file', new Blob([name.padEnd(BYTES, '.')]), name);
  const response = await fetch(`${node.api}/api/buckets/${BUCKET}/upload`, {
    method: 'POST',
    headers: KEY,
    body,
  });
  assert.ok(response.ok, `${name}: ${response.status} ${await response.text()}`);
}

async function json(node: CloudProcess, line: string, body?: unknown) {
  const [method = '', path] = line.split(' ');
  const headers = { ...KEY, 'content-type': 'application/json' };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await fetch(`${node.api}${path}`, { method, headers, ...sent });
  const text = await response.text();
  assert.ok(response.ok, `${line}: ${response.status} ${text}`);
  return JSON.parse(text);
}
