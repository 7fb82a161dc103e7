/**
 * Recovery points in an S3 with errors: a point is complete or has failed, and the cloud continues to work.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, beforeEach, test } from 'node:test';
import { type Fault, S3Fixture } from '../../server/testing/s3-fixture.ts';
import { LosableCloud, POINTS, POST } from '../acceptance/recovery-kit.ts';
import { eventually } from '../harness/waiting.ts';
import { chooseSeed, randomFrom, rounds } from './load.ts';

const MIB = 2 ** 20;
let s3: S3Fixture;
let lost: LosableCloud;

before(async () => {
  s3 = await S3Fixture.start();
  lost = await LosableCloud.start({ CLOUDLET_RECOVERY_TARGET: s3.url('points') });
  await lost.user.expect(201, '/api/buckets', { json: { name: 'files' } });
});
beforeEach(() => {
  s3.fault = () => undefined;
});
after(async () => {
  await lost.end();
  await s3.close();
});

/** Any error that a request may get. */
const FAULTS: readonly Fault[] = [
  { status: 500 },
  { status: 503, code: 'SlowDown' },
  { status: 403, code: 'RequestTimeTooSkewed' },
  { status: 403, code: 'AccessDenied' },
  'lose',
  'cut',
  'hurt',
  'hurt-upload',
];

test('faults at random: a point is whole, or has failed', async (t) => {
  const seed = chooseSeed();
  const random = randomFrom(seed);
  t.diagnostic(`FAULTS_SEED=${seed}`);
  await lost.point();
  const made: string[] = [];
  let failures = 0;
  for (let round = 0; round < rounds(8, 40); round++) {
    await lost.user.upload('files', `object ${round}`, randomBytes(2 * MIB));
    const [share, only] = [random() ** 2 * 0.4, random()];
    s3.fault = () => {
      if (round === 0) return { status: 403, code: 'AccessDenied' };
      if (random() > share) return undefined;
      return FAULTS[Math.floor((only < 0.5 ? only * 2 : random()) * FAULTS.length)];
    };
    const { status, body } = await lost.admin.call(`${POINTS}?wait=200`, POST);
    s3.fault = () => undefined;
    if (status === 201 && body.state === 'complete') made.push(body.point_id);
    else {
      failures++;
      const said = status === 201 ? body.state_reason : body.detail;
      assert.match(said, /s3:.*cannot be used|is writing|no longer available/, JSON.stringify(body));
      assert.ok(status === 503 || status === 409 || body.state === 'failed', JSON.stringify(body));
    }
    assert.equal((await lost.user.call('/api/buckets')).status, 200);
  }
  for (const id of made) {
    const { state, damage } = await lost.admin.expect(200, `${POINTS}/${id}/verify?wait=200`, POST);
    assert.equal(state, 'verified', JSON.stringify(damage));
  }
  const { damaged_points: damaged } = await lost.admin.expect(200, '/api/disaster-recovery/check', POST);
  assert.deepEqual(damaged, []);
  t.diagnostic(`${made.length} whole, ${failures} failed`);
  assert.ok(made.length > 0 && failures > 0);
});

const isThere = async (code: string) =>
  (await lost.admin.expect(200, '/api/system/status')).alarms.some(
    (alarm: { code: string }) => alarm.code === code,
  );

test('S3 is away: the cloud starts, works on, says so, and goes on when it is back', async () => {
  await s3.shut();
  try {
    await lost.startAgain();
    await eventually('the alarm', () => isThere('recovery_target_unavailable'));
    const { body } = await lost.user.upload('files', 'meanwhile', randomBytes(MIB));
    assert.equal((await lost.user.download(body.object_id)).length, MIB);
    await lost.admin.refused(503, 'target_unavailable', [POINTS, POST]);
    assert.ok((await lost.admin.expect(200, POINTS)).length > 0, 'points are listed all the same');
  } finally {
    await s3.open();
  }
  assert.equal((await lost.point()).state, 'complete');
  await eventually('the alarm is over', async () => !(await isThere('recovery_target_unavailable')));
});

test('S3 does not answer while a point is made: the cloud ends in time, and the next point is whole', async () => {
  await lost.user.upload('files', 'hanging', randomBytes(3 * MIB));
  s3.fault = ({ method, path }) => (method === 'PUT' && path.includes('/pieces/') ? 'hang' : undefined);
  const { point_id: id } = await lost.admin.expect(201, POINTS, POST);
  await eventually('a piece hangs', () => s3.seen.some(({ path }) => path.includes('/pieces/')));
  const began = performance.now();
  await lost.cloud.end();
  const seconds = (performance.now() - began) / 1000;
  s3.fault = () => undefined;
  await lost.startAgain();
  const { state } = await lost.admin.expect(200, `${POINTS}/${id}`);
  assert.ok(['cancelled', 'failed'].includes(state), state);
  assert.ok(seconds < 20, `the end took ${seconds} s`);
  assert.equal((await lost.point()).state, 'complete');
});
