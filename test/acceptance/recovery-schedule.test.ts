/** Scheduled recovery points, and their removal by keep rules. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { runCloudlet } from '../harness/command.ts';
import { eventually } from '../harness/waiting.ts';
import { FAKED_CLOCK, noFakedClock } from './faked-clock.ts';
import { LosableCloud, POINTS } from './recovery-kit.ts';

const SCHEDULE = '/api/disaster-recovery/schedule';
const RETENTION = '/api/disaster-recovery/retention';

interface Listed {
  readonly point_id: string;
  readonly state: string;
  readonly created_at: string;
  readonly scheduled_at: string | null;
}

let lost: LosableCloud;
let deletedByHand: string | undefined;
before(async () => {
  lost = await LosableCloud.start({}, 'default');
});
after(() => lost.end());

const patch = (json: object) => ({ method: 'PATCH', json });
const points = (): Promise<Listed[]> => lost.admin.expect(200, POINTS);
const gone = async () =>
  (await points()).filter((one) => one.state === 'deleting' && one.point_id !== deletedByHand);
const cli = (...words: readonly string[]) =>
  runCloudlet(['recovery', ...words, '--data-dir', lost.dataDir], { env: {} });
const standing = async () => (await points()).filter(({ state }) => state === 'complete');

/** The time `hours` from now. */
const later = (hours: number) => ({ ...FAKED_CLOCK, FAKETIME: `+${hours}h` });

test('a cloud with a target has one until somebody sets another', async () => {
  const schedule = await lost.admin.expect(200, SCHEDULE);
  assert.deepEqual([schedule.every, schedule.at, schedule.is_default], ['daily', '03:00', true]);
  assert.deepEqual(schedule.keep, { last: 0, hourly: 0, daily: 7, weekly: 4, monthly: 6 });
  assert.deepEqual([schedule.target, schedule.is_default_target], [lost.target, false]);
});

test('what cannot be is refused, all at once', async () => {
  const wrong = { every: 'yearly', at: '3:00', weekday: 'Sunday', keep: { daily: -1, yearly: 2 } };
  const { errors } = await lost.admin.refused(400, 'invalid_request', [SCHEDULE, patch(wrong)]);
  const fields = errors.map(
    ({ field, message }: { field: string; message: string }) => `${field} ${message}`,
  );
  assert.deepEqual(fields.sort(), [
    'at must be a time of day as HH:MM, UTC, such as 03:00',
    'every must be one of off, hourly, daily, weekly',
    'keep.daily must be from 0 to 1000',
    'keep.yearly is not a member of this call',
    'weekday must be one of sunday, monday, tuesday, wednesday, thursday, friday, saturday; did you mean sunday?',
  ]);
  const nothing = { keep: { daily: 0, weekly: 0, monthly: 0 } };
  const refused = await lost.admin.refused(400, 'invalid_request', [SCHEDULE, patch(nothing)]);
  assert.match(refused.detail, /keep: must keep at least one point: set one of last, hourly, /);
  await lost.admin.refused(400, 'invalid_request', [`${RETENTION}?daily=many`]);
  assert.equal((await lost.admin.expect(200, SCHEDULE)).is_default, true);
});

test('the command line shows it, sets it and turns it off', async () => {
  const shown = await cli('schedule');
  assert.match(
    shown.stdout,
    /^daily, at 03:00 UTC \(the default\), in \/.*\nkeeps 7 daily, 4 weekly, 6 monthly\n/,
  );
  const weekly = ['set', 'weekly', '--at', '04:30', '--weekday', 'monday', '--keep', 'last=2,weekly=5'];
  const set = await cli('schedule', ...weekly);
  assert.match(set.stdout, /^weekly, on monday at 04:30 UTC, in \/.*\nkeeps 2 last, 5 weekly\n/);
  const { every, weekday, keep } = await lost.admin.expect(200, SCHEDULE);
  assert.deepEqual([every, weekday, keep.last, keep.daily, keep.weekly], ['weekly', 'monday', 2, 0, 5]);
  await eventually('the first one is made', async () => (await standing()).length === 1);
  const preview = await cli('retention', '--preview', '--keep', 'daily=1');
  assert.match(preview.stdout, /^stays {2}drp-\w+ {2}\S+ \S+ {2}complete {2}daily, newest_complete\n/);
  assert.match(
    preview.stdout,
    /With 1 daily, 1 would be kept and 0 recovery points deleted after the next one\n$/,
  );
  assert.match((await cli('schedule', 'off')).stdout, /^No recovery points are created automatically\. /);
  assert.equal((await lost.admin.expect(200, SCHEDULE)).next_at, null);
  for (const words of [['set'], ['set', 'yearly'], ['on'], ['set', 'daily', '--keep', 'yearly=1']]) {
    assert.equal((await cli('schedule', ...words)).code, 2, words.join(' '));
  }
  const refused = await cli('schedule', 'set', 'daily', '--at', '25:00');
  assert.deepEqual([refused.code, refused.stdout], [1, '']);
  assert.match(refused.stderr, /at: must be a time of day as HH:MM, UTC, such as 03:00/);
  const [first] = await standing();
  deletedByHand = first?.point_id;
  await lost.admin.expect(200, `${POINTS}/${deletedByHand}`, { method: 'DELETE' });
});

