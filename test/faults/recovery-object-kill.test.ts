/** kill -9 while objects are restored from a recovery point: each exists completely or not at all. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { LosableCloud } from '../acceptance/recovery-kit.ts';
import { blobFiles, eventually } from '../harness/waiting.ts';
import { chooseSeed, randomFrom, rounds } from './load.ts';

const ROUNDS = rounds(4, 40);
const OBJECTS = 60;
const md5 = (bytes: Buffer) => createHash('md5').update(bytes).digest('hex');

test('kill -9 at random moments of a restore', async (t) => {
  const seed = chooseSeed();
  t.diagnostic(`FAULTS_SEED=${seed}`);
  const random = randomFrom(seed);
  const lost = await LosableCloud.start({ CLOUDLET_SWEEP_GRACE_SECONDS: '1' });
  t.after(() => lost.end());
  await lost.user.expect(201, '/api/buckets', { json: { name: 'files' } });
  const sums = new Map<string, string>();
  for (let i = 0; i < OBJECTS; i++) {
    const bytes = randomBytes(Math.floor(random() * (i % 4 === 0 ? 3_000_000 : 40_000)));
    await lost.user.upload('files', `f-${i}`, bytes);
    sums.set(`f-${i}`, md5(bytes));
  }
  const { point_id } = await lost.point();
  let cut = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const to_bucket = `back-${round}`;
    const restore = () => lost.user.call('/api/buckets/files/restore', { json: { point_id, to_bucket } });
    const answered = restore().catch(() => undefined);
    await sleep(random() * 600);
    await lost.cloud.crash();
    if ((await answered) === undefined) cut++;
    await lost.startAgain();
    await eventually('what was opened is removed', () => !existsSync(join(lost.dataDir, 'recovery-opened')));
    const { status, body } = await lost.user.call(`/api/buckets/${to_bucket}/files?limit=1000`);
    const there: { id: string; name: string }[] = status === 200 ? body : [];
    t.diagnostic(`round ${round}: ${there.length} of ${OBJECTS} were there`);
    for (const { id, name } of there) assert.equal(md5(await lost.user.download(id)), sums.get(name), name);
    const done = await restore();
    assert.equal(done.status, 200, JSON.stringify(done.body));
    assert.deepEqual([done.body.objects + done.body.same, done.body.same], [OBJECTS, there.length]);
    const all = await lost.user.expect(200, `/api/buckets/${to_bucket}`);
    assert.equal(all.version_count, OBJECTS);
    await lost.user.expect(200, `/api/buckets/${to_bucket}?force=true`, { method: 'DELETE' });
  }
  assert.ok(cut > 0, 'no restore was cut');
  // Only the files of the first bucket are left.
  const large = (await lost.user.expect(200, '/api/buckets/files/files?limit=1000')).filter(
    ({ size }: { size: number }) => size > 16_384,
  );
  await eventually('what the killed ones left is removed', () => {
    return blobFiles(lost.dataDir).length === large.length;
  });
});
