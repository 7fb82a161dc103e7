import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Alarms } from '../platform/alarms.ts';
import { FakeClock } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import { ALONE, type Membership, type NodeView } from '../platform/membership.ts';
import { type ComputeStatus, Status, type WithFailure } from './status.ts';

const SQLITE = {
  engine: 'sqlite',
  available: true,
  version: '3',
  source: 'built-in',
  reason: null,
  fix: null,
};
const METRICS = { cpu: 12.5, memory: 40, disk: null };

const ENGINE: ComputeStatus = {
  engine: 'qemu',
  isUsable: true,
  version: '7.2',
  accel: 'tcg',
  accelReason: 'no KVM',
  problem: '',
  fix: '',
};

interface TestRecovery extends WithFailure {
  readonly points: number;
}

const OPERATOR = { accountId: 0, seesAll: true };
const NOBODY = { accountId: 0, seesAll: false };

function open(
  engine: Partial<ComputeStatus> = {},
  own: {
    scrub?: () => Promise<{ running: boolean }>;
    recovery?: () => Promise<TestRecovery>;
    membership?: Membership;
    hasMachines?: () => Promise<boolean>;
  } = {},
) {
  const clock = new FakeClock();
  clock.advance(90_000);
  const alarms = new Alarms(clock);
  const scrub = async () => ({ running: false });
  const compute = async () => ({ ...ENGINE, ...engine });
  const databases = async () => [SQLITE, { ...SQLITE, engine: 'mysql' }];
  const version = '1.2.3';
  const recovery = async (): Promise<TestRecovery> => ({ points: 0 });
  const hasMachines = async () => true;
  const parts = { scrub, compute, hasMachines, databases, recovery, membership: ALONE, ...own };
  const stores = { metadata: 'postgresql', storage: 's3' } as const;
  const status = new Status({ clock, alarms, version, stores, metrics: () => METRICS, ...parts });
  return { clock, alarms, status };
}

test('without alarms all is well, and the time since the start is told', async () => {
  const { clock, status } = open();
  clock.advance(61_400);
  clock.jump(-3_600_000);
  assert.deepEqual(await status.read(OPERATOR), {
    status: 'ok',
    version: '1.2.3',
    uptime_seconds: 61,
    metrics: METRICS,
    components: {
      metadata: { status: 'ok', problem: null, fix: null, engine: 'postgresql' },
      storage: { status: 'ok', problem: null, fix: null, engine: 's3', scrub: { running: false } },
      billing: { status: 'ok', problem: null, fix: null },
      compute: {
        status: 'ok',
        engine: 'qemu',
        version: '7.2',
        accel: 'tcg',
        accel_reason: 'no KVM',
        preparing: null,
        problem: null,
        fix: null,
      },
      databases: {
        status: 'ok',
        problem: null,
        fix: null,
        engines: [SQLITE, { ...SQLITE, engine: 'mysql' }].map((one) => ({ ...one, preparing: null })),
      },
      recovery: { status: 'ok', problem: null, fix: null, points: 0 },
    },
    alarms: [],
  });
  assert.equal(status.whyNotReady(), undefined);
});

test('without an engine for machines the cloud is degraded, with the reason and the fix', async () => {
  const engine = { isUsable: false, problem: 'QEMU is not installed', fix: 'install it' };
  const { status, components } = await open(engine).status.read(OPERATOR);
  const { status: state, problem, fix } = components.compute;
  assert.deepEqual([status, state, problem, fix], ['degraded', 'unavailable', engine.problem, engine.fix]);
  assert.deepEqual(components.storage.status, 'ok');
});

test('without machines nobody misses their engine: the cloud is well, and the component says what is missing', async () => {
  const engine = { isUsable: false, problem: 'the built-in image has not been built', fix: 'build it' };
  const read = (hasMachines: () => Promise<boolean>) => open(engine, { hasMachines }).status.read(OPERATOR);
  const { status, components } = await read(async () => false);
  assert.equal(status, 'ok');
  const { status: state, problem, fix } = components.compute;
  assert.deepEqual([state, problem, fix], ['unavailable', engine.problem, engine.fix]);
  const unknown = await read(() => Promise.reject(new Error('the metadata are away')));
  assert.equal(unknown.status, 'degraded');
});

test('a usable engine with a weaker wall says so and is well', async () => {
  const { status, components } = await open({ problem: 'no nftables', fix: 'install them' }).status.read(
    OPERATOR,
  );
  assert.deepEqual([status, components.compute.status], ['ok', 'ok']);
  assert.equal(components.compute.problem, 'no nftables');
});

