/** Snapshots: copies of a machine's disk, made while it is stopped, that can be restored to it. */
import type { Changes } from '../../metadata/change.ts';
import { CommitOutcomeUnknown } from '../../metadata/metadata.ts';
import { type Clock, formatTime } from '../../platform/clock.ts';
import { AppError, invalidField } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { DiskShares } from '../../resources/disk-shares.ts';
import { notStopped } from '../changes/machine-changes.ts';
import type { Hypervisor } from '../hypervisor.ts';
import type { MachineCall, Machines } from '../machines/machines.ts';
import type { MachineTurns } from '../machines/transitions.ts';
import type { VmBilling } from '../machines/vm-billing.ts';
import { vmNameProblem } from '../machines/vm-fields.ts';
import { billedDisk, type VmRow, type VmStore } from '../machines/vm-store.ts';
import type { VmViews } from '../machines/vm-view.ts';
import type { Vm } from '../schema.ts';
import type { DeletedVmSnapshot, NewVmSnapshot, VmSnapshot } from './snapshot-schema.ts';
import type { SnapshotRow, SnapshotStore } from './snapshot-store.ts';

/** Per machine. */
const MAX_SNAPSHOTS = 10;
const GIB = 2 ** 30;

export interface SnapshotsDeps {
  readonly changes: Changes;
  readonly store: VmStore;
  readonly snapshotStore: SnapshotStore;
  readonly clock: Clock;
  readonly machines: Pick<Machines, 'findFor'>;
  readonly turns: MachineTurns;
  readonly views: VmViews;
  readonly billing: Pick<VmBilling, 'assertCredit' | 'assertDisk' | 'diskChanged'>;
  readonly hypervisor: Pick<Hypervisor, 'snapshots'>;
  readonly diskShares?: Pick<DiskShares, 'assertMayGrow'> | undefined;
}

export class Snapshots {
  readonly #deps: SnapshotsDeps;

  constructor(deps: SnapshotsDeps) {
    this.#deps = deps;
  }

  /** Oldest first. Throws `vm_not_found`. */
  async list({ principal }: MachineCall, vmId: string): Promise<VmSnapshot[]> {
    const { machines, snapshotStore, hypervisor } = this.#deps;
    await machines.findFor(principal, vmId);
    const here = await hypervisor.snapshots.list(vmId);
    const rows = await snapshotStore.listOf(vmId);
    return rows.map((row) => presented(row, here.includes(row.snapshot_id)));
  }