test('points are created and removed without anybody', { skip: noFakedClock }, async () => {
  const keep = { last: 2, daily: 0, weekly: 0, monthly: 0 };
  const set = await lost.admin.expect(200, SCHEDULE, patch({ every: 'hourly', at: '00:30', keep }));
  assert.deepEqual([set.every, set.is_default, set.keep.last], ['hourly', false, 2]);
  // The first one is due immediately.
  await eventually('it is made', async () => (await standing()).length === 1);
  const byHand = await lost.point();
  assert.equal(byHand.scheduled_at, null);
  const ids: string[] = (await standing()).map(({ point_id: id }) => id);
  for (const hours of [2, 4, 6]) {
    await lost.startAgain(later(hours));
    const known = new Set((await points()).map(({ point_id: id }) => id));
    const made = await eventually('it is made up', async () => {
      return (await standing()).find(({ point_id: id }) => !known.has(id));
    });
    ids.push(made.point_id);
    assert.match(String(made.scheduled_at), /:30:00$/);
    const { next_at: next, last_point_id: last } = await eventually('it is noted', async () => {
      const found = await lost.admin.expect(200, SCHEDULE);
      return found.making_point_id === null && found;
    });
    assert.equal(last, made.point_id);
    assert.ok(next > made.created_at, 'once, whatever was missed');
  }
  await eventually('two are removed', async () => {
    return (await gone()).length === 2;
  });
  const [first, , second] = ids;
  assert.deepEqual(
    (await gone()).map(({ point_id: id }) => id),
    [first, second],
  );
  const { stays, goes } = await lost.admin.expect(200, RETENTION);
  assert.deepEqual(goes, []);
  const by = (id: string) => stays.find((one: { point_id: string }) => one.point_id === id)?.reasons;
  assert.deepEqual(by(byHand.point_id), ['by_hand']);
  assert.deepEqual(by(String(ids.at(-1))), ['last', 'newest_complete']);
  const preview = await lost.admin.expect(200, `${RETENTION}?last=1`);
  assert.deepEqual(
    preview.goes.map(({ point_id: id }: Listed) => id),
    [ids.at(-2)],
  );
  assert.equal((await standing()).length, 3, 'a preview removes nothing');
  // Stricter rules apply from the next point on, or immediately.
  await lost.admin.expect(200, SCHEDULE, patch({ keep: { ...keep, last: 1 } }));
  assert.equal((await standing()).length, 3);
  const applied = await lost.admin.expect(200, RETENTION, { method: 'POST' });
  assert.deepEqual(
    applied.goes.map(({ point_id: id }: Listed) => id),
    [ids.at(-2)],
  );
  assert.equal((await standing()).length, 2);
  assert.deepEqual((await lost.admin.expect(200, RETENTION, { method: 'POST' })).goes, []);
  // A removed point can be undeleted, and then stays.
  const back = await lost.admin.expect(200, `${POINTS}/${second}/undelete`, { method: 'POST' });
  assert.equal(back.scheduled_at, null);
  const again = await lost.admin.expect(200, `${RETENTION}?last=1`);
  assert.deepEqual(again.stays.find((one: Listed) => one.point_id === second).reasons, ['by_hand']);
});
