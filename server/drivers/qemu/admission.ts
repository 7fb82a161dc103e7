/** Whether this host has memory for one more guest. */
import { AppError } from '../../errors.ts';
import type { GuestRuns } from './guest-runs.ts';
import { availableMemory } from './processes.ts';

const MIB = 1024 * 1024;
/** What a guest takes while it boots; the rest of its memory comes when it is used. */
const FIRST_TOUCH_BYTES = 256 * MIB;
const HOST_KEEPS_BYTES = 512 * MIB;

/**
 * Throws `insufficient_capacity` when the guest would take memory that the host has to keep.
 *
 * The rule: what the host says it can still give, less what guests that boot just now (`starting`, and those
 * that were begun a moment ago) have not touched yet of a first share, must leave room for one more such
 * share and for the host. The full size of guests is not counted: most never use it, and the largest type is
 * to start on a host smaller than itself. When promises are called in all at once, a guest ends, not Cloudlet
 * (the oom score).
 */
export function admitGuest(runs: Pick<GuestRuns, 'untouchedBytes'>, starting: number): void {
  const owed = starting * FIRST_TOUCH_BYTES + runs.untouchedBytes(FIRST_TOUCH_BYTES);
  if (availableMemory() - owed - FIRST_TOUCH_BYTES >= HOST_KEEPS_BYTES) return;
  throw new AppError('insufficient_capacity', 'this host has no memory left for another machine', {
    hint: 'stop a machine, or try again later',
    retryAfterSeconds: 30,
  });
}
