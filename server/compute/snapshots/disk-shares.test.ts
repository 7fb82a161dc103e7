import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Call } from '../../calls/principal.ts';
import { type AppError, isAppError } from '../../platform/errors.ts';
import { openComputeFixture } from '../../testing/compute-fixture.ts';

const GIB = 2 ** 30;

test('on a disk that fills one free account leaves its share, and holds back nobody else', async (t) => {
  const fixture = await openComputeFixture();
  t.after(() => fixture.close());
  const disk = { totalBytes: 100 * GIB, freeBytes: 60 * GIB };
  const cloud = await fixture.open({ ungrantedMemoryPercent: 50, disk: () => disk });
  const [attacker, second, victim] = await Promise.all(
    ['attacker', 'second', 'victim'].map((name) => fixture.newCall(name)),
  );
  assert.ok(attacker && second && victim);
  const newVm = async (call: Call, gib: number) => {
    const { vm_id } = await cloud.machines.create(call, { name: 'm', instance_type: 't2.micro' });
    fixture.engine.taken.set(vm_id, gib * GIB);
    return vm_id;
  };
  await newVm(attacker, 8);
  const also = await newVm(attacker, 6);
  const [little, own] = [await newVm(second, 12), await newVm(victim, 3)];
  const idOf = ({ principal }: Call) => principal.accountId;
  const over = async () => {
    fixture.clock.advance(5000);
    return [...(await cloud.diskShares.over())];
  };
  const copy = (call: Call, vmId: string) => cloud.snapshots.create(call, vmId, { name: 's' });
  assert.deepEqual(await over(), [], 'more than half of the disk is free');

  // Each account may use a quarter of half of the disk, 12.5 GB, with all its machines and their copies.
  disk.freeBytes = 49 * GIB;
  assert.deepEqual(await over(), [idOf(attacker)]);
  await assert.rejects(copy(attacker, also), (error) => isAppError(error, 'out_of_space'));
  await assert.rejects(copy(second, little), ({ message, hint }: AppError) => {
    assert.match(message, /use 12\.0 of the 12\.5 GB/);
    return /grant you credits/.test(hint ?? '');
  });
  await copy(victim, own);

  // All accounts together may use half of it; then the largest waits.
  for (let n = 0; n < 3; n++) await newVm(await fixture.newCall(`more-${n}`), 10);
  assert.equal((await over()).includes(idOf(second)), true);
  assert.equal((await over()).includes(idOf(victim)), false);

  await fixture.grant(attacker.principal.accountId);
  await fixture.grant(second.principal.accountId);
  assert.deepEqual(await over(), []);
  await copy(attacker, also);
});
