/**
 * Two nodes behind Caddy, with deploy/Caddyfile.cluster: clients do not notice that one is drained, or
 * stopped.
 */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { notInstalled } from '../../scripts/installed.ts';
import { ADMIN_KEY, type CloudProcess } from '../harness/cloud-process.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';
import { eventually } from '../harness/waiting.ts';
import { CLOUD, portsOfProxy, startCaddyOf } from './proxy-kit.ts';

const agent = new Agent({ keepAlive: true, rejectUnauthorized: false, servername: CLOUD });

/** The status of a call through the proxy; 0: there was no answer. */
function call(port: number, path: string, { method = 'GET', body = '' } = {}): Promise<number> {
  const headers = { host: CLOUD, 'x-api-key': ADMIN_KEY, 'content-type': 'application/json' };
  return new Promise((resolve) => {
    const sent = request({ host: '127.0.0.1', port, path, method, headers, agent }, (answer) => {
      answer.resume().once('end', () => resolve(answer.statusCode ?? 0));
    });
    sent.once('error', () => resolve(0)).end(body);
  });
}

const postsAt = async ({ api }: CloudProcess) => {
  const text = await (await fetch(`${api}/metrics`)).text();
  const counted = /^cloudlet_http_requests_total\{route="createBucket",.*status="201"\} (\d+)/m.exec(text);
  return Number(counted?.[1] ?? 0);
};

describe('nodes behind a proxy', { skip: noCluster || notInstalled('caddy') }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
  let cluster: Cluster;
  let host: CloudProcess;
  let front: CloudProcess;
  let caddy: ChildProcess;
  let port = 0;
  before(async () => {
    cluster = await Cluster.start(1);
    [host] = cluster.nodes as [CloudProcess];
    front = await cluster.addAt('127.0.0.3');
    const ports = await portsOfProxy();
    port = ports.https;
    const of = (url: 'api' | 'data') => [host, front].map((node) => new URL(node[url]).host).join(' ');
    const nodes = {
      CLOUDLET_API: of('api'),
      CLOUDLET_DATA: of('data'),
      CLOUDLET_API_PORT: new URL(host.api).port,
    };
    caddy = startCaddyOf('Caddyfile.cluster', { folder, ports, nodes });
    await eventually('Caddy answers', async () => (await call(port, '/readyz')) === 200 || undefined);
  });
  after(async () => {
    agent.destroy();
    if (caddy !== undefined && caddy.exitCode === null) {
      caddy.kill();
      await once(caddy, 'exit');
    }
    await cluster?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  let made = 0;
  /** Sends calls without a pause during `work`, and counts the failed ones. */
  async function underLoad(work: () => Promise<void>): Promise<void> {
    const failed: string[] = [];
    let isOver = false;
    const clients = Array.from({ length: 4 }, async () => {
      while (!isOver) {
        const name = `of-load-${++made}`;
        const created = await call(port, '/api/buckets', { method: 'POST', body: JSON.stringify({ name }) });
        const read = await call(port, `/api/buckets/${name}`);
        const deleted = await call(port, `/api/buckets/${name}`, { method: 'DELETE' });
        const all = [created, read, deleted].join();
        if (all !== '201,200,200') failed.push(`${name}: ${all}`);
      }
    });
    await work().finally(() => {
      isOver = true;
    });
    await Promise.all(clients);
    assert.deepEqual(failed, []);
  }

  test('a drained node gets nothing new, and takes its share again', async () => {
    const change = (verb: string) =>
      fetch(`${front.api}/api/admin/nodes/self/${verb}`, {
        method: 'POST',
        headers: { 'x-api-key': ADMIN_KEY },
      });
    const grows = async (node: CloudProcess) => {
      const before = await postsAt(node);
      return eventually('it gets requests', async () => (await postsAt(node)) > before || undefined);
    };
    await underLoad(async () => {
      await grows(front);
      await grows(host);
      assert.equal((await change('drain')).status, 200);
      await eventually('it gets none', async () => {
        const before = await postsAt(front);
        await sleep(1000);
        return (await postsAt(front)) === before || undefined;
      });
      await grows(host);
      assert.equal((await change('resume')).status, 200);
      await grows(front);
    });
  });

  test('a node is stopped under load without a failed request', async () => {
    await underLoad(async () => {
      assert.equal(await front.end(), 0);
      await sleep(500);
    });
    assert.ok(made > 20, `${made} buckets`);
  });
});
