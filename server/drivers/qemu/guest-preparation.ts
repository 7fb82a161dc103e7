/** Makes what a guest is on this host before it is started: its folders, its disk and its seed. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { GuestSpec } from '../../compute/hypervisor.ts';
import { FILES } from './arguments.ts';
import { asDiskError, createOverlay, createRawDisk, lendBase, writeSeed } from './disk.ts';
import type { GuestFolders, GuestRecord } from './guest-folders.ts';
import { noQemuImg, type QemuPrograms } from './program.ts';

export interface PreparationDeps {
  readonly folders: GuestFolders;
  readonly programs: QemuPrograms;
  readonly imagesDirectory: string;
}

/** Does nothing for one that is there. Throws AppErrors. */
export async function prepareGuest(deps: PreparationDeps, spec: GuestSpec): Promise<GuestRecord> {
  const { folders, programs, imagesDirectory } = deps;
  const { vmId, uuid, image } = spec;
  const base = join(imagesDirectory, `${image.imageId}.${image.format}`);
  const known = folders.find(vmId);
  try {
    if (known !== undefined) {
      lendBaseAgain(folders.guestPath(vmId), base, known);
      return known;
    }
    const diskFormat = image.boot === 'kernel' ? 'raw' : 'qcow2';
    const machine = (await programs.system())?.machine;
    return await folders.create(
      { vmId, uuid, boot: image.boot, diskFormat, ...(machine === undefined ? {} : { machine }) },
      async (folder, { uid: owner }) => {
        writeSeed(folder, spec, owner);
        if (image.boot === 'kernel') return createRawDisk(folder, spec.diskGb, owner);
        const qemuImg = await programs.image();
        if (qemuImg === null) throw noQemuImg();
        await createOverlay(folder, { base, format: image.format, diskGb: spec.diskGb, owner, qemuImg });
      },
    );
  } catch (error) {
    throw asDiskError(error);
  }
}

/** A recovery point has an image once, and not in the folder of each guest. */
function lendBaseAgain(folder: string, base: string, { diskFormat, uid }: GuestRecord): void {
  if (diskFormat === 'qcow2' && !existsSync(join(folder, FILES.base))) lendBase(folder, base, uid);
}
