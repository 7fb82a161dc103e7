/** Calls allowed while a recovery point is being created. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { eventually } from '../harness/waiting.ts';
import { holdUp, LosableCloud, POINTS, POST } from './recovery-kit.ts';

const CHECK = '/api/disaster-recovery/check';
const DELETE = { method: 'DELETE' };
const LATER = { ...POST, headers: { prefer: 'respond-async' } };

let lost: LosableCloud;
before(async () => {
  lost = await LosableCloud.start();
  await lost.user.expect(201, '/api/buckets', { json: { name: 'files' } });
  await lost.user.upload('files', 'file', randomBytes(1_000_000));
});
after(() => lost.end());

const endOf = (operationId: string) =>
  eventually('the operation has ended', async () => {
    const found = await lost.admin.expect(200, `/api/operations/${operationId}?wait=30`);
    return found.state !== 'running' && found;
  });

test('no other, no removal and no new master key; a verification and a cancellation', async (t) => {
  const { point_id: earlier } = await lost.point();
  await lost.user.upload('files', 'more', randomBytes(1_000_000));
  let id = '';
  const goOn = await holdUp(lost.dataDir, async () => {
    const begun = await lost.admin.expect(201, POINTS, POST);
    id = begun.point_id;
    assert.deepEqual([begun.state, begun.contents.objects], ['creating', 2], 'the cut is fixed');
  });
  t.after(goOn);
  for (const path of [POINTS, CHECK, '/api/admin/master-key/rotate']) {
    const refused = await lost.admin.refused(409, 'point_in_progress', [path, POST]);
    assert.equal(refused.point_id, id);
  }
  await lost.admin.refused(409, 'point_invalid_state', [`${POINTS}/${id}`, DELETE]);
  await lost.admin.refused(409, 'point_invalid_state', [`${POINTS}/${id}/verify`, POST]);
  const sound = await lost.admin.expect(200, `${POINTS}/${earlier}/verify?wait=100`, POST);
  assert.equal(sound.state, 'verified');
  const cancelling = await lost.admin.expect(202, `${POINTS}/${id}/cancel`, LATER);
  // It reads two rows before it takes effect, without a signal; these calls come later and read more.
  for (let i = 0; i < 5; i++) await lost.admin.expect(200, `${POINTS}/${id}`);
  goOn();
  assert.equal((await endOf(cancelling.operation_id)).result.state, 'cancelled');
  // Its uploaded data belongs to no point, and is removed by the next check; the point itself can be deleted
  // immediately.
  assert.ok((await lost.admin.expect(200, CHECK, POST)).removed_pieces > 0);
  assert.equal((await lost.admin.expect(200, `${POINTS}/${id}`, DELETE)).state, 'deleting');
  await eventually('it is gone', async () => (await lost.admin.call(`${POINTS}/${id}`)).status === 404);
  assert.equal((await lost.point()).state, 'complete');
});

test('whoever sees that a point is complete can make the next', async () => {
  for (let round = 0; round < 8; round++) {
    const { point_id: id } = await lost.admin.expect(201, POINTS, POST);
    for (let state = 'creating'; state === 'creating'; ) {
      state = (await lost.admin.expect(200, `${POINTS}/${id}`)).state;
    }
  }
  assert.equal((await lost.point()).state, 'complete');
});

test('a retry of a call that waited for the end has the same answer', async () => {
  const call = { ...POST, headers: { 'idempotency-key': 'one-point' } };
  const first = await lost.admin.call(`${POINTS}?wait=60`, call);
  assert.deepEqual([first.status, first.body.state], [201, 'complete']);
  const again = await lost.admin.call(`${POINTS}?wait=60`, call);
  assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [201, 'true']);
  assert.deepEqual(again.body, first.body);
});

test('an operation ends with the point', async (t) => {
  let operation = '';
  const goOn = await holdUp(lost.dataDir, async () => {
    operation = (await lost.admin.expect(202, POINTS, LATER)).operation_id;
  });
  t.after(goOn);
  assert.equal((await lost.admin.expect(200, `/api/operations/${operation}`)).state, 'running');
  goOn();
  const ended = await endOf(operation);
  assert.deepEqual([ended.state, ended.status, ended.result.state], ['succeeded', 201, 'complete']);
});
