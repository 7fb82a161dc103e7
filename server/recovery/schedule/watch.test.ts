import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Alarms } from '../../platform/alarms.ts';
import { FakeClock } from '../../platform/clock.ts';
import type { LogReport } from '../logs/log-verification.ts';
import type { RecoverySummary } from '../summary-store.ts';
import { defaultSchedule } from './schedule.ts';
import { NO_PROGRESS } from './schedule-store.ts';
import type { Planned } from './scheduler.ts';
import { RecoveryWatch, type TargetFact } from './watch.ts';

const DAY_MS = 86_400_000;
const NOTHING: RecoverySummary = {
  points: 0,
  damaged: 0,
  newest_at: null,
  oldest_at: null,
  verified_at: null,
  drilled_at: null,
  failed_at: null,
  failed_reason: null,
  newest_id: null,
  newest_gaps: null,
  latest_id: null,
  latest_at: null,
  latest_gaps: null,
};
const DAILY: Planned = { schedule: defaultSchedule(true), isDefault: true, progress: NO_PROGRESS };
const ELSEWHERE: TargetFact = { isOnDataDisk: false, freeBytes: 7, repositoryId: 'r' };

function open(probe: () => Promise<TargetFact>) {
  const clock = new FakeClock();
  const alarms = new Alarms(clock);
  const state = { summary: NOTHING, isKeyTaken: true, planned: DAILY, logs: null as LogReport | null };
  const told: string[][] = [];
  const watch = new RecoveryWatch({
    summaries: { of: async () => state.summary, logs: async () => state.logs },
    store: { isKeyTaken: async () => state.isKeyTaken },
    clock,
    alarms,
    planned: async () => state.planned,
    drillMs: 7 * DAY_MS,
    tell: async (all) => void told.push(all.map(({ code }) => code)),
    probe,
    location: '/mnt/points',
  });
  const codes = () => alarms.list().map(({ code }) => code);
  const warnings = async () => (await watch.read()).warnings.map(({ code }) => code);
  return { clock, alarms, state, watch, codes, warnings, told };
}

test('what would be in the way of a restore is a warning with its fix, and no alarm', async () => {
  const target = { fact: { ...ELSEWHERE, isOnDataDisk: true } };
  const { clock, state, watch, codes, warnings } = open(async () => target.fact);
  state.isKeyTaken = false;
  assert.deepEqual(
    await warnings(),
    ['no_recovery_point'],
    'nothing is said of a target before the first check',
  );
  await watch.check();
  state.summary = { ...NOTHING, points: 1, newest_at: clock.now() };
  assert.deepEqual(await warnings(), ['recovery_key_not_taken', 'recovery_target_on_data_disk']);
  state.isKeyTaken = true;
  target.fact = ELSEWHERE;
  await watch.check();
  assert.deepEqual(await warnings(), []);
  state.planned = { ...DAILY, schedule: defaultSchedule(false) };
  assert.deepEqual(await warnings(), ['recovery_schedule_off']);
  state.planned = DAILY;
  clock.advance(9 * DAY_MS);
  const { warnings: old, newest_age_seconds: age } = await watch.read();
  assert.deepEqual(old, [
    {
      code: 'recovery_point_old',
      detail: 'The newest recovery point is 9 days old',
      fix: 'cloudlet recovery create',
    },
  ]);
  assert.equal(age, 9 * 86_400);
  assert.deepEqual(codes(), []);
});

test('a target that cannot be used is an alarm until it can', async () => {
  const target: { problem: Error | null } = { problem: new Error('EACCES: permission denied') };
  const { watch, alarms, codes } = open(async () => {
    if (target.problem) throw target.problem;
    return ELSEWHERE;
  });
  await watch.check();
  assert.deepEqual(codes(), ['recovery_target_unavailable']);
  assert.match(String(alarms.list()[0]?.detail), /\/mnt\/points is unavailable: EACCES/);
  assert.equal((await watch.read()).free_bytes, null);
  target.problem = null;
  await watch.check();
  assert.deepEqual(codes(), []);
  assert.equal((await watch.read()).free_bytes, 7);
});

test('a target that does not answer is not waited for, and asked once', async (t: TestContext) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let probes = 0;
  let answer = (_: TargetFact) => {};
  const { watch, codes } = open(() => {
    probes++;
    return new Promise((resolve) => {
      answer = resolve;
    });
  });
  for (let i = 0; i < 2; i++) {
    const probing = watch.check();
    t.mock.timers.tick(5000);
    await probing;
    assert.deepEqual(codes(), ['recovery_target_unavailable']);
  }
  assert.equal(probes, 1);
  const probing = watch.check();
  answer(ELSEWHERE);
  await probing;
  assert.deepEqual(codes(), []);
});