test('an alarm shows on its component, and on readiness only when nothing can be stored', async () => {
  const cases = [
    { code: 'metadata_write_failed', component: 'metadata', ready: false },
    { code: 'metadata_unreachable', component: 'metadata', ready: true },
    { code: 'metadata_read_only', component: 'metadata', ready: true },
    { code: 'metadata_taken_over', component: 'metadata', ready: false },
    { code: 'blob_fsync_failed', component: 'storage', ready: false },
    { code: 'damaged_objects', component: 'storage', ready: true },
    { code: 'blob_thread_died', component: 'storage', ready: true },
    { code: 'out_of_space', component: ['storage', 'databases'], ready: true },
    { code: 'billing_inconsistent', component: 'billing', ready: true },
    { code: 'machines_wait_for_room', component: 'compute', ready: true },
    { code: 'few_files_left', component: 'compute', ready: true },
    { code: 'damaged_databases', component: 'databases', ready: true },
    { code: 'mysql_unavailable', component: 'databases', ready: true },
    { code: 'mysql_port_taken', component: 'databases', ready: true },
    { code: 'unknown_unavailable', component: undefined, ready: true },
    { code: 'database_engine_unavailable', component: 'databases', ready: true },
    { code: 'recovery_point_failed', component: 'recovery', ready: true },
    { code: 'recovery_target_unavailable', component: 'recovery', ready: true },
    { code: 'something_else', component: undefined, ready: true },
  ];
  for (const { code, component, ready } of cases) {
    const { alarms, status } = open();
    alarms.raise(code, 'what happened', 'what to do');
    const { status: state, components, alarms: shown } = await status.read(OPERATOR);
    assert.equal(state, 'degraded');
    for (const [name, shownAs] of Object.entries(components)) {
      const isMeant = [component].flat().includes(name);
      const expected = isMeant ? ['degraded', 'what happened', 'what to do'] : ['ok', null, null];
      assert.deepEqual([shownAs.status, shownAs.problem, shownAs.fix], expected, `${code}: ${name}`);
    }
    const since = '2026-01-01 00:01:30';
    assert.deepEqual(shown, [{ code, detail: 'what happened', fix: 'what to do', since, node: null }]);
    assert.equal(status.whyNotReady() === undefined, ready, code);
    alarms.clear(code);
    assert.equal((await status.read(OPERATOR)).status, 'ok');
    assert.equal(status.whyNotReady(), undefined);
  }
});

test('it is ready once it serves, and not any more when it stops', () => {
  const { alarms, status } = open();
  const code = () => {
    try {
      status.assertReady();
      return 'ready';
    } catch (error) {
      return error instanceof AppError ? error.code : error;
    }
  };
  assert.equal(code(), 'starting');
  alarms.raise('blob_fsync_failed', 'EIO', 'check the disk');
  assert.equal(code(), 'starting');
  status.serve();
  assert.equal(code(), 'read_only');
  alarms.clear('blob_fsync_failed');
  assert.equal(code(), 'ready');
  status.leave();
  assert.equal(code(), 'shutting_down');
});

const OTHER: NodeView = {
  nodeId: 'nod-2',
  runId: 'run-2',
  name: 'front-1',
  url: 'http://front-1:8080',
  version: '1.2.3',
  isHost: false,
  state: 'up',
  startedAt: 0,
  beatAgeMs: 10,
  leases: [],
  alarms: [],
  load: null,
  ports: null,
  portsSeen: null,
  passed: [],
};
const OWN: NodeView = { ...OTHER, nodeId: 'nod-1', runId: 'run-1', name: 'host', isHost: true };

test('a node is not ready while it drains, is cut off from the database, or is stopped', () => {
  let [isDraining, isCurrent] = [false, true];
  const shared = { ...ALONE, runId: 'run-1', isShared: true };
  const membership = { ...shared, isDraining: () => isDraining, isCurrent: () => isCurrent };
  const { status } = open({}, { membership });
  status.serve();
  status.assertReady();
  isDraining = true;
  assert.throws(() => status.assertReady(), { code: 'draining' });
  [isDraining, isCurrent] = [false, false];
  assert.throws(() => status.assertReady(), { code: 'node_cut_off' });
  isCurrent = true;
  status.assertReady();
  status.leave();
  assert.throws(() => status.assertReady(), { code: 'draining', message: /being stopped/ });
});

