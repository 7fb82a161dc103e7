import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ALONE, type NodeView } from '../platform/membership.ts';
import { computeElsewhere, databasesElsewhere } from './elsewhere.ts';

const nodesOf = (...nodes: readonly Partial<NodeView>[]) => ({
  ...ALONE,
  nodes: () => nodes as readonly NodeView[],
});
const host = { name: 'big', isHost: true, state: 'up' as const };

test('machines and databases are usable while the host node is there', () => {
  const membership = nodesOf({ name: 'front', isHost: false, state: 'up' }, host);
  const compute = computeElsewhere(membership, 'qemu');
  assert.deepEqual([compute.engine, compute.isUsable, compute.accelReason], ['qemu', true, 'on node big']);
  assert.deepEqual(databasesElsewhere(membership, ['sqlite']), [
    { engine: 'sqlite', available: true, version: null, source: 'node', reason: null, fix: null },
  ]);
});

test('they are not once it has left or was lost, and what to do is said', () => {
  for (const state of ['left', 'lost'] as const) {
    const membership = nodesOf({ ...host, state });
    const { isUsable, problem, fix } = computeElsewhere(membership, 'qemu');
    assert.equal(isUsable, false);
    assert.match(problem, /not reachable/);
    assert.match(fix, /Start it again/);
    const [database] = databasesElsewhere(membership, ['sqlite']);
    assert.deepEqual([database?.available, database?.reason, database?.fix], [false, problem, fix]);
  }
});
