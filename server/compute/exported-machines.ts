/** An account's machines in an export: their descriptions, and their disks on request. */
import {
  type ExportedFile,
  type Exporting,
  type ExportSource,
  jsonFile,
  type LeftOutFile,
  safePath,
  Unreadable,
} from '../calls/account-export.ts';
import type { Machines } from './machines/machines.ts';
import type { GuestDisks, GuestOnImage } from './machines/point-machines.ts';

export interface ExportedMachinesDeps {
  readonly machines: Pick<Machines, 'list'>;
  readonly disks: GuestDisks;
}

type Disk = ReturnType<GuestDisks['disksOf']>[number];

/** A machine may start or stop while its disk is opened. */
const UNREAD = 'it could not be read: the machine was started or stopped meanwhile, or qemu-img is missing';

export class ExportedMachines implements ExportSource {
  readonly #deps: ExportedMachinesDeps;

  constructor(deps: ExportedMachinesDeps) {
    this.#deps = deps;
  }

  async *files({ owner, wantsDisks, signal }: Exporting): AsyncGenerator<ExportedFile | LeftOutFile> {
    const page = { after: 0, limit: Number.POSITIVE_INFINITY };
    for await (const listed of this.#deps.machines.list(owner.accountId, page)) {
      const vm = listed.toJSON();
      const path = `machines/${safePath(vm.name)}-${vm.vm_id.slice(-6)}`;
      yield jsonFile(`${path}/machine.json`, vm, 'machine');
      if (wantsDisks) yield* this.#disks(path, { vmId: vm.vm_id, imageId: vm.image }, signal);
    }
  }

  /** Both unpack into one folder, so that a disk finds its backing image. */
  *#disks(path: string, guest: GuestOnImage, signal: AbortSignal): Generator<ExportedFile | LeftOutFile> {
    const disks = this.#deps.disks.disksOf(guest, signal);
    if (disks.length === 0) yield { path: `${path}/disk`, leftOut: 'the machine never ran' };
    for (const disk of disks) yield diskFile(`${path}/${disk.path}`, disk, signal);
  }
}

function diskFile(path: string, disk: Disk, signal: AbortSignal): ExportedFile {
  return {
    path,
    kind: 'disk',
    modifiedAt: 0,
    sizeBytes: null,
    read: async (sink) => {
      try {
        const pieces = await disk.open();
        if (pieces === undefined) throw new Unreadable('the machine is gone');
        for await (const piece of pieces) await sink(piece);
      } catch (error) {
        signal.throwIfAborted();
        throw error instanceof Unreadable ? error : new Unreadable(UNREAD, { cause: error });
      }
    },
  };
}