test('alarms of all nodes that live are told, with the name of the node to administrators', async () => {
  const words = { detail: 'db-9 is damaged', fix: 'load it' };
  const about = { code: 'damaged_databases', since: '2026-01-01 00:00:00' };
  const told = { ...about, detail: 'db-8 and db-9', fix: 'load them', accounts: { 9: words } };
  const full = { code: 'out_of_space', detail: 'full', fix: 'free it', since: about.since };
  const lost: NodeView = { ...OTHER, runId: 'run-3', name: 'gone', state: 'lost', alarms: [full] };
  // The row about this node is older than its own knowledge.
  const nodes = [{ ...OWN, alarms: [full] }, { ...OTHER, alarms: [told, full] }, lost];
  const membership = { ...ALONE, runId: 'run-1', isShared: true, nodes: () => nodes };
  const { alarms, status } = open({}, { membership });
  alarms.raise('few_files_left', 'few', 'raise it');
  const { status: state, alarms: all, components } = await status.read(OPERATOR);
  assert.equal(state, 'degraded');
  assert.deepEqual(
    all.map(({ code, node }) => [code, node]),
    [
      ['few_files_left', 'host'],
      ['damaged_databases', 'front-1'],
      ['out_of_space', 'front-1'],
    ],
  );
  assert.equal(components.databases.problem, 'db-8 and db-9. full');
  const seen = await status.read({ accountId: 9, seesAll: false });
  assert.deepEqual(seen.alarms[1], { ...about, ...words, node: null });
  assert.doesNotMatch(JSON.stringify(await status.read(NOBODY)), /front-1|host"|db-/);
});

test('why writes are rejected is told: another Cloudlet is no disk error', () => {
  const { alarms, status } = open();
  alarms.raise('metadata_taken_over', 'The Cloudlet on b', 'stop it');
  assert.match(status.whyNotReady() ?? '', /^since another Cloudlet took over/);
  alarms.clear('metadata_taken_over');
  alarms.raise('blob_fsync_failed', 'EIO', 'check the disk');
  assert.equal(status.whyNotReady(), 'after a disk error');
});

test('while the metadata store is away, the status has what was read last, and other failures show', async () => {
  let failure: Error | null = null;
  const scrub = async () => {
    if (failure !== null) throw failure;
    return { running: true };
  };
  const { status } = open({}, { scrub });
  await status.read(OPERATOR);
  failure = new AppError('overloaded', 'The metadata store cannot be reached; nothing was stored');
  assert.deepEqual((await status.read(OPERATOR)).components.storage.scrub, { running: true });
  failure = new Error('a mistake');
  await assert.rejects(status.read(OPERATOR), /a mistake/);
});

test('an alarm that is raised again keeps its first moment and takes the new text', () => {
  const { clock, alarms } = open();
  alarms.raise('damaged_objects', 'one', 'wait');
  clock.advance(5000);
  alarms.raise('damaged_objects', 'two', 'act');
  const since = '2026-01-01 00:01:30';
  assert.deepEqual(alarms.list(), [{ code: 'damaged_objects', detail: 'two', fix: 'act', since }]);
});

test('words of alarms that concern accounts are told to these and to the operator, and the code to all', async () => {
  const { alarms, status } = open();
  const words = { detail: 'the server ended: FATAL: of my table', fix: 'mend it' };
  const of = new Map([[7, words]]);
  alarms.raise('postgresql_unavailable', { all: `account 7: ${words.detail}`, of }, 'mend it');
  alarms.raise('mongodb_login_damaged_db7', 'The log-in of db7 is damaged', 'rotate it');
  alarms.raise('damaged_databases', 'db-7: missing', 'load it');
  alarms.raise('recovery_schedule_failed', 'failed: the dump of shop', 'mend it');
  alarms.raise('out_of_space', 'the disk is full', 'free it');
  const seen = async (viewer: typeof NOBODY) => JSON.stringify(await status.read(viewer));
  for (const stranger of [NOBODY, { accountId: 8, seesAll: false }]) {
    const text = await seen(stranger);
    assert.doesNotMatch(text, /account 7|my table|db7|db-7|shop|mend it/);
    assert.match(text, /postgresql_unavailable.*damaged_databases.*the disk is full/);
  }
  const owner = await seen({ accountId: 7, seesAll: false });
  assert.match(owner, /"detail":"the server ended: FATAL: of my table","fix":"mend it"/);
  assert.doesNotMatch(owner, /db7|db-7|shop/);
  const all = await seen(OPERATOR);
  for (const word of ['account 7', 'my table', 'login_damaged_db7', 'db-7', 'shop'])
    assert.ok(all.includes(word), word);
});

test('why the last recovery point failed is for administrators', async () => {
  const failure = { at: '2026-01-01 00:00:00', reason: 'the dump of shop failed' };
  const { status } = open({}, { recovery: async () => ({ points: 0, last_failure: failure }) });
  const seen = async (viewer: typeof NOBODY) => (await status.read(viewer)).components.recovery.last_failure;
  assert.deepEqual(await seen(OPERATOR), failure);
  assert.deepEqual(await seen(NOBODY), { ...failure, reason: null });
});
