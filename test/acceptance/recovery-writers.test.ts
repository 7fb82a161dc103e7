/** Two clouds with their recovery points in one target: the second is a copy of the first. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { holdUp, LosableCloud, POINTS, POST } from './recovery-kit.ts';

const SECONDS = 3;
const CHECK = '/api/disaster-recovery/check';

let lost: LosableCloud;
let copy: CloudProcess;
let other: CheckedClient;
before(async () => {
  const env = { CLOUDLET_RECOVERY_LEASE_SECONDS: String(SECONDS) };
  lost = await LosableCloud.start(env);
  await lost.user.expect(201, '/api/buckets', { json: { name: 'files' } });
  await lost.user.upload('files', 'file', randomBytes(1_000_000));
  await lost.point();
  await lost.cloud.end();
  const dataDir = join(lost.root, 'copy');
  cpSync(lost.dataDir, dataDir, { recursive: true });
  await lost.startAgain();
  copy = await CloudProcess.start({ dataDir, env: { ...env, CLOUDLET_RECOVERY_TARGET: lost.target } });
  other = await CheckedClient.open(copy.api, ADMIN_KEY);
});
after(async () => {
  await copy.end();
  await lost.end();
});

test('the second is refused while the first writes; a silent one completes nothing', async (t) => {
  let id = '';
  const goOn = await holdUp(lost.dataDir, async () => {
    id = (await lost.admin.expect(201, POINTS, POST)).point_id;
  });
  t.after(goOn);
  for (let i = 0; i < 3; i++) {
    const refused = await other.refused(409, 'target_in_use', [POINTS, POST]);
    assert.match(refused.detail, /Another Cloudlet, on \S+, is writing to /);
  }
  await other.refused(409, 'target_in_use', [CHECK, POST]);
  const [{ point_id: old }] = await other.expect(200, POINTS);
  await other.refused(409, 'target_in_use', [`${POINTS}/${old}`, { method: 'DELETE' }]);
  assert.equal((await lost.admin.expect(200, `${POINTS}/${id}`)).state, 'creating');

  process.kill(-lost.cloud.pid, 'SIGSTOP');
  const made = await eventually('it is taken for dead', async () => {
    const { status, body } = await other.call(`${POINTS}?wait=100`, POST);
    return status === 201 && body;
  });
  assert.equal(made.state, 'complete');
  process.kill(-lost.cloud.pid, 'SIGCONT');
  goOn();
  const ended = await eventually('it has ended', async () => {
    const point = await lost.admin.expect(200, `${POINTS}/${id}`);
    return point.state !== 'creating' && point;
  });
  assert.equal(ended.state, 'failed');
  assert.match(ended.state_reason, /Another Cloudlet/);

  const sound = await other.expect(200, `${POINTS}/${made.point_id}/verify?wait=100`, POST);
  assert.equal(sound.state, 'verified');
  // The first continues when the other is done, knows the other's points, and frees its own remains.
  const checked = await lost.admin.expect(200, CHECK, POST);
  assert.equal(checked.points, 3);
  const listed: { point_id: string; state: string }[] = await lost.admin.expect(200, POINTS);
  assert.deepEqual(listed.map(({ state }) => state).sort(), ['complete', 'complete', 'failed']);
  assert.equal((await lost.point()).state, 'complete');
});
