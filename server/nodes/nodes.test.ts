import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { BACKGROUND, Changes } from '../metadata/change.ts';
import type { Metadata, Statement } from '../metadata/metadata.ts';
import { Alarms } from '../platform/alarms.ts';
import { FakeClock } from '../platform/clock.ts';
import { ALONE, type NodeView } from '../platform/membership.ts';
import { openTestMetadata } from '../testing/new-metadata.ts';
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

const clock = new FakeClock();
const directory = mkdtempSync(join(tmpdir(), 'cloudlet-nodes-'));
let metadata: Metadata;
const commits: (readonly Statement[])[] = [];
before(async () => {
  metadata = await openTestMetadata({ directory, clock, alarms: new Alarms(clock) });
  const commit = metadata.commit.bind(metadata);
  metadata.commit = (statements) => {
    commits.push(statements);
    return commit(statements);
  };
});
after(async () => {
  await metadata.close();
  rmSync(directory, { recursive: true });
});

/** In the place of the rows of nodes, which are in PostgreSQL only. */
const note = (name: string) => ({
  sql: "INSERT INTO settings (name, value) VALUES (?, '') ON CONFLICT (name) DO UPDATE SET value = ''",
  params: [name],
});

function open(others: readonly Partial<NodeView>[]) {
  const nodes = [NODE, ...others.map((other) => ({ ...NODE, isHost: false, ...other }))];
  commits.length = 0;
  const membership = {
    ...ALONE,
    runId: 'run-1',
    isShared: true,
    nodes: () => nodes,
    changing: (nodeId: string, to: string) => ({ ...note(`${nodeId} ${to}`), expectChanges: 1 as const }),
  };
  const changes = new Changes({ metadata });
  const changed = () => commits.map(([first]) => first?.params[0]);
  const deps = { changes, clock, version: '1.2.3', hostName: 'h', load: () => LOAD };
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
  await assert.rejects(alone.change(BACKGROUND, 'self', 'drained'), refusal);
  await assert.rejects(alone.forget(BACKGROUND, 'self'), refusal);
});

test('a node is named by its id, and the one that answers by self', async () => {
  const { nodes, changed } = open([{ nodeId: 'nod-2', runId: 'run-2' }]);
  assert.equal((await nodes.change(BACKGROUND, 'self', 'drained')).node_id, 'nod-1');
  assert.equal((await nodes.change(BACKGROUND, 'nod-2', 'resumed')).is_this, false);
  await assert.rejects(nodes.change(BACKGROUND, 'nod-3', 'drained'), { code: 'node_not_found' });
  assert.deepEqual(changed(), ['nod-1 drained', 'nod-2 resumed']);
});

test('a change of a node is one commit with the entry of its call', async () => {
  const { nodes } = open([{ nodeId: 'nod-2', runId: 'run-2', state: 'left' }, { nodeId: 'nod-3' }]);
  const call = (name: string) => ({ record: () => [note(`entry of ${name}`)] });
  const answers = [
    await nodes.change(call('drain'), 'nod-3', 'drained'),
    await nodes.change(call('resume'), 'nod-3', 'resumed'),
    await nodes.forget(call('forget'), 'nod-2'),
  ];
  assert.deepEqual(
    answers.map(({ state }) => state),
    ['draining', 'up', 'left'],
  );
  assert.deepEqual(
    commits.map((statements) => statements.map(({ params }) => params[0])),
    [
      ['nod-3 drained', 'entry of drain'],
      ['nod-3 resumed', 'entry of resume'],
      ['nod-2 forgotten', 'entry of forget'],
    ],
  );
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
  assert.deepEqual(changed(), ['nod-2 forgotten', 'nod-3 forgotten']);
});

test('the last node that is up is not drained', async () => {
  const { nodes, changed } = open([
    { nodeId: 'nod-2', runId: 'run-2', state: 'draining' },
    { nodeId: 'nod-3', runId: 'run-3', state: 'lost' },
    { nodeId: 'nod-4', runId: 'run-4', beatAgeMs: 5000 },
  ]);
  await assert.rejects(nodes.change(BACKGROUND, 'nod-1', 'drained'), {
    code: 'node_invalid_state',
    message: /last node that is up: one is up/,
  });
  assert.deepEqual(changed(), []);
});