test('a point that failed is an alarm until the next one is whole, and so is one that is damaged', async () => {
  const { clock, state, watch, alarms, codes } = open(async () => ELSEWHERE);
  const at = clock.now();
  state.summary = {
    ...NOTHING,
    points: 2,
    newest_at: at,
    damaged: 1,
    failed_at: at,
    failed_reason: 'It is full',
  };
  await watch.check();
  assert.deepEqual(codes(), ['recovery_point_failed', 'recovery_points_damaged']);
  assert.equal(alarms.list()[0]?.detail, 'The last recovery point failed: It is full');
  assert.deepEqual((await watch.read()).last_failure, { at: '2026-01-01 00:00:00', reason: 'It is full' });
  const gaps = JSON.stringify([{ component: 'database shop (db-1)', reason: 'it was locked' }]);
  state.summary = { ...NOTHING, points: 2, newest_at: at, newest_gaps: gaps };
  await watch.check();
  assert.deepEqual(codes(), ['recovery_point_partial']);
  assert.equal(alarms.list()[0]?.detail, 'The newest recovery point is missing database shop (db-1)');
  state.summary = { ...NOTHING, points: 3, newest_at: at };
  await watch.check();
  assert.deepEqual(codes(), []);
  assert.equal(watch.figures().points, 3);
});

test('a schedule that fails or is late is an alarm until a point is made, and webhooks are told', async () => {
  const { clock, state, watch, alarms, codes, told } = open(async () => ELSEWHERE);
  const schedule = defaultSchedule(true);
  const latest = (at: number) => ({
    points: 1,
    newest_at: at,
    latest_id: 'drp-1',
    latest_at: at,
    latest_gaps: '[]',
  });
  state.summary = { ...NOTHING, ...latest(clock.now()) };
  state.planned = { ...DAILY, schedule, progress: { ...NO_PROGRESS, nextAt: clock.now() + DAY_MS } };
  clock.advance(2 * DAY_MS);
  await watch.check();
  assert.deepEqual(codes(), []);
  assert.deepEqual((await watch.read()).latest, {
    point_id: 'drp-1',
    created_at: '2026-01-01 00:00:00',
    age_seconds: 2 * 86_400,
    gaps: 0,
  });
  clock.advance(1);
  const failed = { failures: 2, failedReason: 'It is full', nextAt: clock.now() + 60_000 };
  state.planned = {
    ...DAILY,
    schedule,
    progress: { ...NO_PROGRESS, ...failed, retentionFailure: 'It is gone' },
  };
  state.summary = { ...state.summary, failed_at: clock.now(), failed_reason: 'It is full' };
  await watch.check();
  const all = ['recovery_schedule_failed', 'recovery_retention_failed', 'recovery_point_overdue'];
  assert.deepEqual(codes(), all);
  assert.deepEqual(
    alarms.list().map(({ detail }) => detail),
    [
      'The scheduled recovery point failed 2 times: It is full. The next attempt is at 2026-01-03 00:01:00 UTC',
      'Recovery points that no keep rule keeps could not be deleted: It is gone',
      'The newest usable recovery point is 2 days old, but the schedule is daily',
    ],
  );
  assert.equal(watch.figures().latestAgeSeconds, 2 * 86_400 + 0.001);
  state.planned = { ...DAILY, schedule };
  state.summary = { ...NOTHING, ...latest(clock.now()) };
  await watch.check();
  assert.deepEqual(codes(), []);
  assert.deepEqual(told, [[], all, []]);
});

test('a drill that is a day late is an alarm until one passes', async () => {
  const { clock, state, watch, alarms, codes } = open(async () => ELSEWHERE);
  await watch.check();
  assert.deepEqual(codes(), [], 'without a point there is nothing to drill');
  state.summary = { ...NOTHING, points: 1, newest_at: clock.now(), oldest_at: clock.now() };
  clock.advance(DAY_MS);
  await watch.check();
  assert.deepEqual(codes(), []);
  clock.advance(1);
  await watch.check();
  assert.deepEqual(codes(), ['recovery_drill_overdue']);
  assert.equal(alarms.list()[0]?.detail, 'No recovery point has passed a restore drill yet');
  state.summary = { ...state.summary, drilled_at: clock.now() };
  clock.advance(8 * DAY_MS);
  await watch.check();
  assert.deepEqual(codes(), []);
  clock.advance(DAY_MS);
  await watch.check();
  assert.equal(alarms.list()[0]?.detail, 'No recovery point has passed a restore drill for 9 days');
  state.summary = { ...state.summary, drilled_at: clock.now() };
  await watch.check();
  assert.deepEqual(codes(), []);
});

test('a check that the end of the cloud overtakes is no failure', async () => {
  const probing = Promise.withResolvers<TargetFact>();
  const { watch, state } = open(() => probing.promise);
  const checking = watch.check();
  watch.close();
  Object.defineProperty(state, 'summary', {
    get: () => {
      throw new Error('The metadata store is closed');
    },
  });
  probing.resolve(ELSEWHERE);
  await checking;
  await watch.check();
});

test('damaged archived logs are an alarm until a verification finds them intact', async () => {
  const { state, watch, codes, told } = open(async () => ELSEWHERE);
  const sound = { at: 0, servers: 1, bases: 1, parts: 3, bytes: 9, unread: 0, damage: [], damagedFiles: 0 };
  state.logs = sound;
  await watch.check();
  assert.deepEqual(codes(), []);
  state.logs = { ...sound, damagedFiles: 2 };
  await watch.check();
  assert.deepEqual([codes(), told.at(-1)], [['recovery_logs_damaged'], ['recovery_logs_damaged']]);
  state.logs = sound;
  await watch.check();
  assert.deepEqual(codes(), []);
});
