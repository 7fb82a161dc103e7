/** The audit log of a cluster: whichever node acts, an entry is stored once and delivered once. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '../harness/client.ts';
import { ADMIN_KEY } from '../harness/cloud-process.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';
import { eventually } from '../harness/waiting.ts';
import { WebhookReceiver } from '../harness/webhook-receiver.ts';

const CALLS = 40;

interface Entry {
  readonly action: string;
  readonly target: string;
}

describe('the audit log of two nodes', { skip: noCluster }, () => {
  let cluster: Cluster;
  let receiver: WebhookReceiver;
  let nodes: readonly [Client, Client];
  before(async () => {
    receiver = await WebhookReceiver.open();
    cluster = await Cluster.start(2, { CLOUDLET_FETCH_ALLOW: '127.0.0.0/8' });
    nodes = cluster.nodes.map(({ api }) => new Client(api, ADMIN_KEY)) as [Client, Client];
    const hook = { json: { url: receiver.url, events: ['audit.*'] } };
    assert.equal((await nodes[0].call('/api/webhooks', hook)).status, 201);
    // The other node has loaded the webhooks.
    await eventually('the other node hears', async () => {
      await nodes[1].call('/api/buckets', {
        json: { name: `probe-${receiver.received.length}-${Date.now()}` },
      });
      return receiver.received.some(({ body }) => body.includes('probe-'));
    });
  });
  after(async () => {
    await cluster?.stop();
    receiver?.close();
  });

  test('each call has one entry and one event, also where both nodes get it under one key', async () => {
    const names = Array.from({ length: CALLS }, (_, i) => `audited-${i}`);
    for (const [i, name] of names.entries()) {
      const call = { json: { name }, headers: { 'idempotency-key': name } };
      const asked = i % 4 === 0 ? nodes : [nodes[i % 2] as Client];
      const answers = await Promise.all(asked.map((node) => node.call('/api/buckets', call)));
      for (const { status } of answers) assert.equal(status, 201);
    }
    const heard = () =>
      receiver.received
        .map(({ id, body }) => ({ id, data: JSON.parse(body).data as Entry }))
        .filter(({ data }) => names.includes(data.target));
    await eventually('each is heard', () => new Set(heard().map(({ data }) => data.target)).size === CALLS);
    // A second delivery would have arrived by now.
    await sleep(1500);
    assert.deepEqual(
      heard()
        .map(({ data }) => data.target)
        .sort(),
      [...names].sort(),
    );
    assert.equal(new Set(heard().map(({ id }) => id)).size, CALLS);
    for (const node of nodes) {
      const { body } = await node.call('/api/audit?action=createBucket&limit=1000');
      const targets = (body as Entry[]).map(({ target }) => target).filter((name) => names.includes(name));
      assert.deepEqual(targets.sort(), [...names].sort());
      const verified = await node.call('/api/admin/audit/verify');
      assert.equal(verified.body.ok, true);
    }
  });

  test('a node is drained and resumed in one commit with the entry, which the other node has at once', async () => {
    const [one, two] = nodes;
    const { body: list } = await one.call('/api/admin/nodes');
    const { node_id: id } = list.find(({ is_this: isThis }: { is_this: boolean }) => !isThis);
    for (const [path, action, state] of [
      ['drain', 'adminDrainNode', 'draining'],
      ['resume', 'adminResumeNode', 'up'],
    ]) {
      const { status, body } = await one.call(`/api/admin/nodes/${id}/${path}`, { method: 'POST' });
      assert.deepEqual([status, body.state], [200, state]);
      // An entry of its own commit would be stored by the first node half a second later.
      const { body: entries } = await two.call(`/api/audit?action=${action}`);
      assert.deepEqual(
        entries.map(({ target, outcome }: { target: string; outcome: string }) => [target, outcome]),
        [[id, 'done']],
      );
    }
  });
});
