/**
 * Three nodes under load for ten minutes; every five seconds one is killed, stopped or cut off from the
 * database, and another receives no NOTIFY. As root each is on a separate network behind Caddy, like three
 * hosts, and is cut off by its link; otherwise by a proxy on its connection.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { notInstalled } from '../../scripts/installed.ts';
import { ApartCluster } from '../harness/apart-cluster.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';
import { ClusterLoad } from '../harness/cluster-load.ts';
import { EXPIRING_ENV } from '../harness/expiring-load.ts';
import { residentMb } from '../harness/memory.ts';
import { noNodeNetworks } from '../harness/node-networks.ts';
import { eventually } from '../harness/waiting.ts';
import { WebhookReceiver } from '../harness/webhook-receiver.ts';

const MINUTES = Number(process.env.TEST_CLUSTER_MINUTES ?? '10');
const EVERY_MS = 5000;
const STOPPED_MS = 15_000;

const noApart = noNodeNetworks() || notInstalled('caddy');

let cluster: Cluster;
let apart: ApartCluster | undefined;
before(async () => {
  if (noCluster !== false) return;
  if (noApart === false) apart = await ApartCluster.start(3, EXPIRING_ENV);
  cluster =
    apart?.cluster ?? (await Cluster.start(3, { CLOUDLET_FETCH_ALLOW: '127.0.0.0/8', ...EXPIRING_ENV }));
});
after(() => (apart ?? cluster)?.stop());

/** Restarts it, like a supervisor, once it has ended. */
async function supervise(node: CloudProcess): Promise<void> {
  await node.crash();
  await node.start();
}

/** Nodes that stood still and survive, because no other had watched them long enough to declare them lost. */
let spared = 0;

/** Another node has declared it lost, so that it exits; or it was spared, and is ready again. */
async function endedOrSpared(node: CloudProcess): Promise<void> {
  const ended = node.ended();
  let isOver = false;
  const ready = eventually('a node that stood still is ended, or ready', async () => {
    if (isOver) return 'over';
    // It trusts no cached state before its next heartbeat, which reports that it was declared lost.
    const is = await fetch(`${node.api}/readyz`, { signal: AbortSignal.timeout(2000) }).catch(() => null);
    return is?.status === 200 ? 'ready' : null;
  });
  try {
    const how = await Promise.race([ended, ready]);
    if (how === 'ready') return void spared++;
    assert.equal(how, 75);
    await node.start();
  } finally {
    isOver = true;
    await ready.catch(() => {});
  }
}

const TROUBLES: Readonly<Record<string, (node: CloudProcess) => Promise<void>>> = {
  kill: (node) => supervise(node),
  stop: async (node) => {
    process.kill(node.pid, 'SIGSTOP');
    await sleep(STOPPED_MS);
    process.kill(node.pid, 'SIGCONT');
    await endedOrSpared(node);
  },
  cut: async (node) => {
    const way = cluster.ways[cluster.nodes.indexOf(node)];
    const network = apart?.networkOf(node);
    if (network === undefined) way?.block();
    else network.cut();
    await sleep(STOPPED_MS);
    way?.unblock();
    network?.join();
    await endedOrSpared(node);
  },
  'kill again': (node) => supervise(node),
};
const KINDS = Object.entries(TROUBLES);

test('nodes in trouble for minutes lose nothing, and do nothing twice', { skip: noCluster }, async (t) => {
  const receiver = await WebhookReceiver.open(apart?.host);
  t.after(() => receiver.close());
  const load = new ClusterLoad(cluster.nodes, { proxy: apart?.url, isMixed: true });
  let troubles = 0;
  /** The largest node, MiB, in each minute. */
  const memory: number[] = [];
  await load.during(receiver, async () => {
    const began = performance.now();
    const end = began + MINUTES * 60_000;
    const underWay = new Set<Promise<void>>();
    let isBroken = false;
    while (performance.now() < end && !isBroken) {
      await sleep(EVERY_MS);
      const minute = Math.floor((performance.now() - began) / 60_000);
      const sizes = cluster.nodes.map((node) => residentMb(node) ?? 0);
      memory[minute] = Math.max(memory[minute] ?? 0, ...sizes);
      const deaf = cluster.nodes[troubles % cluster.nodes.length] as CloudProcess;
      for (const each of cluster.nodes) cluster.hear(each);
      cluster.deafen(deaf);
      const free = cluster.nodes.filter((node) => !load.troubled.has(node));
      const node = free[Math.floor(Math.random() * free.length)];
      // One node stays up.
      if (node === undefined || free.length === 1) continue;
      const [name, trouble] = KINDS[troubles++ % KINDS.length] as (typeof KINDS)[number];
      load.troubled.add(node);
      const done: Promise<void> = load.open
        .named(`${name} ${node.api}`, () => trouble(node))
        .then(() => void load.troubled.delete(node))
        .catch((error: unknown) => {
          // It stays disturbed, so that no call waits for it.
          isBroken = true;
          load.faults.push(`${name} ${node.api}: ${error}\n${node.output.slice(-1000)}`);
        })
        .finally(() => underWay.delete(done));
      underWay.add(done);
    }
    await load.open.all([...underWay]);
  });
  for (const each of cluster.nodes) cluster.hear(each);
  // A node that is down would make everything else look like a failure.
  if (load.troubled.size > 0) assert.deepEqual(load.faults, []);
  await load.check(receiver, troubles);
  const left = await leftInDatabase();
  const how = apart === undefined ? noApart : 'networks of their own';
  const figures = { troubles, spared, worstRevocationMs: load.worstRevocationMs, memory, ...left };
  t.diagnostic(JSON.stringify({ how, ...load.done, ...figures }));
  assert.deepEqual(load.faults, []);
  assert.ok(load.worstRevocationMs <= 3000, `revoked after ${load.worstRevocationMs} ms`);
  // Each node restarts continuously, so this state comes from the others and from the rows.
  const half = Math.ceil(memory.length / 2);
  const [early, late] = [Math.max(...memory.slice(0, half)), Math.max(...memory.slice(half))];
  assert.ok(memory.length < 4 || late < 1.25 * early, `${memory.join(', ')} MiB`);
  const { nodes, writers, leases, connections } = left;
  assert.equal(nodes, 3);
  assert.ok(writers <= 4, `${writers}: one that was ended leaves its row until the next is`);
  assert.ok(leases > 0 && connections <= 3 * 10, `${leases} leases, ${connections} connections`);
});

async function leftInDatabase() {
  const client = new pg.Client(cluster.metadataUrl);
  await client.connect();
  const count = async (what: string) =>
    Number((await client.query(`SELECT count(*) FROM ${what}`)).rows[0].count);
  const left = {
    nodes: await count('store_nodes'),
    writers: await count('store_batches'),
    leases: await count('store_leases'),
    connections: await count("pg_stat_activity WHERE application_name LIKE 'cloudlet%'"),
  };
  await client.end();
  return left;
}
