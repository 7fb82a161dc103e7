/**
 * kill -9 while points are created, verified and removed: no incomplete one looks complete, and nothing
 * leaks.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { LosableCloud, POINTS, POST } from '../acceptance/recovery-kit.ts';
import { chooseSeed, randomFrom, rounds } from './load.ts';

const ROUNDS = rounds(10, 200);
const CHECK = '/api/disaster-recovery/check';
const DELETE = { method: 'DELETE' };

interface Point {
  readonly point_id: string;
  readonly state: string;
}

/** All points after a kill in this act. Each that looks complete is complete. */
async function statesAfter(act: string, { admin }: LosableCloud): Promise<string[]> {
  const points: Point[] = await admin.expect(200, POINTS);
  const ids = points.map(({ point_id: id }) => id).sort();
  for (const { point_id: id, state } of points) {
    assert.ok(['complete', 'verified', 'failed', 'deleting', 'creating'].includes(state), `${act}: ${state}`);
    if (state !== 'complete' && state !== 'verified') continue;
    // Only the removal of pieces can damage points other than the newest.
    if ((act === 'create' || act === 'verify') && id !== ids.at(-1)) continue;
    const { state: now, damage } = await admin.expect(200, `${POINTS}/${id}/verify?wait=100`, POST);
    assert.deepEqual([now, damage], ['verified', []], `after a kill in ${act} a point only seemed whole`);
  }
  return points.map(({ state }) => state);
}

test('kill -9 at random moments', async (t) => {
  const seed = chooseSeed();
  t.diagnostic(`FAULTS_SEED=${seed}`);
  const random = randomFrom(seed);
  const lost = await LosableCloud.start({ CLOUDLET_RECOVERY_UNDELETE_HOURS: '0' });
  t.after(() => lost.end());
  await lost.user.expect(201, '/api/buckets', { json: { name: 'files' } });
  const objects = new Map<string, Buffer>();
  const ends = new Map<string, number>();
  const listed = (): Promise<Point[]> => lost.admin.expect(200, POINTS);
  const create = () => lost.admin.call(POINTS, POST);
  const acts: [string, (point: Point | undefined) => Promise<unknown>][] = [
    ['create', create],
    ['verify', async (point) => point && lost.admin.call(`${POINTS}/${point.point_id}/verify`, POST)],
    ['delete', async (point) => point && lost.admin.call(`${POINTS}/${point.point_id}`, DELETE)],
    ['create', create],
    ['check', () => lost.admin.call(CHECK, POST)],
  ];
  await lost.point();
  await lost.keepKey();
  for (let round = 0; round < ROUNDS; round++) {
    const bytes = randomBytes(1_000_000);
    const { body } = await lost.user.upload('files', `file-${round}`, bytes);
    objects.set(body.object_id, bytes);
    const [name, act] = acts[round % acts.length] ?? ['', async () => {}];
    const points = await listed();
    const answered = act(points[Math.floor(random() * points.length)]).catch(() => {});
    if (random() < 0.7) await answered;
    await sleep(random() * 80);
    await lost.cloud.crash();
    await answered;
    await lost.startAgain();
    for (const state of await statesAfter(name, lost)) {
      ends.set(`${name}: ${state}`, (ends.get(`${name}: ${state}`) ?? 0) + 1);
    }
    assert.equal((await lost.point()).state, 'complete');
  }
  for (const [what, count] of ends) t.diagnostic(`after ${what} ${count} times`);
  // Remains of the killed ones are removed, but nothing that the last point needs.
  const last = await lost.point();
  for (const { point_id: id, state } of await listed()) {
    if (id === last.point_id) continue;
    const { status } = await lost.admin.call(`${POINTS}/${id}`, DELETE);
    // A point that was being deleted may be gone since the list was read, but no other.
    assert.ok(status === 200 || (state === 'deleting' && status === 404), `${id}, ${state}: ${status}`);
  }
  await lost.admin.expect(200, CHECK, POST);
  assert.deepEqual(await listed(), [await lost.admin.expect(200, `${POINTS}/${last.point_id}`)]);
  await lost.lose();
  for (const [id, bytes] of objects) assert.ok((await lost.user.download(id)).equals(bytes), id);
  await lost.startAgain({ CLOUDLET_RECOVERY_UNDELETE_HOURS: '0' });
  await lost.admin.expect(200, CHECK, POST);
  await lost.admin.expect(200, `${POINTS}/${last.point_id}`, DELETE);
  await lost.admin.expect(200, CHECK, POST);
  const left = readdirSync(join(lost.target, 'pieces'), { recursive: true, withFileTypes: true });
  assert.deepEqual(
    left.filter((entry) => entry.isFile()).map(({ name }) => name),
    [],
    'every piece was of some point',
  );
});
