import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { NodeView } from '../platform/membership.ts';
import { portsIn } from '../platform/port-ranges.ts';
import { OfferedPorts } from './offered-ports.ts';

const PORT = { protocol: 'postgresql', addresses: ['*'], take: () => {} };

const front = (runId: string, more: Partial<NodeView> = {}): NodeView => ({
  nodeId: `nod-${runId}`,
  runId,
  name: runId,
  url: 'http://127.0.0.1:1',
  version: '1.0.0',
  isHost: false,
  state: 'up',
  startedAt: 0,
  beatAgeMs: 100,
  leases: [],
  alarms: [],
  load: null,
  ports: null,
  portsSeen: 0,
  passed: [],
  ...more,
});

/** A host; `meet` passes it the fronts of a heartbeat. */
function open(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const raised = new Map<string, string>();
  const listeners = new Set<() => void>();
  let nodes: readonly NodeView[] = [];
  let hurries = 0;
  const ports = new OfferedPorts({
    membership: {
      nodes: () => nodes,
      onNews: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      hurry: () => {
        hurries++;
      },
    },
    clock: { now: () => 1000 },
    alarms: { raise: (code, detail) => raised.set(code, detail), clear: (code) => raised.delete(code) },
  });
  const meet = (...fronts: readonly NodeView[]) => {
    nodes = fronts;
    for (const listener of listeners) listener();
  };
  const isOver = async (waiting: Promise<void>) => {
    const undone = new Promise((resolve) => setImmediate(resolve, 'waits'));
    return (await Promise.race([waiting, undone])) !== 'waits';
  };
  return { ports, meet, isOver, raised, listeners, hurries: () => hurries };
}

test('a port is everywhere once each front that lives has it', async (t) => {
  const { ports, meet, isOver, listeners, hurries } = open(t);
  meet(front('a'), front('b'));
  ports.offer(25_432, PORT);
  assert.equal(hurries(), 1);
  const { version = 0 } = ports.told();
  const waiting = ports.everywhere();
  meet(front('a', { portsSeen: version }), front('b'));
  assert.equal(await isOver(waiting), false);
  meet(front('a', { portsSeen: version }), front('b', { portsSeen: version }));
  assert.equal(await isOver(waiting), true);
  assert.equal(listeners.size, 0);
  assert.equal(await isOver(ports.everywhere()), true);
  ports.offer(25_433, PORT);
  assert.equal(await isOver(ports.everywhere()), false);
});

test('nobody waits for the host, for who is silent, leaves, or does not say what it has', async (t) => {
  const { ports, meet, isOver } = open(t);
  ports.offer(25_432, PORT);
  meet(
    front('a', { isHost: true }),
    front('b', { beatAgeMs: 5000 }),
    front('c', { state: 'draining' }),
    front('d', { portsSeen: null }),
  );
  assert.equal(await isOver(ports.everywhere()), true);
});

test('a front that does not follow holds up one call, until it has caught up', async (t) => {
  const { ports, meet, isOver } = open(t);
  meet(front('a'));
  ports.offer(25_432, PORT);
  const { version = 0 } = ports.told();
  const waiting = ports.everywhere();
  t.mock.timers.tick(2900);
  assert.equal(await isOver(waiting), false);
  t.mock.timers.tick(200);
  assert.equal(await isOver(waiting), true);
  ports.offer(25_433, PORT);
  assert.equal(await isOver(ports.everywhere()), true, 'it is late');
  meet(front('a', { portsSeen: version }));
  assert.equal(await isOver(ports.everywhere()), false, 'it has caught up');
});

test('ports beyond 8 KiB are not told, which an alarm says, and none of them is cut in two', (t) => {
  const { ports, raised } = open(t);
  const all = Array.from({ length: 3000 }, (_, i) => 30_000 + 2 * i);
  for (const port of all) ports.offer(port, { ...PORT, protocol: 'tcp' });
  ports.offer(25_432, PORT);
  const { of } = ports.told();
  assert.equal(of.postgresql, '25432');
  const kept = portsIn(of.tcp ?? '');
  assert.ok(kept.length > 1000 && kept.length < 3000);
  assert.deepEqual(kept, all.slice(0, kept.length));
  const missing = `${3000 - kept.length} ports .* such as ${all[kept.length]}, are open only at the host node`;
  assert.match(raised.get('ports_not_told') ?? '', new RegExp(missing));
  for (const port of all.slice(1000)) ports.withdraw(port);
  assert.deepEqual(portsIn(ports.told().of.tcp ?? ''), all.slice(0, 1000));
  assert.equal(raised.size, 0);
});
