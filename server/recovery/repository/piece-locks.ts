/**
 * Object lock of a target whose points share pieces (decisions/0035). A point must not be removable
 * for some days after it was created, so pieces that a new point shares with earlier ones must be
 * locked again. Doing so at each point would need a request per piece; instead, pieces are locked
 * for half as long again, and a point renews all of its pieces when the locks of the earlier one
 * end too early.
 */
import { type Clock, formatTime, readTime } from '../../platform/clock.ts';
import { PieceSet } from '../drill/verification.ts';
import { type Component, type Manifest, piecesOf } from '../points/manifest.ts';
import type { Repository } from './repository.ts';

const DAY_MS = 86_400_000;
const AT_ONCE = 8;

/** Days for which pieces are locked if points are locked for `lockDays`. */
function heldDays(lockDays: number): number {
  return lockDays + Math.ceil(lockDays / 2);
}

/** The end of a lock on a piece that is stored or renewed now, ms: one day later than relied on. */
export function pieceLockEnd(lockDays: number, now: number): number {
  return now + (heldDays(lockDays) + 1) * DAY_MS;
}

/** The end of a lock on a manifest that is stored now, ms. */
export function pointLockEnd(lockDays: number, now: number): number {
  return now + lockDays * DAY_MS;
}

export interface PieceLocksDeps {
  readonly repository: Repository;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Components of the new point. */
  readonly written: readonly Component[];
  /** The point whose pieces were reused without checking them. */
  readonly earlier: Manifest | undefined;
  /** The new point, created before the first of its pieces was stored. */
  readonly row: { readonly created_at: number };
}

/** For a target that locks pieces. Resolves with the `locked_until` of the new point. */
export async function lockPieces(deps: PieceLocksDeps): Promise<string> {
  const { repository, earlier, row, clock } = deps;
  const { lockDays } = repository;
  const fresh = row.created_at + heldDays(lockDays) * DAY_MS;
  if (earlier === undefined) return formatTime(fresh);
  const promised = earlier.locked_until === undefined ? 0 : readTime('locked_until', earlier.locked_until);
  if (promised >= pointLockEnd(lockDays, clock.now())) return formatTime(Math.min(promised, fresh));
  await renewAll(deps);
  return formatTime(fresh);
}

async function renewAll({ repository, written, signal }: PieceLocksDeps): Promise<void> {
  await repository.renewHead();
  const renewed = new PieceSet();
  const running = new Set<Promise<void>>();
  let failure: unknown;
  for await (const piece of piecesOf(repository, written)) {
    if (!renewed.add(piece)) continue;
    signal.throwIfAborted();
    const work = repository
      .renewLock(piece)
      .catch((error: unknown) => {
        failure ??= error;
      })
      .finally(() => running.delete(work));
    running.add(work);
    if (running.size >= AT_ONCE) await Promise.race(running);
    if (failure !== undefined) break;
  }
  await Promise.all(running);
  if (failure !== undefined) throw failure;
}
