/**
 * Three nodes under load while their database restarts, has no connection left, refuses writes, or is a
 * standby: calls wait or get an error, nothing acknowledged is lost, and no node must be restarted.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { statfsSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { LoopDisk, noLoopDisk } from '../faults/loop-disk.ts';
import { Client } from '../harness/client.ts';
import { ADMIN_KEY } from '../harness/cloud-process.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';
import { ClusterLoad } from '../harness/cluster-load.ts';
import { EXPIRING_ENV } from '../harness/expiring-load.ts';
import { eventually } from '../harness/waiting.ts';
import { WebhookReceiver } from '../harness/webhook-receiver.ts';

const AWAY_MS = 4000;
const BETWEEN_MS = 4000;

describe('nodes whose database is in trouble', { skip: noCluster }, () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await Cluster.start(3, { CLOUDLET_FETCH_ALLOW: '127.0.0.0/8', ...EXPIRING_ENV });
  });
  after(() => cluster?.stop());

  const run = (sql: string) => cluster.database.run(sql);

  async function setReadOnly(isOn: boolean): Promise<void> {
    await run(`ALTER SYSTEM SET default_transaction_read_only = ${isOn ? 'on' : 'off'}`);
    await run('SELECT pg_reload_conf()');
  }

  /** Uses all remaining connections, and makes each node open its own again. */
  async function takeConnections(): Promise<() => Promise<void>> {
    const taken: pg.Client[] = [];
    const fill = async () => {
      for (;;) {
        const client = new pg.Client(cluster.metadataUrl);
        client.on('error', () => {});
        try {
          await client.connect();
        } catch (error) {
          assert.equal((error as { code?: string }).code, '53300', String(error));
          return;
        }
        taken.push(client);
      }
    };
    await fill();
    for (const way of cluster.ways) way.cut();
    // The server notices this a little later.
    for (const end = performance.now() + AWAY_MS; performance.now() < end; await sleep(20)) await fill();
    return async () => {
      await Promise.all(taken.map((client) => client.end()));
    };
  }

  const TROUBLES: Readonly<Record<string, () => Promise<unknown>>> = {
    'a restart': async () => {
      await cluster.database.stop();
      await sleep(AWAY_MS);
      await cluster.database.start();
    },
    'a crash': () => cluster.database.crash(),
    'no connection left': async () => {
      const giveBack = await takeConnections();
      await giveBack();
    },
    'no writes': async () => {
      await setReadOnly(true);
      await sleep(AWAY_MS);
      await setReadOnly(false);
    },
    'a standby': async () => {
      await run(`DO $$ BEGIN EXECUTE format('COPY (SELECT 1) TO %L',
        current_setting('data_directory') || '/standby.signal'); END $$`);
      await cluster.database.stop();
      await cluster.database.start();
      await sleep(AWAY_MS);
      await run('SELECT pg_promote()');
    },
  };

  test('they lose nothing, and go on by themselves', async (t) => {
    const receiver = await WebhookReceiver.open();
    t.after(() => receiver.close());
    const load = new ClusterLoad(cluster.nodes, { isMixed: true });
    const pids = cluster.nodes.map(({ pid }) => pid);
    const answered: Record<string, Record<string, number>> = {};
    await load.during(receiver, async () => {
      for (const [name, trouble] of Object.entries(TROUBLES)) {
        await sleep(BETWEEN_MS);
        for (const node of cluster.nodes) load.troubled.add(node);
        const seen = watch(cluster.nodes[1]?.api ?? '');
        await trouble();
        for (const node of cluster.nodes) {
          await eventually(`a node is ready after ${name}`, async () => {
            assert.ok(!node.hasEnded, `${name}: ${node.output.slice(-2000)}`);
            return (await fetch(`${node.api}/readyz`)).status === 200;
          });
        }
        answered[name] = await seen();
        for (const node of cluster.nodes) load.troubled.delete(node);
      }
      await sleep(BETWEEN_MS);
    });
    await load.check(receiver, cluster.nodes.length * Object.keys(TROUBLES).length);
    t.diagnostic(JSON.stringify({ ...load.done, answered }));
    assert.deepEqual(load.faults, []);
    assert.deepEqual(
      cluster.nodes.map(({ pid }) => pid),
      pids,
    );
    for (const [name, codes] of Object.entries(answered))
      for (const code of Object.keys(codes))
        assert.match(code, /^(?:200|503 (?:overloaded|read_only))$/, name);
  });

  test('a front node whose own disk is full serves as before', { skip: noLoopDisk() }, async (t) => {
    const disk = new LoopDisk(64 * 2 ** 20);
    const node = await cluster.add({}, { dataDir: `${disk.mountPoint}/data` });
    t.after(async () => {
      await node.end();
      disk.remove();
    });
    const client = new Client(node.api, ADMIN_KEY);
    // It ends with an error, once there is no space left.
    spawnSync('dd', ['if=/dev/zero', `of=${disk.mountPoint}/full`, 'bs=64K']);
    assert.equal(statfsSync(disk.mountPoint).bavail, 0);
    await client.call('/api/buckets', { json: { name: 'from-a-full-disk' } });
    for (const size of [10, 100_000, 8 * 2 ** 20]) {
      const content = Buffer.alloc(size, 'x');
      const { status, body } = await client.upload('from-a-full-disk', `of-${size}`, content);
      assert.equal(status, 200, JSON.stringify(body));
      assert.ok(content.equals(await client.download(body.object_id)));
    }
    const made = await client.call('/api/databases', { json: { name: 'through-a-full-disk' } });
    assert.equal(made.status, 201, JSON.stringify(made.body));
    assert.equal((await fetch(`${node.api}/readyz`)).status, 200);
    await node.crash();
    await node.start();
    assert.equal((await new Client(node.api, ADMIN_KEY).call('/api/buckets')).status, 200);
  });
});

/** Counts the answers to small changes at a node, until the result is called. */
function watch(api: string): () => Promise<Record<string, number>> {
  const client = new Client(api, ADMIN_KEY);
  const counts: Record<string, number> = {};
  let isOver = false;
  const work = (async () => {
    for (let i = 0; !isOver; i++) {
      const json = { name: `watched-${process.pid}-${performance.now().toFixed(0)}-${i}` };
      const { status, body } = await client.call('/api/admin/plans', { json });
      const code = status < 300 ? '200' : `${status} ${body.code}`;
      counts[code] = (counts[code] ?? 0) + 1;
      await sleep(100);
    }
  })();
  return async () => {
    isOver = true;
    await work;
    return counts;
  };
}
