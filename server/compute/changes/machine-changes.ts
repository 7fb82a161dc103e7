/** Renames, tags and resizes machines for their owners. */
import type { Changes } from '../../metadata/change.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError, invalidField } from '../../platform/errors.ts';
import { type Announce, eventOf, nextRow, writeConflict } from '../../resources/row-change.ts';
import type { Hypervisor } from '../hypervisor.ts';
import { findInstanceType, INSTANCE_TYPES } from '../instance-types.ts';
import type { VmEventType } from '../machines/lifecycle.ts';
import type { MachineCall, Machines } from '../machines/machines.ts';
import { guestSpec } from '../machines/runs.ts';
import type { MachineTurns } from '../machines/transitions.ts';
import type { VmBilling } from '../machines/vm-billing.ts';
import { assertVmFields } from '../machines/vm-fields.ts';
import { billedDisk, type VmRow, type VmStore } from '../machines/vm-store.ts';
import type { VmViews } from '../machines/vm-view.ts';
import type { Vm, VmChange } from '../schema.ts';

/** GB; the largest of the catalogue. */
const MAX_DISK_GB = Math.max(...INSTANCE_TYPES.map(({ diskGb }) => diskGb));

export interface MachineChangesDeps {
  readonly changes: Changes;
  readonly store: VmStore;
  readonly clock: Clock;
  readonly machines: Pick<Machines, 'findFor'>;
  readonly turns: MachineTurns;
  readonly views: VmViews;
  readonly billing: Pick<VmBilling, 'assertCredit' | 'resized' | 'renamed'>;
  readonly hypervisor: Pick<Hypervisor, 'prepare'>;
  /** Throws `out_of_space` if disks may not grow by that many bytes. */
  readonly assertSpace: (bytes: number) => void;
  readonly announce: Announce<VmEventType>;
  readonly onError: (id: string, what: string, error: unknown) => void;
}

export class MachineChanges {
  readonly #deps: MachineChangesDeps;

  constructor(deps: MachineChangesDeps) {
    this.#deps = deps;
  }

  /**
   * Changes the given members in one commit. The row is what counts: a disk that is smaller, because
   * Cloudlet was killed in between, is grown by the next start. Throws `vm_not_found`, `invalid_request`,
   * `vm_not_stopped` for another type or disk of a machine that is not off, `quota_exceeded`,
   * `insufficient_credits`, `out_of_space` for a larger disk while there is no space.
   */
  async change(call: MachineCall, vmId: string, input: VmChange): Promise<Vm> {
    const { machines, turns } = this.#deps;
    const change = { ...input, ...(input.name !== undefined && { name: input.name.trim() }) };
    assertVmFields(change);
    const before = await machines.findFor(call.principal, vmId);
    if (input.instance_type === undefined && input.disk_gb === undefined) {
      return this.#store(call, { before, wanted: {}, change });
    }
    // Runs after an action in progress, so that a start never runs with half of the change.
    return turns.run(vmId, async () => {
      const row = await machines.findFor(call.principal, vmId);
      const wanted = await this.#resized(row, change);
      const vm = await this.#store(call, { before: row, wanted, change });
      await this.#grow(vmId);
      return vm;
    });
  }

  /** The columns of the wanted size; none when it has that size. */
  async #resized(row: VmRow, { instance_type, disk_gb = row.disk_gb }: VmChange): Promise<Partial<VmRow>> {
    if (disk_gb < row.disk_gb) {
      throw invalidField(
        'disk_gb',
        `must be at least ${row.disk_gb}, the current size: a disk can only grow`,
      );
    }
    if (disk_gb > Math.max(MAX_DISK_GB, row.disk_gb)) {
      throw invalidField('disk_gb', `must be at most ${MAX_DISK_GB}`);
    }
    const type = findInstanceType(instance_type ?? row.instance_type);
    const isOther = instance_type !== undefined && instance_type !== row.instance_type;
    if (!isOther && disk_gb === row.disk_gb) return {};
    if (row.state !== 'created' && row.state !== 'stopped') throw notStopped(row, 'resized');
    if (disk_gb > row.disk_gb) this.#deps.assertSpace(1);
    const isMore = disk_gb > row.disk_gb || (type?.priceMicro ?? 0) > row.price_micro;
    if (isMore)
      await this.#deps.billing.assertCredit({ ...row, instance_type: instance_type ?? row.instance_type });
    if (!isOther || type === undefined) return { disk_gb };
    const { name, vcpus, memoryMb, priceMicro } = type;
    return { instance_type: name, vcpus, memory_mb: memoryMb, price_micro: priceMicro, disk_gb };
  }

  async #store(call: MachineCall, { before, wanted, change: { name, tags } }: StoredChange): Promise<Vm> {
    const { changes, store, clock, views, billing, announce } = this.#deps;
    const isResize = Object.keys(wanted).length > 0;
    const isNamed = name !== undefined || tags !== undefined;
    const now = clock.now();
    const named = { ...before, name: name ?? before.name, tags: tags ?? before.tags };
    const row = isResize ? nextRow(named, wanted, now) : named;
    return changes.run(call, async (change) => {
      if (isResize) {
        change.expect(store.resize(row), () => writeConflict('machine'));
        // A concurrent change used up a quota, or the usage has to be rated again.
        change.addAll(await billing.resized(billedDisk(before), billedDisk(row)), 'retry');
      }
      if (isNamed) {
        change.expect(
          store.rename(row, { ...(name !== undefined && { name }), ...(tags !== undefined && { tags }) }),
          () => notChangeable(before),
        );
        if (name !== undefined) change.addAll(billing.renamed(row));
      }
      if (isResize || isNamed) change.addAll(announce(changedEvent(row, now)));
      return views.present(row);
    });
  }

  /** The next start does the same, so a failure here is only noted. */
  async #grow(vmId: string): Promise<void> {
    const { store, hypervisor, onError } = this.#deps;
    try {
      const row = await store.find(vmId);
      if (row === undefined) return;
      await hypervisor.prepare({ ...guestSpec(row), hasRun: await store.hasRun(vmId) });
    } catch (error) {
      onError(vmId, 'grow its disk', error);
    }
  }
}

interface StoredChange {
  readonly before: VmRow;
  readonly wanted: Partial<VmRow>;
  readonly change: VmChange;
}

function changedEvent(row: VmRow, at: number) {
  const { vm_id, instance_type, address, tags, disk_gb } = row;
  return eventOf('vm.changed', row, { at, vm_id, instance_type, ip_address: address, tags, disk_gb });
}

export function notStopped({ state }: VmRow, done: string): AppError {
  const rule = `Only a stopped virtual machine can be ${done}; this one is ${state}`;
  return new AppError('vm_not_stopped', rule, {
    hint: 'Stop the machine first, and start it again afterwards',
    extra: { state },
  });
}

function notChangeable({ state }: VmRow): AppError {
  return new AppError('vm_invalid_state', 'A virtual machine that is being deleted cannot be changed', {
    extra: { state },
  });
}
