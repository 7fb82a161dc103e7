/** Work of the whole cluster while its leases continuously move between nodes. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ADMIN_KEY, type CloudProcess } from '../harness/cloud-process.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';
import { ClusterLoad } from '../harness/cluster-load.ts';
import { EXPIRING_ENV } from '../harness/expiring-load.ts';
import { WebhookReceiver } from '../harness/webhook-receiver.ts';

const KEY = { 'x-api-key': ADMIN_KEY };
/** Charges are created once a minute. */
const SECONDS = 150;
const DRAINED_MS = 1200;

let cluster: Cluster;
before(async () => {
  if (noCluster !== false) return;
  cluster = await Cluster.start(3, { CLOUDLET_FETCH_ALLOW: '127.0.0.0/8', ...EXPIRING_ENV });
});
after(() => cluster?.stop());

test('what is due is done once, whichever node has the lease in the middle', {
  skip: noCluster,
}, async (t) => {
  const receiver = await WebhookReceiver.open();
  t.after(() => receiver.close());
  const [host] = cluster.nodes as [CloudProcess];
  const load = new ClusterLoad(cluster.nodes, { isMixed: true });
  const holders = new Set<string>();
  let moves = 0;
  await load.during(receiver, async () => {
    const end = performance.now() + SECONDS * 1000;
    while (performance.now() < end) {
      const node = cluster.nodes[moves++ % cluster.nodes.length] as CloudProcess;
      await json(node, 'POST /api/admin/nodes/self/drain');
      await sleep(DRAINED_MS);
      await json(node, 'POST /api/admin/nodes/self/resume');
      for (const { name, leases } of await json(host, 'GET /api/admin/nodes'))
        if (leases.includes('job:run lifecycle rules')) holders.add(name);
      await sleep(DRAINED_MS);
    }
  });
  await load.check(receiver, 0);
  assert.deepEqual(load.faults, []);
  const ids = new Set(receiver.received.map(({ id }) => id));
  t.diagnostic(JSON.stringify({ ...load.done, moves, holders: [...holders] }));
  assert.equal(receiver.received.length, ids.size, 'each event is delivered once');
  assert.ok(holders.size > 1, 'the lease has moved');
});

async function json(node: CloudProcess, line: string, body?: unknown) {
  const [method = '', path] = line.split(' ');
  const headers = { ...KEY, 'content-type': 'application/json' };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await fetch(`${node.api}${path}`, { method, headers, ...sent });
  const text = await response.text();
  assert.ok(response.ok, `${line}: ${response.status} ${text}`);
  return JSON.parse(text);
}
