import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ADMIN_KEY, type CloudProcess } from '../harness/cloud-process.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';
import { freePort } from '../harness/free-port.ts';
import { eventually } from '../harness/waiting.ts';

interface Node {
  readonly name: string;
  readonly role: string;
  readonly state: string;
  readonly is_this: boolean;
}

describe('workers of one host', { skip: noCluster }, () => {
  let cluster: Cluster;
  let cloud: CloudProcess;
  before(async () => {
    cluster = await Cluster.start(1, await withWorkers());
    [cloud] = cluster.nodes as [CloudProcess];
    await allKnow();
  });
  after(() => cluster?.stop());

  // A new connection each time: the kernel assigns it to any of the processes.
  async function json<T>(path: string, init: RequestInit = {}): Promise<T> {
    const headers = { 'x-api-key': ADMIN_KEY, 'content-type': 'application/json', connection: 'close' };
    const response = await fetch(`${cloud.api}${path}`, { ...init, headers });
    assert.ok(response.ok, `${path}: ${response.status}`);
    return (await response.json()) as T;
  }
  const up = async () =>
    (await json<Node[]>('/api/admin/nodes')).filter(({ state }) => state === 'up').map(({ name }) => name);

  /** Any process may answer, and each has its list from its last heartbeat. */
  async function allKnow(): Promise<void> {
    for (let times = 0; times < 20; ) {
      times = (await up()).length === 3 ? times + 1 : 0;
      if (times === 0) await sleep(100);
    }
  }

  test('share the port, and pass on what the host node has', async () => {
    assert.deepEqual((await up()).sort(), ['host', 'host-worker-1', 'host-worker-2']);
    const answered = new Set<string>();
    while (answered.size < 3) {
      for (const { name, is_this } of await json<Node[]>('/api/admin/nodes')) if (is_this) answered.add(name);
    }
    for (let i = 0; i < 12; i++) {
      await json('/api/buckets', { method: 'POST', body: JSON.stringify({ name: `bucket-${i}` }) });
      assert.equal((await json<unknown[]>('/api/buckets')).length, i + 1);
      await json('/api/databases');
    }
  });

  test('are started again when they are killed, and end with the process that started them', async () => {
    const pids = workersOf(cloud.pid);
    assert.equal(pids.length, 2);
    process.kill(pids[0] as number, 'SIGKILL');
    while (workersOf(cloud.pid).filter((pid) => !pids.includes(pid)).length === 0) await sleep(100);
    await allKnow();
    const last = workersOf(cloud.pid);
    assert.equal(await cloud.end(), 0);
    assert.deepEqual(last.filter(isRunning), []);
  });
});

test('workers end with a process that is killed', { skip: noCluster }, async () => {
  const cluster = await Cluster.start(1, await withWorkers());
  const [cloud] = cluster.nodes as [CloudProcess];
  while (workersOf(cloud.pid).length < 2) await sleep(100);
  const pids = workersOf(cloud.pid);
  // Only this process: processes that it started must notice by themselves.
  process.kill(cloud.pid, 'SIGKILL');
  try {
    await eventually('all workers have ended', () => pids.every((pid) => !isRunning(pid)));
  } finally {
    for (const pid of pids) if (isRunning(pid)) process.kill(pid, 'SIGKILL');
    await cluster.stop();
  }
});

async function withWorkers(): Promise<Readonly<Record<string, string>>> {
  return {
    CLOUDLET_WORKERS: '2',
    CLOUDLET_NODE_URL: `http://127.0.0.1:${await freePort()}`,
    CLOUDLET_DATA_PORT: String(await freePort()),
  };
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function workersOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return text
    .split(' ')
    .map(Number)
    .filter((child) => child > 0 && readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('--worker'));
}
