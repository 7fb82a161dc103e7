/** Requirements for any Hypervisor driver about the disks of its guests: their size, and their snapshots. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../platform/clock.ts';
import { isAppError } from '../platform/errors.ts';
import { newId } from '../platform/ids.ts';
import { eventually } from './eventually.ts';
import { booted, logText } from './guest-log.ts';
import type { Subject } from './hypervisor.conformance.ts';

const GIB = 2 ** 30;

export function testDisks({ hypervisor, fixture }: Subject): void {
  test('a disk grows with its guest off, keeps what is on it, and never shrinks', async () => {
    const spec = fixture().newSpec();
    const { vmId, diskGb } = spec;
    await hypervisor().start(spec);
    await booted(hypervisor(), vmId);
    await hypervisor().stop(vmId, { graceMs: 0 });
    assert.equal(await fixture().diskBytes(spec), diskGb * GIB);
    await hypervisor().prepare({ ...spec, diskGb: diskGb + 10, hasRun: true });
    assert.equal(await fixture().diskBytes(spec), (diskGb + 10) * GIB);
    await hypervisor().prepare({ ...spec, diskGb, hasRun: true });
    assert.equal(await fixture().diskBytes(spec), (diskGb + 10) * GIB);
    // A start does this too: Cloudlet may have been killed before prepare().
    await hypervisor().start({ ...spec, diskGb: diskGb + 20, hasRun: true });
    assert.equal(await fixture().diskBytes(spec), (diskGb + 20) * GIB);
    const boots = async () => (await logText(hypervisor(), vmId)).split('guest is up').length;
    await eventually(async () => (await boots()) === 3);
    await hypervisor().stop(vmId, { graceMs: 0 });
  });
}

export function testRebuilds({ hypervisor, fixture }: Subject): void {
  test('a disk is replaced by a new one once for each rebuild, also by a start after a crash', async () => {
    const spec = fixture().newSpec();
    const { vmId, diskGb } = spec;
    const boots = async () => (await logText(hypervisor(), vmId)).split('guest is up').length - 1;
    await hypervisor().start(spec);
    await booted(hypervisor(), vmId);
    await hypervisor().stop(vmId, { graceMs: 0 });
    const rebuilt = { ...spec, diskGb: diskGb + 10, rebuilds: 1, hasRun: true };
    await hypervisor().prepare(rebuilt);
    // The log contains the runs of the new disk.
    assert.equal(await boots(), 0);
    assert.equal(await fixture().diskBytes(rebuilt), (diskGb + 10) * GIB);
    await hypervisor().start(rebuilt);
    await booted(hypervisor(), vmId);
    await hypervisor().stop(vmId, { graceMs: 0 });
    await hypervisor().prepare(rebuilt);
    assert.equal(await boots(), 1, 'the disk stays');
    const later = fixture().open();
    await later.prepare({ ...rebuilt, rebuilds: 0 });
    await later.close();
    assert.equal(await boots(), 1, 'a row from before it does not undo it');
    await hypervisor().start({ ...rebuilt, rebuilds: 2 });
    await booted(hypervisor(), vmId);
    assert.equal(await boots(), 1, 'a start replaces it too');
    await hypervisor().stop(vmId, { graceMs: 0 });
    await hypervisor().discard(vmId);
  });
}

export function testSnapshots({ hypervisor, fixture }: Subject): void {
  test('a disk goes back to its snapshots, which outlast a restart and end with the guest', async () => {
    const spec = fixture().newSpec();
    const { vmId, diskGb } = spec;
    const [first, second] = [newId('snp', systemClock), newId('snp', systemClock)];
    await assert.rejects(hypervisor().snapshots.take(vmId, first), (error) =>
      isAppError(error, 'disk_missing'),
    );
    await hypervisor().prepare(spec);
    const before = hypervisor().snapshots.takenBytes(vmId);
    const { sizeBytes } = await hypervisor().snapshots.take(vmId, first);
    assert.ok(before > 0 && sizeBytes > 0);
    assert.ok(hypervisor().snapshots.takenBytes(vmId) >= before + sizeBytes, 'copies count');
    await hypervisor().start({ ...spec, diskGb: diskGb + 10 });
    await booted(hypervisor(), vmId);
    await assert.rejects(hypervisor().snapshots.take(vmId, second), 'the disk of a guest that runs');
    await assert.rejects(hypervisor().snapshots.restore(vmId, first), 'the disk of a guest that runs');
    await hypervisor().stop(vmId, { graceMs: 0 });
    await hypervisor().snapshots.take(vmId, second);
    const later = fixture().open();
    assert.deepEqual([...(await later.snapshots.list(vmId))].sort(), [first, second].sort());
    await later.snapshots.restore(vmId, first);
    assert.equal(await fixture().diskBytes(spec), diskGb * GIB, 'the disk as it was');
    await later.snapshots.restore(vmId, second);
    assert.equal(await fixture().diskBytes(spec), (diskGb + 10) * GIB);
    await later.snapshots.restore(vmId, first);
    await later.snapshots.discard(vmId, second);
    await later.snapshots.discard(vmId, second);
    await assert.rejects(later.snapshots.restore(vmId, second), (error) => isAppError(error, 'disk_missing'));
    assert.deepEqual(await later.snapshots.list(vmId), [first]);
    await later.close();
    await hypervisor().start({ ...spec, hasRun: true });
    const boots = async () => (await logText(hypervisor(), vmId)).split('guest is up').length;
    await eventually(async () => (await boots()) === 3);
    await hypervisor().stop(vmId, { graceMs: 0 });
    await hypervisor().discard(vmId);
    assert.deepEqual(await hypervisor().snapshots.list(vmId), []);
    assert.equal(hypervisor().snapshots.takenBytes(vmId), 0);
  });
}
