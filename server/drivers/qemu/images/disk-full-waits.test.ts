import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { eventually } from '../../../testing/eventually.ts';
import { buildQemuFixture, noQemu, type QemuFixture } from '../../../testing/qemu-fixture.ts';
import { FILES } from '../arguments.ts';
import type { QemuHypervisor } from '../qemu-hypervisor.ts';

describe('guests on a disk that is nearly full', { skip: noQemu }, () => {
  let fixture: QemuFixture;
  let hypervisor: QemuHypervisor;
  const ids: string[] = [];
  const disk = {
    low: false,
    out: false,
    room: 'ample' as 'ample' | 'tight' | 'scarce',
    isLow: () => disk.low,
    isOut: () => disk.low && disk.out,
    machineRoom: () => disk.room,
  };
  before(async () => {
    fixture = buildQemuFixture();
    hypervisor = fixture.open({ disk });
    for (let at = 0; at < 2; at++) {
      const spec = fixture.newSpec();
      ids.push(spec.vmId);
      await hypervisor.start(spec);
    }
  });
  after(async () => {
    for (const vmId of ids) await hypervisor.stop(vmId, { graceMs: 0 });
    await hypervisor.close();
    await fixture.remove();
  });
  const waiting = () => ids.map((vmId) => hypervisor.waiting(vmId));
  const grow = (vmId = '', times = 1) =>
    fs.appendFileSync(
      join(fixture.deps.vmsDirectory, vmId, 'guest', FILES.consoleLog),
      Buffer.alloc(times * 256 * 1024, 'x'),
    );
  const set = (low: boolean, out: boolean) => Object.assign(disk, { low, out });

  test('while there is space all run on, whatever they write', async () => {
    set(false, false);
    await hypervisor.waits.update();
    grow(ids[0] ?? '');
    await hypervisor.waits.update();
    assert.deepEqual(waiting(), [null, null]);
  });

  test('when it is low those that grow are paused; they go on when there is space', async () => {
    set(true, false);
    await hypervisor.waits.update();
    assert.deepEqual(waiting(), [null, null], 'nobody is known to grow yet');
    grow(ids[0] ?? '');
    await hypervisor.waits.update();
    assert.deepEqual(waiting(), ['disk_full', null]);
    set(false, false);
    await hypervisor.waits.update();
    assert.deepEqual(waiting(), [null, null]);
  });

  test('while space is scarce the owner that grew most waits, and who grew little goes on', async () => {
    const owners = async () => new Map(ids.map((vmId, at) => [vmId, at]));
    const update = () => hypervisor.waits.update(owners);
    disk.room = 'tight';
    await update();
    grow(ids[0], 8);
    grow(ids[1]);
    await update();
    assert.deepEqual(waiting(), [null, null]);
    disk.room = 'scarce';
    grow(ids[0]);
    grow(ids[1]);
    await update();
    assert.deepEqual(waiting(), ['disk_full', null]);
    assert.ok(hypervisor.waits.isScarce);
    // Neither a sample nor a check while the disk is nearly full lets it continue.
    await hypervisor.sample(ids[0] ?? '');
    disk.room = 'tight';
    await update();
    assert.deepEqual(waiting(), ['disk_full', null]);
    disk.room = 'scarce';
    grow(ids[1], 2);
    await update();
    assert.deepEqual(waiting(), ['disk_full', null]);
    // Grown half as much, it waits too; guests of one owner are counted together.
    grow(ids[1], 4);
    await update();
    assert.deepEqual(waiting(), ['disk_full', 'disk_full']);
    disk.room = 'ample';
    await update();
    assert.deepEqual(waiting(), [null, null]);
    disk.room = 'scarce';
    const one = async () => new Map(ids.map((vmId) => [vmId, 7]));
    await hypervisor.waits.update(one);
    grow(ids[0], 8);
    grow(ids[1]);
    await hypervisor.waits.update(one);
    assert.deepEqual(waiting(), ['disk_full', 'disk_full']);
    disk.room = 'ample';
    await update();
  });

  test('a guest whose owner holds more than its share waits as it grows, with space for all others', async () => {
    const update = (...over: string[]) => hypervisor.waits.update(undefined, new Set(over));
    await update(ids[0] ?? '');
    await update(ids[0] ?? '');
    assert.deepEqual(waiting(), [null, null], 'it does not grow');
    grow(ids[0]);
    grow(ids[1]);
    await update(ids[0] ?? '');
    assert.deepEqual(waiting(), ['disk_full', null]);
    await hypervisor.sample(ids[0] ?? '');
    await update(ids[0] ?? '');
    assert.deepEqual(waiting(), ['disk_full', null]);
    await update();
    assert.deepEqual(waiting(), [null, null]);
  });

  test('when what is set aside is given back all stand still, growing or not', async () => {
    set(true, true);
    await hypervisor.waits.update();
    assert.deepEqual(waiting(), ['disk_full', 'disk_full']);
    // A paused guest can still be stopped, and is then forgotten.
    await hypervisor.stop(ids[1] ?? '', { graceMs: 5000 });
    await hypervisor.waits.update();
    assert.deepEqual(waiting(), ['disk_full', null]);
    assert.equal(hypervisor.waits.count, 1);
  });

  test('one that stood still when Cloudlet was restarted goes on', async () => {
    await hypervisor.close();
    set(false, false);
    hypervisor = fixture.open({ disk });
    await hypervisor.adopt(await hypervisor.list());
    set(true, false);
    await hypervisor.sample(ids[0] ?? '');
    assert.deepEqual(waiting(), ['disk_full', null]);
    set(false, false);
    await eventually(async () => {
      await hypervisor.sample(ids[0] ?? '');
      return hypervisor.waiting(ids[0] ?? '') === null;
    });
  });
});
