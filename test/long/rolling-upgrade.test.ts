/**
 * Nodes of an earlier version that are restarted with this one, one after the other, under load: the first
 * migrates the schema to the newest version while the others continue with the old code.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ADMIN_KEY, type CloudProcess } from '../harness/cloud-process.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';
import { ClusterLoad } from '../harness/cluster-load.ts';
import { EXPIRING_ENV } from '../harness/expiring-load.ts';
import { HealthChecks } from '../harness/health-checks.ts';
import { WebhookReceiver } from '../harness/webhook-receiver.ts';
import { VERSION_BEFORE as BEFORE, earlierCode, notInHistory } from './earlier-code.ts';

/** Both versions serve together for this long at each step. */
const BETWEEN_MS = 10_000;
/** Refusals of front nodes while the host is started again. */
const HOST_AWAY = new Set(['host_unreachable', 'operation_interrupted']);

describe('three nodes', { skip: noCluster || notInHistory(BEFORE) }, () => {
  let code: ReturnType<typeof earlierCode>;
  let cluster: Cluster;
  before(async () => {
    code = earlierCode(BEFORE);
    const command = [join(code.folder, 'bin/cloudlet'), 'start'];
    const env = { CLOUDLET_FETCH_ALLOW: '127.0.0.0/8', ...EXPIRING_ENV };
    cluster = await Cluster.start(3, env, { command });
  });
  after(async () => {
    await cluster?.stop();
    code?.remove();
  });

  test('are brought to this version one after the other, and no request fails', async (t) => {
    const receiver = await WebhookReceiver.open();
    t.after(() => receiver.close());
    const [host] = cluster.nodes as [CloudProcess];
    const made = await json(host, 'POST /api/databases', { name: 'kept' });
    const query = (node: CloudProcess, statement: string) => {
      return json(node, `POST /api/databases/${made.database_id}/query`, { statement, read_only: false });
    };
    await query(host, 'CREATE TABLE steps (name TEXT)');
    const proxy = new HealthChecks([...cluster.nodes]);
    t.after(() => proxy.close());
    const reading = proxy.read('/api/buckets');
    const load = new ClusterLoad(cluster.nodes, { isMixed: true });
    const failed: unknown[] = [];
    let noted = 0;
    const noteFailed = (expected: ReadonlySet<string>) => {
      failed.push(...load.failed.slice(noted).filter(({ code }) => !expected.has(code)));
      noted = load.failed.length;
    };
    await load.during(receiver, async () => {
      await sleep(BETWEEN_MS);
      // A front with this version and a host with the other, and the reverse.
      for (const i of [1, 0, 2]) {
        const old = cluster.nodes[i] as CloudProcess;
        load.troubled.add(old);
        await cluster.replace(old, {});
        await proxy.isReady(old);
        noteFailed(i === 0 ? HOST_AWAY : new Set());
        // Fronts of both versions forward it to hosts of both versions.
        for (const each of cluster.nodes) await query(each, `INSERT INTO steps VALUES ('${i}')`);
        await sleep(BETWEEN_MS);
      }
    });
    noteFailed(new Set());
    const { answers, failed: unread } = await reading.end();
    await load.check(receiver, 3);
    t.diagnostic(JSON.stringify({ answers, ...load.done }));
    assert.deepEqual([...unread, ...failed, ...load.faults], []);
    assert.ok(answers > 100);
    const { rows } = await query(cluster.nodes[0] as CloudProcess, 'SELECT count(*) FROM steps');
    assert.deepEqual(rows, [[9]]);
  });
});

async function json(node: CloudProcess, line: string, body: unknown) {
  const [method = '', path] = line.split(' ');
  const headers = { 'x-api-key': ADMIN_KEY, 'content-type': 'application/json' };
  const response = await fetch(`${node.api}${path}`, { method, headers, body: JSON.stringify(body) });
  const text = await response.text();
  assert.ok(response.ok, `${line}: ${response.status} ${text}`);
  return JSON.parse(text);
}
