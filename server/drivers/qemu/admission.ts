/** Whether this host has memory for one more guest. */
import { AppError } from '../../platform/errors.ts';
import { type HostMemory, readHostMemory } from '../../platform/host-memory.ts';
import type { GuestRuns } from './guest-runs.ts';

const MIB = 1024 * 1024;
/** What a guest takes while it boots; the rest of its memory comes when it is used. */
const FIRST_TOUCH_BYTES = 256 * MIB;
/** What is kept for the host: this share of its memory, and no more than that many bytes. */
const HOST_KEEPS_SHARE = 1 / 8;
const HOST_KEEPS_AT_MOST_BYTES = 512 * MIB;

/** What must be available for one guest to start when no other is starting. */
export function neededForGuest({ totalBytes }: Pick<HostMemory, 'totalBytes'>): number {
  return FIRST_TOUCH_BYTES + Math.min(HOST_KEEPS_AT_MOST_BYTES, totalBytes * HOST_KEEPS_SHARE);
}

/**
 * Throws `insufficient_capacity` when the guest would take memory that the host has to keep.
 *
 * The rule: what the host says it can still give, less what guests that boot just now (`starting`, and those
 * that were begun a moment ago) have not touched yet of a first share, must leave room for one more such
 * share and for the host. The full size of guests is not counted: most never use it, and the largest type is
 * to start on a host smaller than itself. When promises are called in all at once, a guest ends, not Cloudlet
 * (the oom score).
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
      hint: isEmpty ? `no machine runs: ${moreMemory(memory)}` : 'stop a machine, or try again later',
      retryAfterSeconds: 30,
    },
  );
}

/** What an operator can do. */
export function moreMemory({ isLimited }: Pick<HostMemory, 'isLimited'>): string {
  const more = isLimited
    ? 'raise the memory limit of its container or service'
    : 'give this host more memory';
  return `${more}, or end other programs`;
}
