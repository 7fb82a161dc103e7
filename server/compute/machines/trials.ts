/** Boots a machine of a restored cloud for a drill, without a network card. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Reads } from '../../metadata/metadata.ts';
import { readHostMemory } from '../../platform/host/host-facts.ts';
import { CheckSkipped } from '../../recovery/drill/drill-checks.ts';
import type { Hypervisor } from '../hypervisor.ts';
import { guestSpec } from './runs.ts';
import { VmStore } from './vm-store.ts';

export interface MachineTrial {
  readonly reads: Reads;
  readonly hypervisor: Pick<Hypervisor, 'readiness' | 'start' | 'stop' | 'consoleLog' | 'inspect' | 'sample'>;
}

/** An emulated boot on a busy host takes minutes. */
const WITHIN_MS = 10 * 60_000;
const STEP_MS = 500;
/** Memory of QEMU itself. */
const OVERHEAD_MB = 512;
const SHOWN_CHARACTERS = 60;
const CONSOLE_BYTES = 16_384;

interface TriedMachine {
  readonly vm_id: string;
  readonly name: string;
  readonly memory_mb: number;
}

/**
 * Boots the machine until its first sign of life, and ends it. Rejects if there is none; throws CheckSkipped
 * if this host cannot boot it.
 */
export async function tryMachine(
  { reads, hypervisor }: MachineTrial,
  { vm_id: id, name, memory_mb: memoryMb }: TriedMachine,
): Promise<string> {
  const { isUsable, problem } = await hypervisor.readiness();
  if (!isUsable) throw new CheckSkipped(`not booted: ${problem}`);
  const freeMb = Math.floor(readHostMemory().availableBytes / 2 ** 20);
  const neededMb = memoryMb + OVERHEAD_MB;
  if (freeMb < neededMb)
    throw new CheckSkipped(`not booted: ${neededMb} MiB of memory are needed, ${freeMb} MiB are free`);
  const store = new VmStore(reads);
  const row = await store.find(id);
  if (row === undefined) throw new Error(`${name} (${id}) is missing from the metadata`);
  try {
    const { accel } = await hypervisor.start({ ...guestSpec(row), hasRun: await store.hasRun(id) });
    return `${name} (${id}) boots with ${accel}: ${await signOfLife(hypervisor, id)}`;
  } finally {
    await hypervisor.stop(id, { graceMs: 0 });
  }
}

async function signOfLife(hypervisor: MachineTrial['hypervisor'], id: string): Promise<string> {
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
