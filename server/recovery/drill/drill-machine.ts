/** Chooses the machine that a restore drill boots. */
import type { Reads } from '../../metadata/metadata.ts';
import { entriesOf, type Manifest } from '../points/manifest.ts';
import { spaceOf } from '../points/restore.ts';
import type { Repository } from '../repository/repository.ts';
import { DrillStore, type RestoredMachine } from './drill-store.ts';

export interface DrillMachine extends RestoredMachine {
  /** Disk space of its files and its image, bytes. */
  readonly bytes: number;
}

/** Maximum machines considered. */
const CANDIDATES = 50;

/** The machine with the smallest disk, preferring running ones; null: the point has none. */
export async function chooseMachine(
  repository: Repository,
  manifest: Manifest,
  reads: Reads,
): Promise<DrillMachine | null> {
  const machines = await new DrillStore(reads).machines(CANDIDATES);
  const bytesOf = await spaceByOwner(repository, manifest, 'machines');
  const images = machines.length === 0 ? new Map() : await spaceByOwner(repository, manifest, 'images');
  const there = machines.flatMap((machine) => {
    const bytes = bytesOf.get(machine.vm_id);
    return bytes === undefined ? [] : { ...machine, bytes: bytes + (images.get(machine.image_id) ?? 0) };
  });
  const ran = there.filter(({ ran }) => ran === 1);
  const best = (ran.length > 0 ? ran : there).toSorted((one, other) => one.bytes - other.bytes)[0];
  return best ?? null;
}

/** Whether a file of the recovery point belongs to that machine or its image. */
export function isOfMachine({ vm_id, image_id }: RestoredMachine, path: string): boolean {
  return path.startsWith(`vms/${vm_id}/`) || path.startsWith(`images/${image_id}.`);
}

/** Disk space by the first name below the component's folder, without its ending. */
async function spaceByOwner(
  repository: Repository,
  { components }: Manifest,
  name: string,
): Promise<Map<string, number>> {
  const space = new Map<string, number>();
  const component = components.find((one) => one.name === name);
  if (component === undefined) return space;
  for await (const entry of entriesOf(repository, component)) {
    const owner = entry.path.split('/')[1]?.replace(/\..*$/, '') ?? '';
    space.set(owner, (space.get(owner) ?? 0) + spaceOf(repository, entry));
  }
  return space;
}
