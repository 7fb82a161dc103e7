/** Wall clocks that are set or jitter while machines run: time that did not pass is not charged. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { assertBooks, billOf } from './billing-kit.ts';
import { FAKED_CLOCK, noFakedClock } from './faked-clock.ts';
import { cannotRunGuests, idleImage, newVm, removeAll } from './vms-kit.ts';

const skip = cannotRunGuests() || noFakedClock;
const STEP_MS = 2000;
const JUMPS_FORWARD = ['+30d', '+1s', '+3600s'];
const day = (offset: number) => new Date(Date.now() + offset * 86_400_000).toISOString();
/** The period of the reports: all hours that the clock ever shows. */
const PERIOD = `?from=${day(-60)}&to=${day(60)}`;

async function fakedCloud(
  t: TestContext,
): Promise<{ user: CheckedClient; set: (offset: string) => void; dataDir: string }> {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-clock-'));
  const [file, dataDir] = [join(directory, 'time'), join(directory, 'data')];
  const set = (offset: string) => writeFileSync(file, `${offset}\n`);
  set('+0');
  const faked = { ...FAKED_CLOCK, FAKETIME_TIMESTAMP_FILE: file };
  const cloud = await CloudProcess.start({ dataDir, env: faked });
  const anyone = await CheckedClient.open(cloud.api);
  const user = anyone.as((await anyone.register()).api_key);
  t.after(async () => {
    await removeAll(user);
    await cloud.stop();
    rmSync(directory, { recursive: true });
  });
  return { user, set, dataDir };
}

test('jumps of the wall clock, back and forth, charge nothing extra', { skip }, async (t) => {
  const { user, set, dataDir } = await fakedCloud(t);
  const vm = await newVm(user, await idleImage(user.as(ADMIN_KEY)));
  const vmId = vm.slice(vm.lastIndexOf('/') + 1);
  const began = performance.now();
  await user.expect(200, `${vm}/start`, { method: 'POST' });
  const runs = performance.now();
  for (const offset of ['+30d', '+0', '+1s', '-1s', '+3600s']) {
    const before = await billOf(user, vmId, PERIOD);
    const from = performance.now();
    set(offset);
    await sleep(STEP_MS);
    const { ms } = await billOf(user, vmId, PERIOD);
    const most = performance.now() - from + STEP_MS;
    assert.ok(ms - before.ms <= most, `${offset}: ${ms - before.ms} ms charged in ${most} ms`);
    if (JUMPS_FORWARD.includes(offset)) assert.ok(ms > before.ms, `${offset}: nothing charged`);
  }
  set('-30d');
  await sleep(STEP_MS);
  const back = await billOf(user, vmId, PERIOD);
  assert.ok(back.ms <= performance.now() - began);
  set('+0');
  await user.expect(200, `${vm}/stop?force=true`, { method: 'POST' });
  const { ms } = await billOf(user, vmId, PERIOD);
  const most = performance.now() - began;
  t.diagnostic(`ran for ${Math.round(performance.now() - runs)} ms, charged for ${ms} ms`);
  assert.ok(ms <= most, `charged for ${ms} ms of ${most} ms`);
  assertBooks(dataDir);
});
