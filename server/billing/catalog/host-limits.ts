/** The limits of a plan that follow from the size of the host: nobody can take all of it. */
import type { Limits } from './quotas.ts';

export interface HostSize {
  /** Of the disk with the data directory. */
  readonly diskBytes: number;
  /** What machines that run may have together, MiB. */
  readonly memoryMb: number;
  /** The largest machine that this host can start, MiB. */
  readonly largestMb: number;
  readonly cores: number;
}

const GIB = 2 ** 30;
const GIB_MB = 1024;
/** Rows and small files, which take next to nothing of any host. */
const SMALL_THINGS = { buckets: 1000, databases: 50 };
/** What the tour and an ordinary test-suite need, on the smallest host too. */
const LEAST = { vms: 25, vcpus: 128, memoryMb: 4 * GIB_MB, storageBytes: GIB };

/** Half of memory and disk, and whichever machine this host can start; a small host gives more than half. */
export function limitsOfHost({ diskBytes, memoryMb, largestMb, cores }: HostSize): Limits {
  const leastMb = Math.min(memoryMb, LEAST.memoryMb);
  return {
    // A machine that does not run takes little: twice as many as can run, of the smallest type.
    vms: Math.max(LEAST.vms, 2 * Math.floor(memoryMb / GIB_MB)),
    vcpus: Math.max(LEAST.vcpus, 16 * cores),
    memory_mb: Math.max(wholeOf(memoryMb / 2, GIB_MB), largestMb, leastMb),
    storage_bytes: Math.max(wholeOf(diskBytes / 2, GIB), LEAST.storageBytes),
    ...SMALL_THINGS,
  };
}

function wholeOf(amount: number, unit: number): number {
  return Math.floor(amount / unit) * unit;
}
