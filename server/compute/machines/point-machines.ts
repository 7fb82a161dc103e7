/** Machines as a source of recovery points: the engine's files that a restore needs. */
import type { OpenedFile, Source, SourceFile } from '../../recovery/points/sources.ts';
import { VmStore } from './vm-store.ts';

/** Lists the files of a guest for a point. */
export interface GuestFiles {
  /** Paths are relative to the engine's folder of guests. Empty for a guest that was never prepared. */
  filesOf(vmId: string, signal: AbortSignal): readonly GuestFile[];
}

/** Lists the disks of a guest for an export. */
export interface GuestDisks {
  /**
   * The disk, followed by its backing image, if any, under the name by which the disk refers to it.
   * Empty for a guest that was never prepared.
   */
  disksOf(guest: GuestOnImage, signal: AbortSignal): readonly Pick<GuestFile, 'path' | 'open'>[];
}

export interface GuestOnImage {
  readonly vmId: string;
  readonly imageId: string;
}

export type GuestFile = OpenedFile & Pick<SourceFile, 'path' | 'fingerprint'>;

const PAGE = 500;
/** Folder of guests in a point, as in cloud/compute.ts. */
export const FOLDER = 'vms';
export const POINT_COMPONENT = 'machines';
const OWNER_ONLY = 0o600;
/** A machine may start or stop while its disk is read. */
const TRIES = 3;

/** A failed machine becomes a gap of the point, which continues without it. */
export function machineSource(guests: GuestFiles): Source {
  return {
    name: POINT_COMPONENT,
    consistency: 'each disk is crash-consistent as of the time it was read',
    // Ids sort by age, as the rows do.
    order: 'path',
    async *files({ reads }, signal) {
      const rows = new VmStore(reads);
      for (let after = 0; ; ) {
        const page = await rows.list(after, PAGE);
        for (const { vm_id: id, name } of page) {
          for (const { path, ...file } of guests.filesOf(id, signal)) {
            const gap = `machine ${name} (${id})`;
            const kind = { mode: OWNER_ONLY, changes: 'in_place', isPacked: false } as const;
            yield { path: `${FOLDER}/${path}`, ...file, ...kind, gap, tries: TRIES };
          }
        }
        after = page.at(-1)?.id ?? after;
        if (page.length < PAGE) return;
      }
    },
  };
}
