/**
 * Three nodes under load for ten minutes; every five seconds one is killed, stopped or cut off from the
 * database. As root each is on a network of its own behind Caddy, as three hosts are, and is cut off by its
 * link; otherwise by a proxy on its way.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { notInstalled } from '../../scripts/installed.ts';
import { ApartCluster } from '../harness/apart-cluster.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';
import { ClusterLoad } from '../harness/cluster-load.ts';
import { noNodeNetworks } from '../harness/node-networks.ts';
import { WebhookReceiver } from '../harness/webhook-receiver.ts';

const MINUTES = Number(process.env.TEST_CLUSTER_MINUTES ?? '10');
const EVERY_MS = 5000;
const STOPPED_MS = 15_000;

const noApart = noNodeNetworks() || notInstalled('caddy');

let cluster: Cluster;
let apart: ApartCluster | undefined;
before(async () => {
  if (noCluster !== false) return;
  if (noApart === false) apart = await ApartCluster.start(3);
  cluster = apart?.cluster ?? (await Cluster.start(3, { CLOUDLET_FETCH_ALLOW: '127.0.0.0/8' }));
});
after(() => (apart ?? cluster)?.stop());

/** Starts it again, as a supervisor does, once it has ended. */
async function supervise(node: CloudProcess): Promise<void> {
  await node.crash();
  await node.start();
}

const TROUBLES: readonly ((node: CloudProcess) => Promise<void>)[] = [
  (node) => supervise(node),
  async (node) => {
    process.kill(node.pid, 'SIGSTOP');
    await sleep(STOPPED_MS);
    process.kill(node.pid, 'SIGCONT');
    // Another node has ended it, so that it ends by itself.
    assert.equal(await node.ended(), 75);
    await node.start();
  },
  async (node) => {
    const way = cluster.ways[cluster.nodes.indexOf(node)];
    const network = apart?.networkOf(node);
    if (network === undefined) way?.block();
    else network.cut();
    await sleep(STOPPED_MS);
    way?.unblock();
    network?.join();
    assert.equal(await node.ended(), 75);
    await node.start();
  },
  (node) => supervise(node),
];

test('nodes in trouble for minutes lose nothing, and do nothing twice', { skip: noCluster }, async (t) => {
  const receiver = await WebhookReceiver.open(apart?.host);
  t.after(() => receiver.close());
  const load = new ClusterLoad(cluster.nodes, apart?.url);
  let troubles = 0;
  await load.during(receiver, async () => {
    const end = performance.now() + MINUTES * 60_000;
    const underWay = new Set<Promise<void>>();
    while (performance.now() < end) {
      await sleep(EVERY_MS);
      const free = cluster.nodes.filter((node) => !load.troubled.has(node));
      const node = free[Math.floor(Math.random() * free.length)];
      // One node stays up.
      if (node === undefined || free.length === 1) continue;
      const trouble = TROUBLES[troubles++ % TROUBLES.length] as (typeof TROUBLES)[number];
      load.troubled.add(node);
      const done: Promise<void> = trouble(node)
        .catch((error: unknown) => void load.faults.push(`${error}\n${node.output.slice(-1000)}`))
        .finally(() => {
          load.troubled.delete(node);
          underWay.delete(done);
        });
      underWay.add(done);
    }
    await Promise.all(underWay);
  });
  await load.check();
  const how = apart === undefined ? noApart : 'networks of their own';
  t.diagnostic(JSON.stringify({ how, ...load.counts, troubles, worstRevocationMs: load.worstRevocationMs }));
  assert.deepEqual(load.faults, []);
  assert.ok(load.worstRevocationMs <= 3000, `revoked after ${load.worstRevocationMs} ms`);
  const delivered = new Set(receiver.received.map(({ id }) => id)).size;
  assert.equal(delivered, load.counts.events);
  const most = load.counts.events * 1.01 + troubles;
  assert.ok(receiver.received.length <= most, `${receiver.received.length} deliveries, at most ${most}`);
});
