/** A machine of a recovery point, restored by its owner as a new one beside the live one. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { eventually } from '../harness/waiting.ts';
import { LosableCloud, POST } from './recovery-kit.ts';
import { cannotRunGuests, newVm, removeAll } from './vms-kit.ts';

const skip = cannotRunGuests();
const DELETE = { method: 'DELETE' };
const AT = 8 * 2 ** 20;
let lost: LosableCloud;
before(async () => {
  if (!skip) lost = await LosableCloud.start();
});
after(async () => {
  if (skip) return;
  await removeAll(lost.user);
  await lost.end();
});

const idOf = (vm: string) => vm.split('/').at(-1) ?? '';
const diskOf = (vm: string) => join(lost.dataDir, 'vms', idOf(vm), 'guest', 'disk.raw');

function readDisk(vm: string): Buffer {
  const fd = openSync(diskOf(vm), 'r');
  const bytes = Buffer.alloc(4096);
  readSync(fd, bytes, 0, bytes.length, AT);
  closeSync(fd);
  return bytes;
}

function writeDisk(vm: string, bytes: Buffer): void {
  const fd = openSync(diskOf(vm), 'r+');
  writeSync(fd, bytes, 0, bytes.length, AT);
  fsyncSync(fd);
  closeSync(fd);
}

const from = (vm: string, point_id: string, more: object = {}) => ({
  json: { name: 'back', instance_type: 't2.micro', from: { vm_id: idOf(vm), point_id }, ...more },
});

test('a disk is back in a new machine, also of a deleted one, and boots', { skip }, async () => {
  const { user } = lost;
  const vm = await newVm(user);
  const bytes = randomBytes(4096);
  writeDisk(vm, bytes);
  const { point_id } = await lost.point();
  writeDisk(vm, randomBytes(4096));
  assert.equal((await user.expect(200, `${vm}/points`))[0].point_id, point_id);
  const made = await user.expect(201, '/api/vms', from(vm, point_id));
  const back = `/api/vms/${made.vm_id}`;
  const live = await user.expect(200, vm);
  assert.notEqual(made.ip_address, live.ip_address);
  assert.ok(readDisk(back).equals(bytes));
  assert.ok(!readDisk(vm).equals(bytes));
  await user.expect(200, `${back}/start`, POST);
  await eventually('it boots', async () => (await (await user.fetch(`${back}/log`)).text()).length > 0);
  await user.expect(200, `${back}/stop?force=true`, POST);
  await user.expect(200, `${vm}/stop`, POST);
  await user.expect(200, vm, DELETE);
  assert.equal((await user.expect(200, `${vm}/points`))[0].point_id, point_id);
  const again = await user.expect(201, '/api/vms', from(vm, point_id, { name: 'again' }));
  assert.ok(readDisk(`/api/vms/${again.vm_id}`).equals(bytes));
});

test('others, points without it, and another disk are refused, and leave nothing', { skip }, async () => {
  const { user, admin } = lost;
  const early = await lost.point();
  const vm = await newVm(user);
  const { point_id } = await lost.point();
  const before = await user.expect(200, '/api/vms');
  const stranger = user.as((await user.register()).api_key);
  for (const other of [stranger, admin]) {
    await other.refused(404, 'point_not_found', ['/api/vms', from(vm, point_id)]);
    await other.refused(404, 'vm_not_found', [`${vm}/points`]);
  }
  await user.refused(404, 'vm_not_found', ['/api/vms/vm-none/points']);
  for (const wrong of [early.point_id, 'drp-none']) {
    await user.refused(404, 'point_not_found', ['/api/vms', from(vm, wrong)]);
  }
  await user.refused(400, 'invalid_request', ['/api/vms', from(vm, point_id, { image: 'img-none' })]);
  const types: { instance_type: string; disk_gb: number }[] = await user.expect(200, '/api/instance-types');
  const { disk_gb } = types.find((type) => type.instance_type === 't2.micro') ?? assert.fail();
  const other = types.find((type) => type.disk_gb !== disk_gb);
  if (other !== undefined) {
    const { instance_type } = other;
    await user.refused(400, 'invalid_request', ['/api/vms', from(vm, point_id, { instance_type })]);
  }
  assert.deepEqual(
    (await user.expect(200, '/api/vms')).map(({ vm_id }: { vm_id: string }) => vm_id),
    before.map(({ vm_id }: { vm_id: string }) => vm_id),
  );
});
