/** Administrators' webhooks are notified of recovery points, and nobody else's. */
import assert from 'node:assert/strict';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { eventually } from '../harness/waiting.ts';
import { WebhookReceiver } from '../harness/webhook-receiver.ts';
import { LosableCloud, POINTS, POST } from './recovery-kit.ts';

let lost: LosableCloud;
let receiver: WebhookReceiver;
before(async () => {
  receiver = await WebhookReceiver.open();
  lost = await LosableCloud.start({ CLOUDLET_FETCH_ALLOW: '127.0.0.0/8' });
});
after(async () => {
  await lost.end();
  await receiver.close();
});

test('of one that is made, verified, found damaged and deleted, and of one that failed', async () => {
  const hook = (path: string) => ({ json: { url: `${receiver.url}/${path}`, events: ['*'] } });
  await lost.admin.expect(201, '/api/webhooks', hook('admin'));
  await lost.user.expect(201, '/api/webhooks', hook('user'));
  const { point_id: id } = await lost.point();
  await lost.admin.expect(200, `${POINTS}/${id}/verify?wait=120`, POST);
  const pieces = join(lost.target, 'pieces');
  const [folder = ''] = readdirSync(pieces);
  rmSync(join(pieces, folder), { recursive: true });
  const { state } = await lost.admin.expect(200, `${POINTS}/${id}/verify?wait=120`, POST);
  assert.equal(state, 'damaged');
  const received = () =>
    receiver.received.map(({ path, body }) => {
      const { type, data } = JSON.parse(body);
      return { path, type: type.replace('recovery_point.', ''), ...data };
    });
  const alarms = (event: string) =>
    received().flatMap(({ type, code }) => (type === `recovery.alarm_${event}` ? [code] : []));
  await eventually('the alarm is told of', () => alarms('raised').length === 1);
  await lost.admin.expect(200, `${POINTS}/${id}`, { method: 'DELETE' });
  writeFileSync(join(lost.dataDir, 'master.key'), '{}');
  const failed = await lost.point();
  await eventually('all are delivered', () => received().length >= 10);
  assert.deepEqual(alarms('raised').sort(), ['recovery_point_failed', 'recovery_points_damaged']);
  assert.deepEqual(alarms('cleared'), ['recovery_points_damaged'], 'it was deleted');
  const of = (point: string) => received().filter(({ point_id: about }) => about === point);
  const types = (point: string) => of(point).map(({ type }) => type);
  assert.deepEqual(types(id).sort(), ['completed', 'created', 'damaged', 'deleted', 'verified']);
  assert.deepEqual(types(failed.point_id).sort(), ['created', 'failed']);
  assert.deepEqual([...new Set(received().map(({ path }) => path))], ['/hook/admin']);
  const completed = of(id).find(({ type }) => type === 'completed');
  assert.deepEqual([completed.state, completed.gaps, completed.size_bytes > 0], ['complete', 0, true]);
  const reason = of(failed.point_id).find(({ type }) => type === 'failed').state_reason;
  assert.equal(reason, failed.state_reason);
});
