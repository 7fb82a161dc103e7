/** The progress of a point, while it is slowed down to leave the disk to others. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { eventually } from '../harness/waiting.ts';
import { LosableCloud, POINTS, POST } from './recovery-kit.ts';

const MIB = 2 ** 20;
const TOTAL = 60 * MIB;
let lost: LosableCloud;
before(async () => {
  lost = await LosableCloud.start();
  await lost.user.expect(201, '/api/buckets', { json: { name: 'plain' } });
  // One large file: its bytes are counted while it is copied.
  await lost.user.upload('plain', 'large', randomBytes(TOTAL));
  await lost.startAgain({ CLOUDLET_RECOVERY_BYTES_PER_SECOND: String(4 * MIB) });
});
after(() => lost.end());

test('bytes and percent grow within a file, and a point that is held back ends at once when told to', async () => {
  const { point_id: id } = await lost.admin.expect(201, POINTS, POST);
  const path = `${POINTS}/${id}`;
  let [bytes, percent] = [0, 0];
  for (let steps = 0; steps < 3; steps++) {
    const found = await eventually('it is further', async () => {
      const seen = await lost.admin.expect(200, path);
      assert.equal(seen.state, 'creating', 'it was not held back');
      return seen.size_bytes > bytes && seen.percent > percent && seen;
    });
    ({ size_bytes: bytes, percent } = found);
    assert.ok(percent < 100 && bytes < 1.1 * TOTAL, `${percent} %, ${bytes} bytes`);
  }
  const cancelled = await lost.admin.expect(200, `${path}/cancel`, POST);
  assert.equal(cancelled.state, 'cancelled');
});

test('in the end all bytes are counted, also those that an earlier point has', async () => {
  await lost.startAgain();
  const first = await lost.point();
  const second = await lost.point();
  for (const { state, percent, size_bytes: bytes } of [first, second]) {
    assert.deepEqual([state, percent], ['complete', 100]);
    assert.ok(bytes > TOTAL);
  }
  assert.ok(second.stored_bytes < MIB, `${second.stored_bytes} bytes`);
});
