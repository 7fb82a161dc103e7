/** What a guest's process may take of this host, by its control group. */

export interface GuestSize {
  readonly vcpus: number;
  readonly memoryMb: number;
}

/** The group of all guests. */
export const CGROUPS = 'cloudlet-machines';
const MIB = 1024 * 1024;
/** QEMU's own: 150 MiB were seen, with half of its cache of translated code in use; and room to spare. */
const OVERHEAD_BYTES = 512 * MIB;
/** Page tables and the like, which grow with the guest. */
const OVERHEAD_SHARE = 1 / 64;
const PERIOD_US = 100_000;
/** For the threads that do a guest's input and output: of one processor. */
const IO_SHARE = 0.25;
/** QEMU takes up to 64 threads for disks, and some of its own. */
const OTHER_THREADS = 128;

/** What is written into which file of a guest's group. */
export function limitsOf({ vcpus, memoryMb }: GuestSize): Readonly<Record<string, string>> {
  const memory = memoryMb * MIB;
  return {
    'memory.max': String(memory + OVERHEAD_BYTES + Math.ceil(memory * OVERHEAD_SHARE)),
    // Half of a guest is no guest.
    'memory.oom.group': '1',
    'cpu.max': `${Math.round((vcpus + IO_SHARE) * PERIOD_US)} ${PERIOD_US}`,
    'pids.max': String(vcpus + OTHER_THREADS),
  };
}
