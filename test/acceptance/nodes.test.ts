import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ADMIN_KEY, type CloudProcess } from '../harness/cloud-process.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';
import { runCloudlet } from '../harness/command.ts';
import { eventually } from '../harness/waiting.ts';
import { WebhookReceiver } from '../harness/webhook-receiver.ts';

const SWEEP_SECONDS = 2;

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
    cluster = await Cluster.start(2, {
      CLOUDLET_FETCH_ALLOW: '127.0.0.0/8',
      CLOUDLET_SWEEP_GRACE_SECONDS: String(SWEEP_SECONDS),
    });
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

  test('administrators see, drain, resume and forget nodes at any of them', async () => {
    const nodes = () => list(front);
    await waitFor(async () => (await nodes()).some(({ state }) => state === 'left'));
    const [first, second, third] = await nodes();
    assert.deepEqual([first?.name, first?.role, first?.state, first?.url], ['host', 'host', 'up', host.api]);
    assert.deepEqual([second?.name, second?.role, second?.is_this], ['front-1', 'front', true]);
    assert.equal(third?.state, 'left');
    const of = `/api/admin/nodes/${first?.node_id}`;
    assert.equal((await change(front, `${of}/drain`)).state, 'draining');
    await waitFor(async () => (await call(host, '/readyz')).status === 503);
    assert.equal(((await (await call(host, '/readyz')).json()) as { code: string }).code, 'draining');
    assert.equal((await call(host, '/api/buckets')).status, 200);
    const last = await call(front, '/api/admin/nodes/self/drain', {});
    assert.deepEqual(
      [last.status, ((await last.json()) as { code: string }).code],
      [409, 'node_invalid_state'],
    );
    assert.equal((await call(front, '/readyz')).status, 200);
    assert.equal((await change(front, `${of}/resume`)).state, 'up');
    await waitFor(async () => (await call(host, '/readyz')).status === 200);
    assert.equal((await change(front, of, 'DELETE')).code, 'node_invalid_state');
    assert.equal((await change(front, `/api/admin/nodes/${third?.node_id}`, 'DELETE')).name, 'front-2');
    assert.equal((await nodes()).length, 2);
    assert.equal(
      (await change(front, `/api/admin/nodes/${third?.node_id}`, 'DELETE')).code,
      'node_not_found',
    );
    const metrics = await (await call(front, '/api/admin/metrics')).text();
    assert.match(metrics, /cloudlet_node_info\{node="nod-\w+",name="host",.*,role="host",state="up"\} 1/);
    assert.match(metrics, /cloudlet_nodes\{state="up"\} 2/);
    assert.match(metrics, /cloudlet_node_beat_age_seconds\{node="nod-\w+"\} \d/);
    assert.match(metrics, /cloudlet_node_leases\{node="nod-\w+"\} \d/);
  });

  test('each node tells the alarms of all, and a node that has left has none', async () => {
    const told = async (node: CloudProcess) => {
      const status = (await (await call(node, '/api/system/status')).json()) as Status;
      return status.alarms.map(({ code, node: of }) => `${code} of ${of}`);
    };
    const { node: cutOff, way } = await cluster.addWithOwnWay();
    way.close();
    assert.equal((await call(cutOff, '/api/buckets', { name: 'alarms' })).status, 201);
    const body = new FormData();
    body.set('file', new Blob(['x'.repeat(100_000)]), 'x.txt');
    const upload = { method: 'POST', headers: { 'x-api-key': ADMIN_KEY }, body };
    assert.equal((await fetch(`${cutOff.api}/api/buckets/alarms/upload`, upload)).status, 503);
    const alarm = 'blobs_unreachable of front-3';
    for (const node of [cutOff, front, host]) await waitFor(async () => (await told(node)).join() === alarm);
    await cutOff.end();
    for (const node of [front, host]) await waitFor(async () => (await told(node)).length === 0);
  });

  test('what needs S3 leaves a node that alone does not reach it, and another has it', async () => {
    const others = [await cluster.addWithOwnWay(), await cluster.addWithOwnWay()];
    const holder = async () => (await list(front)).find(({ leases }) => leases.includes('job:sweep garbage'));
    for (const { node_id, name } of await list(front))
      if (name === 'host' || name === 'front-1') await change(front, `/api/admin/nodes/${node_id}/drain`);
    // The hash of a run decides which of the others owns it: that one is cut off.
    const held = async () => {
      const url = (await holder())?.url;
      return others.find(({ node }) => node.api === url);
    };
    const { node: cutOff, way } = await eventually('one of the others has it', held);
    const left = others.find(({ node }) => node !== cutOff)?.node.api;
    way.close();
    const body = new FormData();
    body.set('file', new Blob(['x'.repeat(100_000)]), 'x.txt');
    const upload = { method: 'POST', headers: { 'x-api-key': ADMIN_KEY }, body };
    assert.equal((await fetch(`${cutOff.api}/api/buckets/alarms/upload`, upload)).status, 503);
    await waitFor(async () => (await holder())?.url === left);
    for (const node of [host, front]) await call(node, '/api/admin/nodes/self/resume', {});
    for (const { node } of others) await node.end();
  });

  test('the operator of a node does the same by command', async () => {
    const listed = await nodesCommand(host, 'list');
    assert.match(listed, /^NAME +ROLE +STATE .*\nhost \* +host +up /);
    assert.match(await nodesCommand(host, 'drain', 'front-1'), /^front-1 is draining: \/readyz returns 503/);
    await waitFor(async () => (await call(front, '/readyz')).status === 503);
    assert.match(await nodesCommand(front, 'resume', 'self'), /^front-1 is up/);
    await assert.rejects(nodesCommand(host, 'forget', 'front-1'), /Only a node that has left or is lost/);
    await assert.rejects(nodesCommand(host, 'drain', 'front-9'), /no node is named front-9/);
  });

  test('a node that cannot start leaves, and counts for nothing', async () => {
    const key = JSON.parse(readFileSync(join(host.dataDir, 'master.key'), 'utf8'));
    const wrong = join(mkdtempSync(join(tmpdir(), 'cloudlet-test-')), 'wrong.key');
    key.keys[key.current] = Buffer.alloc(32, 7).toString('base64');
    writeFileSync(wrong, JSON.stringify(key), { mode: 0o600 });
    await assert.rejects(cluster.add({ CLOUDLET_MASTER_KEY_FILE: wrong, CLOUDLET_NODE_NAME: 'wrong' }));
    rmSync(dirname(wrong), { recursive: true });
    await sleep(1500);
    const nodes = (await (await call(front, '/api/admin/nodes')).json()) as { name: string; state: string }[];
    assert.equal(nodes.find(({ name }) => name === 'wrong')?.state, 'left');
  });

  test('a node is not ready while the database does not hear it, and is again once it does', async () => {
    const [, way] = cluster.ways;
    way?.block();
    try {
      await waitFor(async () => (await readiness(front)) === 'node_cut_off');
      assert.equal(await readiness(host), 'ok');
    } finally {
      way?.unblock();
    }
    await waitFor(async () => (await readiness(front)) === 'ok');
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
    assert.match(stuck.output, /sent no heartbeat for 10 s, and another node has declared it lost/);
  });
});

interface Listed {
  readonly node_id: string;
  readonly name: string;
  readonly role: string;
  readonly state: string;
  readonly url: string;
  readonly is_this: boolean;
  readonly leases: readonly string[];
  readonly code?: string;
}

/** `ok`, or the reason why it is not ready. */
async function readiness(node: CloudProcess): Promise<string> {
  const { status, code } = (await (await call(node, '/readyz')).json()) as { status: string; code?: string };
  return code ?? status;
}

interface Status {
  readonly alarms: readonly { readonly code: string; readonly node: string }[];
}

async function list(node: CloudProcess): Promise<Listed[]> {
  return (await (await call(node, '/api/admin/nodes')).json()) as Listed[];
}

/** The answer, either from the node or a refusal. */
async function change(node: CloudProcess, path: string, method = 'POST'): Promise<Listed> {
  const headers = { 'x-api-key': ADMIN_KEY };
  return (await (await fetch(`${node.api}${path}`, { method, headers })).json()) as Listed;
}

async function nodesCommand({ dataDir }: CloudProcess, ...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await runCloudlet(['nodes', ...words, '--data-dir', dataDir], { env: {} });
  if (code !== 0) throw new Error(stderr);
  return stdout;
}

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
