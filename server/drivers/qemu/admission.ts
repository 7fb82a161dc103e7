/** Whether this host has memory for one more guest. */
import type { GuestSpec } from '../../compute/hypervisor.ts';
import { AppError } from '../../platform/errors.ts';
import { type HostMemory, readHostMemory } from '../../platform/host/host-facts.ts';
import type { GuestRuns } from './guests/guest-runs.ts';

const MIB = 1024 * 1024;
/** A guest uses this much while it boots, and the rest on demand. */
const FIRST_TOUCH_BYTES = 256 * MIB;
/** This share of the host's memory is kept for the host, up to this many bytes. */
const HOST_KEEPS_SHARE = 1 / 8;
const HOST_KEEPS_AT_MOST_BYTES = 512 * MIB;

const RAISE = 'the operator of this cloud can give machines more memory';

type Total = Pick<HostMemory, 'totalBytes'>;

function keptForHost({ totalBytes }: Total): number {
  return Math.min(HOST_KEEPS_AT_MOST_BYTES, totalBytes * HOST_KEEPS_SHARE);
}

/** Required available bytes to start one guest. */
export function neededForGuest(memory: Total): number {
  return FIRST_TOUCH_BYTES + keptForHost(memory);
}

/** Memory for all guests, MiB: total less the host's share, times the overcommit. */
export function memoryForGuests(overcommit: number, memory: Total = readHostMemory()): number {
  return Math.floor(((memory.totalBytes - keptForHost(memory)) * overcommit) / MIB);
}

/** The current guests, and the one to start. */
interface WantedMemory {
  readonly wantedMb: number;
  /** Full sizes of guests that run or are being started, MiB. */
  readonly takenMb: number;
  /** Result of memoryForGuests(). */
  readonly limitMb: number;
}

/**
 * Throws `insufficient_capacity` if guests would have more memory together than this host allows:
 * they use it over time, perhaps long after their start, and then one of them would be killed.
 */
export function assertMemoryFor({ wantedMb, takenMb, limitMb }: WantedMemory): void {
  if (takenMb + wantedMb <= limitMb) return;
  const limit = `of the ${limitMb} MiB available to virtual machines on this host`;
  throw new AppError(
    'insufficient_capacity',
    `this host has no memory left for a machine of ${wantedMb} MiB: other machines use ${takenMb} MiB ${limit}`,
    {
      hint: `stop a machine, choose a smaller instance type, or try again later; ${RAISE}`,
      retryAfterSeconds: 30,
    },
  );
}

/**
 * Throws `insufficient_capacity` when the guest would take memory that the host has to keep.
 *
 * The rule: the available memory of the host, less the part of a first share that booting guests (`starting`,
 * and those started a moment ago) have not touched yet, must be enough for one more such share and for the
 * host's reserve. assertMemoryFor() counts their full sizes. If all guests use their memory at once, a guest
 * is killed and not Cloudlet (OOM score).
 */
export function admitGuest(
  runs: Pick<GuestRuns, 'untouchedBytes' | 'live'>,
  starting: number,
  memory = readHostMemory(),
): void {
  const owed = starting * FIRST_TOUCH_BYTES + runs.untouchedBytes(FIRST_TOUCH_BYTES);
  const available = Math.max(0, memory.availableBytes - owed);
  const needed = neededForGuest(memory);
  if (available >= needed) return;
  const mib = (bytes: number) => `${Math.round(bytes / MIB)} MiB`;
  const figures = `${mib(available)} of ${mib(memory.totalBytes)} are free, ${mib(needed)} are needed`;
  const isEmpty = starting === 0 && runs.live().length === 0;
  throw new AppError(
    'insufficient_capacity',
    `this host has no memory left for another machine: ${figures}`,
    {
      hint: isEmpty ? `no machine is running: ${moreMemory(memory)}` : 'stop a machine, or try again later',
      retryAfterSeconds: 30,
    },
  );
}

/** Advice for an operator. */
export function moreMemory({ isLimited }: Pick<HostMemory, 'isLimited'>): string {
  const more = isLimited
    ? 'raise the memory limit of its container or service'
    : 'give this host more memory';
  return `${more}, or stop other programs`;
}

/** Admits guests while there is memory; starting guests are counted. */
export class Admission {
  readonly #runs: GuestRuns;
  readonly #overcommit: number;
  /** Memory of guests that start, MiB, by vmId. */
  readonly #starting = new Map<string, number>();

  constructor(runs: GuestRuns, overcommit: number) {
    this.#runs = runs;
    this.#overcommit = overcommit;
  }

  /** Result of memoryForGuests(). */
  limitMb(): number {
    return memoryForGuests(this.#overcommit);
  }

  /** Rejects with `insufficient_capacity`, before `launch`, if this host has no memory for the guest. */
  async start<T>({ vmId, memoryMb }: Pick<GuestSpec, 'vmId' | 'memoryMb'>, launch: () => Promise<T>) {
    const takenMb = this.#runs.memoryMb(this.#starting);
    assertMemoryFor({ wantedMb: memoryMb, takenMb, limitMb: this.limitMb() });
    admitGuest(this.#runs, this.#starting.size);
    this.#starting.set(vmId, memoryMb);
    try {
      return await launch();
    } finally {
      this.#starting.delete(vmId);
    }
  }
}
