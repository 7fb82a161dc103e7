/** Gives stopped machines a new disk from an image. */
import type { Changes } from '../../metadata/change.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError, invalidField } from '../../platform/errors.ts';
import { type Announce, eventOf, nextRow, writeConflict } from '../../resources/row-change.ts';
import type { Hypervisor } from '../hypervisor.ts';
import type { Images } from '../images/images.ts';
import type { VmEventType } from '../machines/lifecycle.ts';
import type { MachineCall, Machines } from '../machines/machines.ts';
import { guestSpec } from '../machines/runs.ts';
import type { MachineTurns } from '../machines/transitions.ts';
import type { VmRow, VmStore } from '../machines/vm-store.ts';
import type { VmViews } from '../machines/vm-view.ts';
import type { Vm, VmRebuild } from '../schema.ts';
import { notStopped } from './machine-changes.ts';

export interface MachineRebuildsDeps {
  readonly changes: Changes;
  readonly store: VmStore;
  readonly clock: Clock;
  readonly machines: Pick<Machines, 'findFor'>;
  readonly images: Images;
  readonly turns: MachineTurns;
  readonly views: VmViews;
  readonly hypervisor: Pick<Hypervisor, 'prepare'>;
  /** Throws `out_of_space` if disks may not grow by that many bytes. */
  readonly assertSpace: (bytes: number) => void;
  readonly announce: Announce<VmEventType>;
  readonly onError: (id: string, what: string, error: unknown) => void;
}

export class MachineRebuilds {
  readonly #deps: MachineRebuildsDeps;

  constructor(deps: MachineRebuildsDeps) {
    this.#deps = deps;
  }

  /**
   * Replaces the disk, with all that is on it, by a new one of the image; default: the machine's. Id, name,
   * address, keys, user data, type and size stay. The row is what counts: a disk that is still the old one,
   * because Cloudlet was killed in between, is replaced by the next start. Throws `vm_not_found`,
   * `vm_not_stopped`, `vm_invalid_state` for a machine with snapshots, `image_not_found`, `image_not_ready`,
   * `invalid_request` for an image larger than the disk, `out_of_space`, `write_conflict`.
   */
  async rebuild(call: MachineCall, vmId: string, { image: imageId }: VmRebuild): Promise<Vm> {
    const { machines, turns, changes, store, images, views, clock, announce, assertSpace } = this.#deps;
    await machines.findFor(call.principal, vmId);
    return turns.run(vmId, async () => {
      const before = await machines.findFor(call.principal, vmId);
      if (before.state !== 'created' && before.state !== 'stopped') throw notStopped(before, 'rebuilt');
      if (before.snapshots > 0) throw hasSnapshots();
      const image = await images.find(imageId ?? before.image_id);
      if (image.min_disk_gb > before.disk_gb) {
        const need = `needs a disk of ${image.min_disk_gb} GB, and the machine has ${before.disk_gb} GB`;
        throw invalidField('image', need);
      }
      assertSpace(1);
      const now = clock.now();
      const wanted = { image_id: image.image_id, rebuilds: before.rebuilds + 1 };
      const row: VmRow = nextRow(before, wanted, now);
      const vm = await changes.run(call, (change) => {
        change.expect(store.rebuild(row), () => writeConflict('machine'));
        images.claim(change, row.image_id);
        const { vm_id, instance_type, address, tags, disk_gb } = row;
        const about = { vm_id, instance_type, ip_address: address, tags, disk_gb, image: row.image_id };
        change.addAll(announce(eventOf('vm.changed', row, { at: now, ...about })));
        return views.present(row);
      });
      await this.#replace(vmId);
      return vm;
    });
  }

  /** The next start does the same, so a failure here is only noted. */
  async #replace(vmId: string): Promise<void> {
    const { store, hypervisor, onError } = this.#deps;
    try {
      const row = await store.find(vmId);
      if (row !== undefined)
        await hypervisor.prepare({ ...guestSpec(row), hasRun: await store.hasRun(vmId) });
    } catch (error) {
      onError(vmId, 'replace its disk', error);
    }
  }
}

function hasSnapshots(): AppError {
  return new AppError('vm_invalid_state', 'A virtual machine with snapshots cannot be rebuilt', {
    hint: 'Snapshots belong to the current disk: delete them first, or create another machine',
  });
}
