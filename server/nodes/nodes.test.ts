import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../platform/clock.ts';
import { ALONE, type NodeView } from '../platform/membership.ts';
import { Nodes } from './nodes.ts';

const NODE: NodeView = {
  nodeId: 'nod-1',
  runId: 'run-1',
  name: 'one',
  url: 'http://one:8080',
  version: '1.2.3',
  isHost: true,
  state: 'up',
  startedAt: 0,
  beatAgeMs: 400,
  leases: ['job:a'],
  alarms: [],
  load: null,
  ports: null,
  portsSeen: null,
  passed: [],
};
const LOAD = { uptimeSeconds: 7, cpu: 1, memory: 2, residentBytes: 3 };

function open(others: readonly Partial<NodeView>[]) {
  const nodes = [NODE, ...others.map((other) => ({ ...NODE, isHost: false, ...other }))];
  const changed: string[] = [];
  const membership = {
    ...ALONE,
    runId: 'run-1',
    isShared: true,
    nodes: () => nodes,
    change: async (nodeId: string, to: string) => changed.push(`${nodeId} ${to}`) > 0,
  };
  const clock = new FakeClock();
  const deps = { clock, version: '1.2.3', hostName: 'h', load: () => LOAD };
  return {
    nodes: new Nodes({ ...deps, membership }),
    alone: new Nodes({ ...deps, membership: ALONE }),
    changed,
  };
}

test('a cloud of one process lists itself, and says what a cluster needs', async () => {
  const { alone } = open([]);
  const [only, ...more] = alone.list();
  assert.deepEqual(more, []);
  const { node_id: id, url, role, state, is_this: isThis, load } = only ?? {};
  assert.deepEqual(
    [id, url, role, state, isThis, load?.uptime_seconds],
    ['self', null, 'host', 'up', true, 7],
  );
  const refusal = { code: 'not_a_cluster', hint: /CLOUDLET_NODE_URL/ };
  await assert.rejects(alone.change('self', 'drained'), refusal);
  await assert.rejects(alone.forget('self'), refusal);
});

test('a node is named by its id, and the one that answers by self', async () => {
  const { nodes, changed } = open([{ nodeId: 'nod-2', runId: 'run-2' }]);
  assert.equal((await nodes.change('self', 'drained')).node_id, 'nod-1');
  assert.equal((await nodes.change('nod-2', 'resumed')).is_this, false);
  await assert.rejects(nodes.change('nod-3', 'drained'), { code: 'node_not_found' });
  assert.deepEqual(changed, ['nod-1 drained', 'nod-2 resumed']);
});

test('front nodes that have been away for a day are forgotten, and the host never', async () => {
  const away = { state: 'lost', beatAgeMs: 25 * 3_600_000 } as const;
  const { nodes, changed } = open([
    { nodeId: 'nod-2', runId: 'run-2', ...away },
    { nodeId: 'nod-3', runId: 'run-3', ...away, state: 'left' },
    { nodeId: 'nod-4', runId: 'run-4', ...away, beatAgeMs: 23 * 3_600_000 },
    { nodeId: 'nod-5', runId: 'run-5', ...away, isHost: true },
    { nodeId: 'nod-6', runId: 'run-6', ...away, state: 'up' },
  ]);
  await nodes.forgetOld();
  assert.deepEqual(changed, ['nod-2 forgotten', 'nod-3 forgotten']);
});

test('the last node that is up is not drained', async () => {
  const { nodes, changed } = open([
    { nodeId: 'nod-2', runId: 'run-2', state: 'draining' },
    { nodeId: 'nod-3', runId: 'run-3', state: 'lost' },
    { nodeId: 'nod-4', runId: 'run-4', beatAgeMs: 5000 },
  ]);
  await assert.rejects(nodes.change('nod-1', 'drained'), {
    code: 'node_invalid_state',
    message: /last node that is up: one is up/,
  });
  assert.deepEqual(changed, []);
});
