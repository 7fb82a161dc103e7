import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster, noCluster } from '../harness/cluster.ts';
import { ClusterLoad } from '../harness/cluster-load.ts';
import { EXPIRING_ENV } from '../harness/expiring-load.ts';
import { WebhookReceiver } from '../harness/webhook-receiver.ts';

let cluster: Cluster;
before(async () => {
  if (noCluster === false)
    cluster = await Cluster.start(2, { CLOUDLET_FETCH_ALLOW: '127.0.0.0/8', ...EXPIRING_ENV });
});
after(() => cluster?.stop());

test('nodes that are killed under load lose nothing, and do nothing twice', {
  skip: noCluster,
}, async (t) => {
  const receiver = await WebhookReceiver.open();
  t.after(() => receiver.close());
  const load = new ClusterLoad(cluster.nodes, { isMixed: true });
  await load.during(receiver, async () => {
    for (const node of [...cluster.nodes].reverse()) {
      await sleep(3000);
      load.troubled.add(node);
      await node.crash();
      await sleep(1000);
      await node.start();
      load.troubled.delete(node);
    }
    await sleep(3000);
  });
  await load.check(receiver, 2);
  t.diagnostic(JSON.stringify({ ...load.done, worstRevocationMs: load.worstRevocationMs }));
  assert.deepEqual(load.faults, []);
  assert.ok(
    Object.values(load.done).every((count) => count > 0),
    JSON.stringify(load.done),
  );
  assert.ok(load.worstRevocationMs <= 3000, `revoked after ${load.worstRevocationMs} ms`);
});
