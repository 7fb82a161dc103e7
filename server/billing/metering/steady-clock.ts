/**
 * The clock that charges are based on: it advances by the smaller of the wall clock's and the host's
 * monotonic clock's advance, so that a wall clock that is set or jitters is never billed. It begins as wall
 * time, is stored each minute, and continues from there when Cloudlet starts again.
 */

import type { Clock } from '../../platform/clock.ts';
import type { Meter } from './meters.ts';

/** One moment, read on all clocks. */
export interface Anchor {
  readonly bootId: string;
  /** The host's uptime, ms. */
  readonly uptimeMs: number;
  readonly wallMs: number;
  readonly steadyMs: number;
}

export interface SteadyClockDeps {
  readonly clock: Clock;
  /** Names the host's current boot, or this run of a cluster node. */
  readonly bootId: string;
  /** The last one stored; null: none yet. */
  readonly anchor: Anchor | null;
}

/**
 * After a reboot only the wall clock is available. A longer time than this is not trusted, and not
 * charged: two windows.
 */
const MAX_OFF_MS = 2 * 3_600_000;

/** An anchor is stored each minute: an older one is of a node that has ended, or the clock was set. */
const MAX_FOLLOWED_MS = 3 * 60_000;

/** Replaces the boot id in the anchor of a restored cloud: the time since is not charged at all. */
export const RESTORED = 'restored';

export class SteadyClock {
  readonly #deps: SteadyClockDeps;
  #anchor: Anchor;
  /** The previous anchor, possibly of the previous process. */
  #before: Anchor;
  /** Time between the previous process's anchor and now that is not charged, ms. */
  readonly uncountedMs: number;

  constructor(deps: SteadyClockDeps) {
    this.#deps = deps;
    const { clock, bootId, anchor } = deps;
    const now = { bootId, uptimeMs: clock.uptime(), wallMs: clock.now() };
    if (anchor === null) {
      this.#anchor = { ...now, steadyMs: now.wallMs };
      this.#before = this.#anchor;
      this.uncountedMs = 0;
      return;
    }
    const counted = countedSince(anchor, now);
    this.#anchor = { ...now, steadyMs: anchor.steadyMs + counted };
    this.#before = anchor;
    this.uncountedMs = Math.max(0, now.wallMs - anchor.wallMs - counted);
  }

  /** Whole ms. Never goes back between two calls of reanchor(). */
  now(): number {
    const { clock } = this.#deps;
    return this.#anchor.steadyMs + elapsed(this.#anchor, { uptimeMs: clock.uptime(), wallMs: clock.now() });
  }

  /**
   * The steady time of a past moment, given as wall time. Not later than now(). Across a gap that
   * was not counted, because the wall clock was set or the host was off, the distance to the last
   * anchor before the moment counts: the distance to now would refund time that was never charged.
   */
  at(wallMs: number): number {
    const now = this.now();
    const wallNow = this.#deps.clock.now();
    const back = now - (wallNow - wallMs);
    const isSinceAnchor = back >= this.#anchor.steadyMs && wallMs <= wallNow;
    const from = isSinceAnchor ? this.#anchor : this.#before;
    if (wallMs <= wallNow && back >= from.steadyMs) return back;
    return Math.min(now, from.steadyMs + wallMs - from.wallMs);
  }

  /**
   * Continues from the anchor that another cluster node stored: all nodes charge by the lease
   * holder's clock. Setting a clock in between charges nobody.
   */
  follow(anchor: Anchor): void {
    const { clock, bootId } = this.#deps;
    const now = { uptimeMs: clock.uptime(), wallMs: clock.now() };
    const since = now.wallMs - anchor.wallMs;
    if (anchor.bootId === bootId || since < 0 || since > MAX_FOLLOWED_MS) return;
    this.#before = this.#anchor;
    this.#anchor = { bootId, ...now, steadyMs: anchor.steadyMs + since };
  }

  /** Whether this process stored the anchor. */
  isOwn({ bootId }: Anchor): boolean {
    return bootId === this.#deps.bootId;
  }

  /**
   * The anchor to store, each minute: a jump of the wall clock costs at most the time since the last call.
   */
  reanchor(): Anchor {
    const { clock, bootId } = this.#deps;
    this.#before = this.#anchor;
    this.#anchor = { bootId, uptimeMs: clock.uptime(), wallMs: clock.now(), steadyMs: this.now() };
    return this.#anchor;
  }
}

type Moment = Pick<Anchor, 'uptimeMs' | 'wallMs'>;

function elapsed(from: Moment, to: Moment): number {
  return Math.floor(Math.max(0, Math.min(to.wallMs - from.wallMs, to.uptimeMs - from.uptimeMs)));
}

function countedSince(anchor: Anchor, now: Omit<Anchor, 'steadyMs'>): number {
  if (anchor.bootId === RESTORED) return 0;
  return anchor.bootId === now.bootId ? elapsed(anchor, now) : offTime(now.wallMs - anchor.wallMs);
}

function offTime(wallMs: number): number {
  return wallMs >= 0 && wallMs <= MAX_OFF_MS ? wallMs : 0;
}

/** Steady time in ticks of the meter. */
export function ticksOf(meter: Meter, steadyMs: number): number {
  return Math.floor(steadyMs / meter.tickMs);
}
