/** Machines as a part of recovery points: what their engine needs to have them again. */
import type { OpenedFile, Source, SourceFile } from '../../recovery/sources.ts';
import { VmStore } from './vm-store.ts';

/** What a guest is made of, for a point. */
export interface GuestFiles {
  /** Paths are relative to the engine's folder of guests. None for a guest that was never prepared. */
  filesOf(vmId: string, signal: AbortSignal): readonly GuestFile[];
}

export type GuestFile = OpenedFile & Pick<SourceFile, 'path' | 'witness'>;

const PAGE = 500;
/** As build/compute.ts has guests. */
const FOLDER = 'vms';
const OWNER_ONLY = 0o600;
/** A machine may stop, or be started, while its disk is read. */
const TRIES = 3;

/** What fails of one machine is a gap of the point, which goes on without it. */
export function machineSource(guests: GuestFiles): Source {
  return {
    name: 'machines',
    consistency: 'each disk as after a power cut at the moment when it was read',
    // Ids of machines sort by their age, as the machines do.
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
