/** The catalogue: fixed constants. */
import { AppError } from '../platform/errors.ts';

export interface InstanceType {
  readonly name: string;
  readonly vcpus: number;
  readonly memoryMb: number;
  readonly diskGb: number;
  /** Micro-credits per hour (one credit is one dollar). */
  readonly priceMicro: number;
}

const GIB_MB = 1024;

export const INSTANCE_TYPES: readonly InstanceType[] = [
  { name: 't2.micro', vcpus: 1, memoryMb: 1 * GIB_MB, diskGb: 30, priceMicro: 11_600 },
  { name: 't2.small', vcpus: 1, memoryMb: 2 * GIB_MB, diskGb: 50, priceMicro: 23_000 },
  { name: 't2.medium', vcpus: 2, memoryMb: 4 * GIB_MB, diskGb: 100, priceMicro: 46_400 },
  { name: 'c5.large', vcpus: 2, memoryMb: 4 * GIB_MB, diskGb: 200, priceMicro: 85_000 },
  { name: 'c5.xlarge', vcpus: 4, memoryMb: 8 * GIB_MB, diskGb: 400, priceMicro: 170_000 },
  { name: 'r5.large', vcpus: 2, memoryMb: 16 * GIB_MB, diskGb: 500, priceMicro: 126_000 },
  { name: 'p3.2xlarge', vcpus: 8, memoryMb: 64 * GIB_MB, diskGb: 1024, priceMicro: 3_060_000 },
];

export function findInstanceType(name: string): InstanceType | undefined {
  return INSTANCE_TYPES.find((type) => type.name === name);
}

/** Why a machine of `memoryMb` never starts on a host with `availableMb` for all; null: it can start. */
export function whyTooLarge(memoryMb: number, availableMb: number): string | null {
  if (memoryMb <= availableMb) return null;
  const available = `all virtual machines of this host together may have ${gigabytes(availableMb)}`;
  return `It needs ${gigabytes(memoryMb)} of memory, and ${available}`;
}

const NOT_SOON_SECONDS = 3600;

/** Throws `insufficient_capacity` if whyTooLarge() returns a reason. */
export function assertNotTooLarge(memoryMb: number, availableMb: number): void {
  const reason = whyTooLarge(memoryMb, availableMb);
  if (reason === null) return;
  throw new AppError('insufficient_capacity', `The virtual machine is too large for this host. ${reason}`, {
    hint: 'Use a smaller instance type, or ask the operator of this cloud for more memory for machines',
    retryAfterSeconds: NOT_SOON_SECONDS,
  });
}

/** Rounded down. */
function gigabytes(megabytes: number): string {
  return `${Math.floor((megabytes / GIB_MB) * 10) / 10} GB`;
}
