/** Operators' commands for nodes, and the clocks of their hosts. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { FAKED_CLOCK, noFakedClock } from '../acceptance/faked-clock.ts';
import { ADMIN_KEY, type CloudProcess } from '../harness/cloud-process.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';
import { HealthChecks } from '../harness/health-checks.ts';
import { eventually } from '../harness/waiting.ts';

const KEY = { 'x-api-key': ADMIN_KEY };
const BYTES = 50_000_000;
const HOUR_SECONDS = 3600;
/** Quantities are in GB of 2^30 bytes. */
const GB = 2 ** 30;

describe('nodes', { skip: noCluster }, () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await Cluster.start(3);
  });
  after(() => cluster?.stop());

  test('started again one after the other, they leave no request without its answer', async (t) => {
    const proxy = new HealthChecks(cluster.nodes);
    const reading = proxy.read('/api/buckets');
    for (const node of cluster.nodes) {
      assert.equal(await node.end(), 0);
      await node.start();
      await proxy.isReady(node);
    }
    const { answers, failed } = await reading.end();
    proxy.close();
    t.diagnostic(`${answers} answers`);
    assert.deepEqual(failed, []);
    assert.ok(answers > 100);
  });

  test('a host whose clock is an hour wrong charges for no hour', { skip: noFakedClock }, async () => {
    for (const offset of ['+3600', '-3600']) {
      const wrong = await cluster.add({ ...FAKED_CLOCK, FAKETIME: offset });
      const [right] = cluster.nodes as [CloudProcess];
      const bucket = offset === '+3600' ? 'of-the-early' : 'of-the-late';
      const began = performance.now();
      await json(wrong, 'POST /api/buckets', { name: bucket });
      const form = new FormData();
      form.set('file', new Blob(['x'.repeat(BYTES)]), 'x.txt');
      const upload = { method: 'POST', headers: KEY, body: form };
      const stored = await fetch(`${wrong.api}/api/buckets/${bucket}/upload`, upload);
      const { object_id: id } = (await stored.json()) as { object_id: string };
      await sleep(3000);
      await fetch(`${right.api}/api/storage/${id}?permanent=true`, { method: 'DELETE', headers: KEY });
      const seconds = (performance.now() - began) / 1000;
      const most = ((BYTES / GB) * (seconds + 2)) / HOUR_SECONDS;
      for (const node of [right, wrong]) {
        const { items } = (await json(node, 'GET /api/billing/usage')) as { items: readonly Used[] };
        const quantity = items.find(({ name, meter }) => name === bucket && meter === 'storage')?.quantity;
        assert.ok(
          quantity !== undefined && quantity > 0 && quantity <= most,
          `${offset}: ${quantity}, ${most}`,
        );
      }
      await wrong.end();
    }
  });

  test('time is charged once while the node that stores it is killed, also to and from a wrong clock', {
    skip: noFakedClock,
  }, async (t) => {
    const wrong = await cluster.add({ ...FAKED_CLOCK, FAKETIME: '+3600' });
    const [host, right] = cluster.nodes as [CloudProcess, CloudProcess];
    const bucket = 'over-moves';
    await json(host, 'POST /api/buckets', { name: bucket });
    const form = new FormData();
    form.set('file', new Blob(['x'.repeat(BYTES)]), 'x.txt');
    const began = performance.now();
    const upload = { method: 'POST', headers: KEY, body: form };
    const stored = await fetch(`${host.api}/api/buckets/${bucket}/upload`, upload);
    const { object_id: id } = (await stored.json()) as { object_id: string };
    const kept = performance.now();
    const moves: string[] = [];
    for (const next of [wrong, right, wrong]) {
      const holder = await eventually('somebody stores the time', () => holderOfTime(cluster, host));
      if (holder === next) continue;
      const others = cluster.nodes.filter((node) => node !== next && node !== holder && !node.hasEnded);
      for (const node of others) await json(node, 'POST /api/admin/nodes/self/drain', {});
      await holder.crash();
      await eventually('another stores the time', async () => (await holderOfTime(cluster, next)) === next);
      moves.push(`${cluster.nodes.indexOf(holder)} to ${cluster.nodes.indexOf(next)}`);
      await holder.start();
      for (const node of others) await json(node, 'POST /api/admin/nodes/self/resume', {});
    }
    const removing = performance.now();
    await fetch(`${right.api}/api/storage/${id}?permanent=true`, { method: 'DELETE', headers: KEY });
    const removed = performance.now();
    t.diagnostic(`moves ${moves.join(', ')} in ${Math.round((removed - began) / 1000)} s`);
    assert.ok(moves.length >= 2);
    const hours = (ms: number) => ((BYTES / GB) * ms) / 1000 / HOUR_SECONDS;
    // A tick of the meter is lost or gained at each end.
    const [least, most] = [hours(removing - kept - 2000), hours(removed - began + 2000)];
    for (const node of [host, right, wrong]) {
      const { items } = (await json(node, 'GET /api/billing/usage')) as { items: readonly Used[] };
      const quantity = items.find(({ name, meter }) => name === bucket && meter === 'storage')?.quantity ?? 0;
      assert.ok(quantity >= least && quantity <= most, `${quantity} is not between ${least} and ${most}`);
    }
  });
});

/** The node whose clock counts, from the view of `asked`; undefined: none yet. */
async function holderOfTime(cluster: Cluster, asked: CloudProcess): Promise<CloudProcess | undefined> {
  const nodes = (await json(asked, 'GET /api/admin/nodes')) as { name: string; leases: readonly string[] }[];
  const name = nodes.find(({ leases }) => leases.includes('job:store the charged time'))?.name;
  if (name === undefined) return undefined;
  return cluster.nodes[name === 'host' ? 0 : Number(name.replace('front-', ''))];
}

interface Used {
  readonly name: string;
  readonly meter: string;
  readonly quantity: number;
}

async function json(node: CloudProcess, line: string, body?: unknown): Promise<unknown> {
  const [method = '', path] = line.split(' ');
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const headers = { ...KEY, 'content-type': 'application/json' };
  const response = await fetch(`${node.api}${path}`, { method, headers, ...sent });
  assert.ok(response.ok, `${line}: ${response.status}`);
  return response.json();
}
