/** A restore drill killed at any stage, or with its cloud, leaves no process, file or group. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { LosableCloud, POINTS, POST } from '../acceptance/recovery-kit.ts';
import { testKillsAt } from './drill-kills.ts';

/** A normal run kills at two of them only; test:faults at all. */
const STAGES = ['reading', 'restoring', 'starting', 'comparing', 'opening databases'];

let lost: LosableCloud;
let pointId: string;
before(async () => {
  lost = await LosableCloud.start();
  await lost.user.expect(201, '/api/buckets', { json: { name: 'files' } });
  for (let i = 0; i < 40; i++) await lost.user.upload('files', `f-${i}`, randomBytes(1_000_000));
  for (const engine of ['sqlite', 'mongodb'])
    await lost.user.expect(201, '/api/databases', { json: { name: `of-${engine}`, engine } });
  pointId = (await lost.point()).point_id;
});
after(() => lost.end());

for (const stage of process.env.FAULTS === 'full' ? STAGES : ['restoring', 'opening databases'])
  testKillsAt(stage, () => ({ lost, pointId }));

test('the next drill passes', async () => {
  const { drill } = await lost.admin.expect(200, `${POINTS}/${pointId}/drill?wait=300`, POST);
  assert.equal(drill.reason, null, JSON.stringify(drill));
});
