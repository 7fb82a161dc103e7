import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import type { SqliteMetadata } from '../../drivers/metadata-sqlite/sqlite-metadata.ts';
import { BACKGROUND, Changes } from '../../metadata/change.ts';
import { Alarms } from '../../platform/alarms.ts';
import { FakeClock, formatTimeOrNull, readTime, systemClock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { openTestMetadata } from '../../testing/new-metadata.ts';
import type { Points } from '../points/points.ts';
import { type PointState, RecoveryStore } from '../store.ts';
import { DAY_MS, HOUR_MS } from './schedule.ts';
import { ScheduleStore } from './schedule-store.ts';
import { Scheduler } from './scheduler.ts';

const TARGET = '/mnt/points';
const MINUTE_MS = 60_000;
const directory = mkdtempSync(join(tmpdir(), 'cloudlet-scheduler-'));

let metadata: SqliteMetadata;
let cloud: ReturnType<typeof open>;
before(async () => {
  metadata = await openTestMetadata({ directory, clock: systemClock, alarms: new Alarms(systemClock) });
});
beforeEach(async () => {
  await metadata.commit([
    { sql: 'DELETE FROM recovery_points', params: [] },
    { sql: "DELETE FROM settings WHERE name LIKE 'recovery_%'", params: [] },
  ]);
  cloud = open();
});
after(async () => {
  await metadata.close();
  rmSync(directory, { recursive: true });
});

/** Points that begin and end under the control of the test; their rows are real. */
function open(isTargetSet = true) {
  const clock = new FakeClock(readTime('now', '2026-11-26 12:00:00'));
  const changes = new Changes({ metadata });
  const rows = new RecoveryStore(metadata);
  const said: { refusal: AppError | null; making: string | null; retention: Error | null } = {
    refusal: null,
    making: null,
    retention: null,
  };
  const begun: { id: string; scheduledAt: string | null; storesAtMost: number | undefined }[] = [];
  let applied = 0;
  const points: Pick<Points, 'create' | 'making'> = {
    get making() {
      return said.making;
    },
    create: async (_call, { scheduledAt = null, storesAtMost } = {}) => {
      if (said.refusal !== null) throw said.refusal;
      assert.equal(said.making, null, 'two at once');
      const id = `drp-${begun.length + 1}`;
      const facts = { created_at: clock.now(), scheduled_at: scheduledAt, contents: '{}' };
      await changes.store([rows.insert({ point_id: id, target: TARGET, ...facts })]);
      begun.push({ id, scheduledAt: formatTimeOrNull(scheduledAt), storesAtMost });
      said.making = id;
      return { point_id: id } as Awaited<ReturnType<Points['create']>>;
    },
  };
  const start = () => {
    const scheduler = new Scheduler({
      store: new ScheduleStore(metadata),
      rows,
      changes,
      clock,
      points,
      retention: {
        apply: async () => {
          if (said.retention !== null) throw said.retention;
          applied++;
        },
      },
      location: TARGET,
      isTargetSet,
      freeBytes: async () => 1001,
      onError: () => {},
    });
    scheduler.start();
    return scheduler;
  };
  const made = { scheduler: start() };
  /** The point in progress ends. */
  const end = async (state: PointState, reason: string | null = null) => {
    const row = await rows.find(String(said.making));
    assert.ok(row);
    const ended = { ...row, state, reason, completed_at: state === 'complete' ? clock.now() : null };
    await changes.store([rows.update(ended)]);
    said.making = null;
    await made.scheduler.tick();
  };
  /** Ticks every minute for this time; resolves with the number of points that began. */
  const wait = async (ms: number) => {
    const before = begun.length;
    for (let left = ms; left > 0; left -= MINUTE_MS) {
      clock.advance(MINUTE_MS);
      await made.scheduler.tick();
    }
    return begun.length - before;
  };
  const progress = async () => (await made.scheduler.read()).progress;
  return {
    clock,
    said,
    begun,
    end,
    wait,
    progress,
    made,
    restart: () => {
      made.scheduler.close();
      made.scheduler = start();
    },
    applied: () => applied,
  };
}

test('the first point comes ten minutes after the first start, the next ones at their time', async () => {
  const { wait, end, begun, applied, progress } = cloud;
  assert.equal(await wait(10 * MINUTE_MS), 0);
  assert.equal(await wait(MINUTE_MS), 1);
  assert.equal(await wait((3 * DAY_MS) / 2), 0, 'the first is still being made');
  await end('complete');
  assert.equal(applied(), 1);
  assert.equal(formatTimeOrNull((await progress()).nextAt), '2026-11-28 03:00:00');
  assert.equal(await wait(3 * HOUR_MS), 1);
  assert.equal(begun[1]?.scheduledAt, '2026-11-28 03:00:00');
});

test('times that were missed are made up once', async () => {
  const { wait, end, begun, clock, restart } = cloud;
  await wait(11 * MINUTE_MS);
  await end('complete');
  clock.advance(5 * DAY_MS);
  restart();
  assert.equal(await wait(MINUTE_MS), 1);
  assert.equal(begun[1]?.scheduledAt, '2026-11-27 03:00:00');
  await end('complete');
  assert.equal(await wait(14 * HOUR_MS), 0);
  assert.equal(await wait(HOUR_MS), 1);
  assert.equal(begun[2]?.scheduledAt, '2026-12-02 03:00:00');
});

test('a failure is tried again, each time later, and at most an hour later', async () => {
  const { wait, end, begun, progress, clock, applied } = cloud;
  await wait(11 * MINUTE_MS);
  const waits = [1, 2, 4, 8, 16, 32, 60, 60].map((minutes) => minutes * MINUTE_MS);
  for (const [failed, ms] of waits.entries()) {
    await end('failed', 'It is full');
    const { failures, failedReason, nextAt } = await progress();
    assert.deepEqual([failures, failedReason, nextAt], [failed + 1, 'It is full', clock.now() + ms]);
    assert.equal(await wait(ms), 1);
  }
  assert.equal(applied(), 0, 'nothing is removed while no point is made');
  assert.deepEqual(new Set(begun.map(({ scheduledAt }) => scheduledAt)), new Set([begun[0]?.scheduledAt]));
  await end('complete');
  const { failures, failedReason } = await progress();
  assert.deepEqual([failures, failedReason, applied()], [0, null, 1]);
});

test('a target that refuses counts as a failure; a point that somebody else makes is waited for', async () => {
  const { wait, said, progress, begun, end } = cloud;
  said.refusal = new AppError('target_in_use', 'Another Cloudlet is writing');
  await wait(20 * MINUTE_MS);
  assert.deepEqual(
    [(await progress()).failures, (await progress()).failedReason],
    [4, 'Another Cloudlet is writing'],
  );
  said.refusal = new AppError('point_in_progress', 'Another recovery point is being created');
  await wait(HOUR_MS);
  assert.equal((await progress()).failures, 4);
  said.refusal = null;
  said.making = 'drp-by-hand';
  assert.equal(await wait(HOUR_MS), 0);
  said.making = null;
  assert.equal(await wait(MINUTE_MS), 1);
  await end('cancelled');
  assert.equal(await wait(HOUR_MS), 0, 'whoever cancels it does not want it');
  assert.equal((await progress()).failures, 0);
  assert.equal(begun.length, 1);
});

test('a clock that is set back, or forward and back, delays nothing', async () => {
  const { wait, end, clock, begun } = cloud;
  await wait(11 * MINUTE_MS);
  await end('complete');
  clock.jump(400 * DAY_MS);
  assert.equal(await wait(MINUTE_MS), 1);
  await end('complete');
  clock.jump(-400 * DAY_MS);
  assert.equal(await wait(15 * HOUR_MS), 1);
  assert.equal(begun[2]?.scheduledAt, '2026-11-27 03:00:00');
});

test('a schedule that is set takes effect at once, and off means off', async () => {
  const { wait, end, made, progress } = cloud;
  await made.scheduler.set(
    BACKGROUND,
    { every: 'hourly', at: '00:15', keep: { last: 1 } },
    (planned) => planned,
  );
  await made.scheduler.tick();
  assert.notEqual((await progress()).pointId, null, 'there was no point yet');
  await end('complete');
  const { schedule } = await made.scheduler.read();
  assert.deepEqual(schedule.keep, { last: 1, hourly: 0, daily: 7, weekly: 4, monthly: 6 });
  assert.equal(await wait(15 * MINUTE_MS), 1);
  await made.scheduler.set(BACKGROUND, { every: 'off' }, (planned) => planned);
  await end('complete');
  assert.equal(await wait(3 * HOUR_MS), 0);
});

test('where nobody has asked for it nothing is made, and then it may take half of the free space', async () => {
  const own = open(false);
  assert.equal(await own.wait(2 * DAY_MS), 0);
  await own.made.scheduler.set(BACKGROUND, { every: 'daily' }, (planned) => planned);
  await own.made.scheduler.tick();
  assert.deepEqual(
    own.begun.map(({ storesAtMost }) => storesAtMost),
    [500],
  );
});

test('before the server starts, and after it stops, nothing is made', async () => {
  const { made, clock, begun } = cloud;
  made.scheduler.close();
  await made.scheduler.set(BACKGROUND, { every: 'hourly' }, (planned) => planned);
  clock.advance(DAY_MS);
  await made.scheduler.tick();
  assert.deepEqual(begun, []);
});

test('points that could not be deleted are tried again hourly, and that is known until then', async () => {
  const { wait, end, said, progress, applied, restart } = cloud;
  said.retention = new AppError('target_in_use', 'Another Cloudlet is writing');
  await wait(11 * MINUTE_MS);
  await end('complete');
  assert.equal((await progress()).retentionFailure, 'Another Cloudlet is writing');
  await wait(2 * HOUR_MS);
  assert.equal((await progress()).retentionFailure, 'Another Cloudlet is writing');
  said.retention = null;
  restart();
  await wait(MINUTE_MS);
  assert.deepEqual([(await progress()).retentionFailure, applied()], [null, 1]);
});
