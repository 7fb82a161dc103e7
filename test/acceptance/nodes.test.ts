import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ADMIN_KEY, type CloudProcess } from '../harness/cloud-process.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';
import { WebhookReceiver } from '../harness/webhook-receiver.ts';

const headers = { 'x-api-key': ADMIN_KEY, 'content-type': 'application/json' };

function call(node: CloudProcess, path: string, body?: unknown): Promise<Response> {
  const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  return fetch(`${node.api}${path}`, { headers, ...init });
}

async function made(answer: Promise<Response>): Promise<{ readonly id: string }> {
  const response = await answer;
  assert.ok(response.ok, `${response.status}`);
  return (await response.json()) as { id: string };
}

describe('two nodes', { skip: noCluster }, () => {
  let cluster: Cluster;
  let host: CloudProcess;
  let front: CloudProcess;
  before(async () => {
    cluster = await Cluster.start(2, { CLOUDLET_FETCH_ALLOW: '127.0.0.0/8' });
    [host, front] = cluster.nodes as [CloudProcess, CloudProcess];
  });
  after(() => cluster?.stop());

  test('what one stores the other has at once', async () => {
    for (const [i, node] of [front, host, front, host].entries()) {
      const other = node === host ? front : host;
      const made = await call(node, '/api/buckets', { name: `of-both-${i}` });
      assert.equal(made.status, 201);
      const seen = await call(other, `/api/buckets/of-both-${i}`);
      assert.equal(seen.status, 200);
    }
  });

  test('the master key is rotated only where no other node would miss it', async () => {
    const refused = await call(front, '/api/admin/master-key/rotate', {});
    assert.equal(refused.status, 409);
    assert.match(await refused.text(), /other_nodes_run/);
  });

  test('an event is delivered once, at whichever node it happened', async () => {
    const receiver = await WebhookReceiver.open();
    const { id } = await made(call(host, '/api/webhooks', { url: receiver.url, events: ['*'] }));
    const nodes = Array.from({ length: 12 }, (_, i) => (i % 2 === 0 ? host : front));
    await Promise.all(nodes.map((node) => made(call(node, `/api/webhooks/${id}/test`, {}))));
    await waitFor(async () => receiver.received.length >= nodes.length);
    await sleep(3000);
    assert.equal(receiver.received.length, nodes.length);
    receiver.close();
  });

  test('a node that is stopped says so before it closes, and the other goes on', async () => {
    const leaving = await cluster.add();
    const ended = leaving.end();
    await waitFor(async () => (await call(leaving, '/readyz')).status === 503);
    assert.equal((await call(leaving, '/api/buckets')).status, 200);
    assert.equal(await ended, 0);
    assert.equal((await call(host, '/api/buckets')).status, 200);
  });

  test('a node that stands still for long is ended by the others, and stores nothing more', async () => {
    const stuck = await cluster.add({ CLOUDLET_LOG_LEVEL: 'error' });
    process.kill(stuck.pid, 'SIGSTOP');
    await sleep(15_000);
    const late = call(stuck, '/api/buckets', { name: 'too-late' }).then(
      ({ status }) => status,
      () => 'cut',
    );
    process.kill(stuck.pid, 'SIGCONT');
    const status = await late;
    assert.ok(status === 'cut' || status === 503, String(status));
    assert.equal((await call(host, '/api/buckets/too-late')).status, 404);
    await assertGone(stuck);
    assert.match(stuck.output, /was silent for 10 s, and another node has ended it/);
  });
});

async function waitFor(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await sleep(50);
}

async function assertGone(node: CloudProcess): Promise<void> {
  await waitFor(async () =>
    fetch(`${node.api}/healthz`).then(
      () => false,
      () => true,
    ),
  );
  assert.equal(await node.end(), 75);
}
