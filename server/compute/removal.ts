/** Removes machines for good. */
import type { Metadata } from '../metadata/metadata.ts';
import type { Actions } from './actions.ts';
import type { AddressPool } from './addresses.ts';
import type { Changes } from './changes.ts';
import type { Exposures } from './exposures.ts';
import type { Hypervisor } from './hypervisor.ts';
import type { Caller, Machines } from './machines.ts';
import type { DeletedVm } from './schema.ts';
import type { VmRow, VmStore } from './store.ts';

export interface RemovalDeps {
  readonly metadata: Metadata;
  readonly store: VmStore;
  readonly hypervisor: Hypervisor;
  readonly machines: Machines;
  readonly actions: Actions;
  readonly changes: Changes;
  readonly exposures: Exposures;
  readonly addresses: AddressPool;
}

export class Removal {
  readonly #deps: RemovalDeps;

  constructor(deps: RemovalDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves when its disk is gone. What fails on the way is finished later: from the first commit on it is
   * being deleted. Throws `vm_not_found`, `vm_not_stopped`, `vm_locked`.
   */
  async remove(caller: Caller, vmId: string): Promise<DeletedVm> {
    const { machines, actions, changes } = this.#deps;
    await machines.findFor(caller, vmId);
    const { name } = await actions.run(vmId, 'delete', async () => {
      const row = await machines.findFor(caller, vmId);
      await changes.apply(row, { event: 'delete', desired: 'deleted' });
      return this.finish(row);
    });
    return { vm_id: vmId, name, deleted: true, state: 'deleted' };
  }

  /** The rest of a deletion: the machine's front, its disk, its row. May be repeated. */
  async finish(row: VmRow): Promise<VmRow> {
    const { id, vm_id: vmId, address } = row;
    const { metadata, store, hypervisor, exposures, addresses } = this.#deps;
    await exposures.close(vmId);
    // Only now: the next machine of this address opens it anew.
    if (address !== null) addresses.giveBack(address);
    await hypervisor.discard(vmId);
    await metadata.commit([store.delete(id)]);
    return row;
  }
}