  /**
   * Copies the disk, then commits the row: a crash in between leaves a copy that the next call about the
   * machine's snapshots removes. Throws `vm_not_found`, `vm_not_stopped`, `quota_exceeded` for more than 10
   * or more GB than the account may have, `insufficient_credits`, `out_of_space`, `disk_missing`.
   */
  create(call: MachineCall, vmId: string, input: NewVmSnapshot): Promise<VmSnapshot> {
    const name = input.name.trim();
    const problem = vmNameProblem(name);
    if (problem !== undefined) throw invalidField('name', problem);
    return this.#withOff(call, vmId, async (row, rows) => {
      const { changes, snapshotStore, clock, billing, hypervisor, diskShares } = this.#deps;
      if (rows.length >= MAX_SNAPSHOTS) throw tooMany();
      await billing.assertCredit(row);
      // The size of the copy is known only now.
      await billing.assertDisk(row.account_id, 1);
      await diskShares?.assertMayGrow(row.account_id, copyBytes(hypervisor.snapshots.takenBytes(vmId), rows));
      const snapshotId = newId('snp', clock);
      const { sizeBytes } = await hypervisor.snapshots.take(vmId, snapshotId);
      const about = {
        snapshot_id: snapshotId,
        vm_id: vmId,
        name,
        size_bytes: sizeBytes,
        created_at: clock.now(),
      };
      const [before, after] = [withSnapshots(row, rows), withSnapshots(row, [...rows, about])];
      const stored = changes.run(call, async (change) => {
        change.add(snapshotStore.insert(about));
        change.addAll(await billing.diskChanged(before, after), 'retry');
        return presented(about, true);
      });
      return stored.catch(async (error: unknown) => {
        // If this fails, the next call removes a copy without a row.
        if (!(error instanceof CommitOutcomeUnknown)) await hypervisor.snapshots.discard(vmId, snapshotId);
        throw error;
      });
    });
  }

  /**
   * Replaces the disk by the copy. The machine keeps its type, and a disk that was grown since grows again at
   * the next start. If Cloudlet is killed in between, the disk is either the old or the new one. Throws
   * `vm_not_found`, `snapshot_not_found`, `vm_not_stopped`, `out_of_space`.
   */
  restore(call: MachineCall, vmId: string, snapshotId: string): Promise<Vm> {
    return this.#withOff(call, vmId, async (row, rows) => {
      const { changes, hypervisor, views } = this.#deps;
      assertKnown(rows, snapshotId);
      await hypervisor.snapshots.restore(vmId, snapshotId);
      return changes.run(call, () => views.present(row));
    });
  }

  /** The row goes first: a copy without one is removed later. Throws `vm_not_found`, `snapshot_not_found`. */
  async remove(call: MachineCall, vmId: string, snapshotId: string): Promise<DeletedVmSnapshot> {
    const { machines, turns, changes, snapshotStore, billing, hypervisor } = this.#deps;
    await machines.findFor(call.principal, vmId);
    return turns.run(vmId, async () => {
      const row = await machines.findFor(call.principal, vmId);
      const rows = await snapshotStore.listOf(vmId);
      assertKnown(rows, snapshotId);
      const left = rows.filter((one) => one.snapshot_id !== snapshotId);
      const answer = await changes.run(call, async (change): Promise<DeletedVmSnapshot> => {
        change.expect(snapshotStore.delete(snapshotId), notFound);
        change.addAll(await billing.diskChanged(withSnapshots(row, rows), withSnapshots(row, left)));
        return { snapshot_id: snapshotId, deleted: true };
      });
      await hypervisor.snapshots.discard(vmId, snapshotId);
      return answer;
    });
  }

  /** Runs `work` alone on a machine that is off, without copies that have no row. */
  async #withOff<T>(
    { principal }: MachineCall,
    vmId: string,
    work: (row: VmRow, rows: readonly SnapshotRow[]) => Promise<T>,
  ): Promise<T> {
    const { machines, turns, snapshotStore, hypervisor } = this.#deps;
    await machines.findFor(principal, vmId);
    return turns.run(vmId, async () => {
      const row = await machines.findFor(principal, vmId);
      if (row.state !== 'created' && row.state !== 'stopped') throw notStopped(row, 'copied or restored');
      const rows = await snapshotStore.listOf(vmId);
      const known = new Set(rows.map(({ snapshot_id }) => snapshot_id));
      for (const id of await hypervisor.snapshots.list(vmId)) {
        if (!known.has(id)) await hypervisor.snapshots.discard(vmId, id);
      }
      return work(row, rows);
    });
  }
}

function withSnapshots(row: VmRow, rows: readonly SnapshotRow[]) {
  const snapshot_gb = rows.reduce((sum, { size_bytes }) => sum + Math.ceil(size_bytes / GIB), 0);
  return billedDisk({ ...row, snapshot_gb });
}

function presented({ snapshot_id, name, size_bytes: size, created_at }: SnapshotRow, available: boolean) {
  return { snapshot_id, name, size, available, created_at: formatTime(created_at) };
}

function assertKnown(rows: readonly SnapshotRow[], snapshotId: string): void {
  if (!rows.some(({ snapshot_id }) => snapshot_id === snapshotId)) throw notFound();
}

function notFound(): AppError {
  return new AppError('snapshot_not_found', 'The virtual machine has no such snapshot');
}

function tooMany(): AppError {
  return new AppError('quota_exceeded', `A virtual machine has at most ${MAX_SNAPSHOTS} snapshots`, {
    hint: 'Delete a snapshot first',
    extra: { limit: MAX_SNAPSHOTS, used: MAX_SNAPSHOTS, requested: 1 },
  });
}

/** Bytes of the disk alone, which a copy takes. */
function copyBytes(takenBytes: number, copies: readonly Pick<SnapshotRow, 'size_bytes'>[]): number {
  return Math.max(0, takenBytes - copies.reduce((sum, { size_bytes }) => sum + size_bytes, 0));
}
