/** Whether a cloud could be restored is reported before it is lost. */
import assert from 'node:assert/strict';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { runCloudlet } from '../harness/command.ts';
import { eventually } from '../harness/waiting.ts';
import { LosableCloud, POINTS, POST } from './recovery-kit.ts';

let lost: LosableCloud;
before(async () => {
  lost = await LosableCloud.start();
});
after(() => lost.end());

async function recovery() {
  const { status, components, alarms } = await lost.admin.expect(200, '/api/system/status');
  return { ...components.recovery, overall: status, alarms };
}

const codes = async () => (await recovery()).warnings.map(({ code }: { code: string }) => code);
const output = (args: readonly string[]) =>
  runCloudlet(['recovery', ...args, '--data-dir', lost.dataDir], { env: {} });

test('a fresh cloud is well, and says that it has no point and where they would be', async () => {
  await eventually('the target was checked', async () => (await recovery()).free_bytes !== null);
  const { overall, status, points, newest_at: newest, key_taken: isTaken, warnings } = await recovery();
  assert.deepEqual([overall, status, points, newest, isTaken], ['ok', 'ok', 0, null, null]);
  for (const { fix } of warnings) assert.notEqual(fix, '');
  assert.deepEqual(await codes(), [
    'no_recovery_point',
    'recovery_schedule_off',
    'recovery_target_on_data_disk',
  ]);
});

test('with a point the key is asked for, until it was taken', async () => {
  const { created_at: at } = await lost.point();
  await eventually('it is known', async () => (await codes()).includes('recovery_key_not_taken'));
  const { points, newest_at: newest, key_taken: isTaken } = await recovery();
  assert.deepEqual([points, newest, isTaken], [1, at, false]);
  const { code, stdout } = await output(['status']);
  assert.equal(code, 0);
  assert.match(stdout, /^1 recovery point can be restored; the newest was taken at \S+ \S+ UTC\n/);
  assert.match(stdout, /No administrator has confirmed the recovery key: .* Fix: cloudlet recovery key\n/);
  assert.match((await output(['create'])).stdout, /Fix: cloudlet recovery key\n/);
  await lost.keepKey();
  const proof = { json: { recovery_key: readFileSync(lost.keyFile, 'utf8') } };
  await lost.admin.expect(200, '/api/admin/recovery-key/confirm', proof);
  assert.deepEqual(await codes(), ['recovery_schedule_off', 'recovery_target_on_data_disk']);
  assert.match((await output(['status'])).stdout, /An administrator has confirmed having the recovery key\n/);
  const metrics = await (await fetch(`${lost.cloud.api}/metrics`)).text();
  assert.match(metrics, /^cloudlet_recovery_points 2$/m);
  assert.match(metrics, /^cloudlet_recovery_point_age_seconds \d/m);
  assert.match(metrics, /^cloudlet_recovery_rpo_seconds \d/m);
  assert.match(metrics, /^cloudlet_recovery_target_up 1$/m);
  assert.match(metrics, /^cloudlet_recovery_target_free_bytes \d{6,}$/m);
});

test('a point that failed is an alarm until one is whole', async () => {
  const file = join(lost.dataDir, 'master.key');
  const right = readFileSync(file);
  writeFileSync(file, '{}');
  const failed = await lost.point();
  assert.equal(failed.state, 'failed');
  const { last_failure: failure } = await eventually('the alarm', async () => {
    const found = await recovery();
    return found.status === 'degraded' && found;
  });
  assert.deepEqual(failure, { at: failed.created_at, reason: failed.state_reason });
  assert.equal((await output(['status'])).code, 1);
  writeFileSync(file, right);
  await lost.point();
  await eventually('it is over', async () => (await recovery()).overall === 'ok');
});

test('a target whose points are gone is an alarm, and nothing new is begun there', async () => {
  const away = `${lost.target}-unmounted`;
  renameSync(lost.target, away);
  await lost.startAgain();
  const { problem } = await eventually('the alarm', async () => {
    const found = await recovery();
    return found.status === 'degraded' && found;
  });
  assert.match(problem, /target is unavailable: its recovery points are missing$/);
  assert.equal((await lost.admin.call(POINTS, POST)).body.code, 'target_unavailable');
  renameSync(away, lost.target);
  await lost.startAgain();
  await eventually('it is over', async () => (await recovery()).free_bytes !== null);
  assert.equal((await recovery()).overall, 'ok');
});
