import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { pino } from 'pino';
import { Alarms } from '../alarms.ts';
import { FakeClock } from '../clock.ts';
import { ALONE, type Membership, type NodeView } from '../membership.ts';
import { Jobs } from './jobs.ts';

function open() {
  const lines: { job?: string; msg: string }[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const alarms = new Alarms(new FakeClock());
  return { jobs: new Jobs({ log, membership: ALONE, alarms }), log, lines, alarms };
}

async function until(done: () => boolean): Promise<void> {
  for (let i = 0; i < 100_000 && !done(); i++) await turn();
  assert.ok(done(), 'it never came to that');
}

function every(jobs: Jobs, name: string, run: () => Promise<unknown>): void {
  jobs.start({ name, everyMs: 1, per: 'node', run });
}

test('a job runs again and again, and one that takes long never twice at once', async () => {
  const { jobs } = open();
  let runs = 0;
  let busy = 0;
  let release = () => {};
  every(jobs, 'slow', async () => {
    busy++;
    assert.equal(busy, 1);
    runs++;
    await new Promise<void>((resolve) => {
      release = resolve;
    });
    busy--;
  });
  let others = 0;
  every(jobs, 'quick', async () => ++others);
  await until(() => others >= 5 && runs === 1);
  assert.equal(runs, 1);
  release();
  await until(() => runs === 2);
  release();
  await jobs.stop();
});

test('a failure is logged with the name of the job, and the next run comes', async () => {
  const { jobs, lines } = open();
  let runs = 0;
  every(jobs, 'flaky', async () => {
    if (++runs === 1) throw new Error('this time not');
  });
  await until(() => runs >= 3);
  await jobs.stop();
  assert.deepEqual(
    lines.map(({ job }) => job),
    ['flaky'],
  );
});

test('stop waits for what runs, and nothing begins after it', async () => {
  const { jobs } = open();
  let runs = 0;
  let ended = false;
  let release = () => {};
  every(jobs, 'last', async () => {
    runs++;
    await new Promise<void>((resolve) => {
      release = resolve;
    });
    ended = true;
  });
  await until(() => runs === 1);
  const stopping = jobs.stop().then(() => assert.ok(ended, 'stopped before the job had ended'));
  await turn();
  release();
  await stopping;
  for (let i = 0; i < 1000; i++) await turn();
  assert.equal(runs, 1);
});

test('a job of the cluster runs only where its lease is, and one of the host only there', async () => {
  const leases = new Set<string>();
  const front = { ...ALONE, runId: 'run-1', isShared: true, isHost: false };
  const membership = { ...front, holds: async (lease: string) => leases.has(lease) };
  const jobs = new Jobs({ ...open(), membership });
  const runs = { cluster: 0, host: 0, node: 0 };
  const start = (per: keyof typeof runs) =>
    jobs.start({ name: per, everyMs: 1, per, run: async () => ++runs[per] });
  for (const per of ['cluster', 'host', 'node'] as const) start(per);
  await until(() => runs.node >= 3);
  assert.deepEqual({ ...runs, node: 0 }, { cluster: 0, host: 0, node: 0 });
  leases.add('job:cluster');
  await until(() => runs.cluster >= 2);
  assert.equal(runs.host, 0);
  await jobs.stop();
});

test('the alarms of a job stay until the next holder of its lease has had a turn', async () => {
  const { log, alarms } = open();
  let isHolder = true;
  let turns = 0;
  const holds = async () => {
    turns++;
    return isHolder;
  };
  const jobs = new Jobs({ log, alarms, membership: { ...ALONE, isShared: true, holds } });
  alarms.raise('of_this_node', 'x', 'y');
  const run = async () => alarms.raise('of_the_job', 'x', 'y');
  const codes = () => alarms.list().map(({ code }) => code);
  jobs.start({ name: 'check', everyMs: 1, per: 'cluster', raises: ['of_the_job'], run });
  await until(() => codes().length === 2);
  isHolder = false;
  turns = 0;
  await until(() => codes().length === 1);
  assert.ok(turns >= 2, `${turns}`);
  assert.deepEqual(codes(), ['of_this_node']);
  alarms.raise('of_the_job', 'by another way', 'y');
  turns = 0;
  await until(() => turns > 3);
  assert.equal(codes().length, 2);
  isHolder = true;
  await until(() => alarms.list().some(({ detail }) => detail === 'x'));
  await jobs.stop();
});

test('a job of the cluster that fails again and again is passed to another node', async () => {
  const { log, alarms, lines } = open();
  const passed: string[] = [];
  const pass = (lease: string) => void passed.push(lease);
  const jobs = new Jobs({ log, alarms, membership: { ...ALONE, isShared: true, pass } });
  let runs = 0;
  const run = async () => {
    runs++;
    if (runs !== 2 && runs < 7) throw new Error('S3 is away');
  };
  jobs.start({ name: 'sweep', everyMs: 1, per: 'cluster', run });
  await until(() => runs > 12);
  await jobs.stop();
  assert.equal(lines.length, 5);
  assert.deepEqual(passed, ['job:sweep'], 'after three in a row');
});

test('a job that this node cannot do now goes to another at once, which runs it at once', async () => {
  const { log, alarms } = open();
  const [passed, listeners] = [[] as string[], new Set<() => void>()];
  let nodes: readonly NodeView[] = [];
  const membership: Membership = {
    ...ALONE,
    isShared: true,
    runId: 'own',
    pass: (lease) => void passed.push(lease),
    nodes: () => nodes,
    onNews: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  const hear = (...heard: readonly Pick<NodeView, 'runId' | 'leases' | 'passed'>[]) => {
    nodes = heard as readonly NodeView[];
    for (const listener of listeners) listener();
  };
  const jobs = new Jobs({ log, alarms, membership });
  const state = { isAble: false, runs: 0 };
  const run = async () => state.runs++;
  jobs.start({ name: 'sweep', everyMs: 3_600_000, per: 'cluster', isAble: () => state.isAble, run });
  hear({ runId: 'own', leases: ['job:other'], passed: [] });
  assert.deepEqual(passed, [], 'it has no lease of it');
  hear({ runId: 'own', leases: ['job:sweep'], passed: [] });
  assert.deepEqual(passed, ['job:sweep']);
  const other = { runId: 'other', leases: [], passed: ['job:sweep'] };
  hear({ runId: 'own', leases: [], passed: ['job:sweep'] }, other);
  await turn();
  assert.equal(state.runs, 0, 'nobody can');
  state.isAble = true;
  hear({ runId: 'own', leases: [], passed: [] });
  hear({ runId: 'own', leases: [], passed: [] }, other);
  await until(() => state.runs === 1);
  hear({ runId: 'own', leases: ['job:sweep'], passed: [] }, other);
  await turn();
  assert.equal(state.runs, 1, 'from then on when it is due');
  await jobs.stop();
  assert.equal(listeners.size, 0);
});
