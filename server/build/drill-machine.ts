/** The machine of a restore drill: one that the point has, booted without a network card. */
import { setTimeout as sleep } from 'node:timers/promises';
import { guestSpec } from '../compute/machines/runs.ts';
import { VmStore } from '../compute/machines/vm-store.ts';
import type { Reads } from '../metadata/metadata.ts';
import { readHostMemory } from '../platform/host-memory.ts';
import { CheckSkipped } from '../recovery/drill/drill-checks.ts';
import { DrillStore, type RestoredMachine } from '../recovery/drill/drill-store.ts';
import { entriesOf, type Manifest } from '../recovery/points/manifest.ts';
import { spaceOf } from '../recovery/points/restore.ts';
import type { Repository } from '../recovery/repository/repository.ts';
import type { Cloud } from './cloud.ts';

export interface DrillMachine extends RestoredMachine {
  /** Space of its files and of its image, bytes. */
  readonly bytes: number;
}

/** Machines that are looked at. */
const CANDIDATES = 50;
/** An emulated boot on a busy host takes minutes. */
const WITHIN_MS = 10 * 60_000;
const STEP_MS = 500;
/** QEMU's own. */
const OVERHEAD_MB = 512;
const SHOWN_CHARACTERS = 60;
const CONSOLE_BYTES = 16_384;

/** The one with the smallest disk, of those that ran if any did; null: the point has none. */
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

/** Whether a file of the point is of that machine or its image. */
export function isOfMachine({ vm_id, image_id }: RestoredMachine, path: string): boolean {
  return path.startsWith(`vms/${vm_id}/`) || path.startsWith(`images/${image_id}.`);
}

/** Space by the first name below the component's folder, without its ending. */
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

/** Boots it to its first sign of life, and ends it. Rejects when there is none. */
export async function bootMachine(
  { within: { base, compute } }: Cloud,
  { vm_id: id, name, memory_mb: memoryMb }: DrillMachine,
): Promise<string> {
  const { hypervisor } = compute;
  const { isUsable, problem } = await hypervisor.readiness();
  if (!isUsable) throw new CheckSkipped(`not booted: ${problem}`);
  const freeMb = Math.floor(readHostMemory().availableBytes / 2 ** 20);
  const neededMb = memoryMb + OVERHEAD_MB;
  if (freeMb < neededMb)
    throw new CheckSkipped(`not booted: ${neededMb} MiB of memory are needed, ${freeMb} MiB are free`);
  const row = await new VmStore(base.metadata).find(id);
  if (row === undefined) throw new Error(`${name} (${id}) has no row`);
  try {
    const { accel } = await hypervisor.start(guestSpec(row));
    return `${name} (${id}) boots with ${accel}: ${await signOfLife(compute, id)}`;
  } finally {
    await hypervisor.stop(id, { graceMs: 0 });
  }
}

async function signOfLife({ hypervisor }: Cloud['within']['compute'], id: string): Promise<string> {
  for (let waited = 0; waited < WITHIN_MS; waited += STEP_MS) {
    await sleep(STEP_MS);
    const text = Buffer.from(await hypervisor.consoleLog(id, CONSOLE_BYTES)).toString('utf8');
    const said = printable(text);
    if (/kernel panic/i.test(said))
      throw new Error(`the guest kernel panicked: ${said.slice(-SHOWN_CHARACTERS)}`);
    if (said !== '') return `the last console output is “${said.slice(-SHOWN_CHARACTERS).trim()}”`;
    const { running, end } = await hypervisor.inspect(id);
    if (!running) throw new Error(`the machine ended unexpectedly (${end?.cause ?? 'unknown cause'})`);
    const sample = await hypervisor.sample(id);
    if (sample !== null && sample.memoryTotalBytes !== null) return 'the guest system reports its memory';
  }
  throw new Error(`no sign of life within ${WITHIN_MS / 60_000} minutes`);
}

/** Without control sequences and white space. */
function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is to be removed
  const plain = text.replace(/\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-_])/g, '').replace(/[^\x20-\x7e]+/g, ' ');
  return plain.replace(/ +/g, ' ').trim();
}
