/** Deletes machines. */
import type { Changes } from '../../metadata/change.ts';
import type { RestingNamesStore } from '../../metadata/resting-names-store.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Hypervisor } from '../hypervisor.ts';
import type { DeletedVm } from '../schema.ts';
import type { AddressPool } from './addresses.ts';
import type { Exposures } from './exposures.ts';
import type { Lifecycle } from './lifecycle.ts';
import type { MachineCall, Machines } from './machines.ts';
import type { MachineTurns } from './transitions.ts';
import type { VmRow, VmStore } from './vm-store.ts';

export interface VmDeleterDeps {
  readonly changes: Changes;
  readonly store: VmStore;
  readonly resting: RestingNamesStore;
  readonly clock: Clock;
  readonly hypervisor: Hypervisor;
  readonly machines: Machines;
  readonly turns: MachineTurns;
  readonly lifecycle: Lifecycle;
  readonly exposures: Exposures;
  readonly addresses: AddressPool;
}

export class VmDeleter {
  readonly #deps: VmDeleterDeps;

  constructor(deps: VmDeleterDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves when the disk is deleted. The first commit sets the state to deleting and holds the call's
   * response; a failure after it is retried later. Throws `vm_not_found`, `vm_not_stopped`, `vm_locked`.
   */
  async remove(call: MachineCall, vmId: string): Promise<DeletedVm> {
    const { machines, turns, lifecycle } = this.#deps;
    const find = () => machines.findFor(call.principal, vmId);
    const removed = await turns.act({ id: vmId, action: 'delete', find }, async (row) => {
      const answer = deletedVm(row);
      await lifecycle.apply(row, { event: 'delete', desired: 'deleted', answer }, call);
      return this.finish(row);
    });
    return deletedVm(removed);
  }

  /** Finishes a deletion: ingress, disk, row. Idempotent. */
  async finish(row: VmRow): Promise<VmRow> {
    const { vm_id: vmId, address } = row;
    const { changes, store, hypervisor, exposures, addresses, resting, clock } = this.#deps;
    await exposures.close(vmId);
    // Last, because the next machine with this address opens it again.
    if (address !== null) addresses.giveBack(address);
    await hypervisor.discard(vmId);
    await changes.store([...resting.restMachine(row, clock.now()), store.delete(row)]);
    return row;
  }
}

function deletedVm({ vm_id, name }: VmRow): DeletedVm {
  return { vm_id, name, deleted: true, state: 'deleted' };
}
