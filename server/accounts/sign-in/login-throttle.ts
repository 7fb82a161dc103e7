/**
 * Slows the guessing of passwords: failures are counted per network, so that a flood from one network never
 * locks the owner out from another. In memory and bounded; a restart forgets.
 */

import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { networkOf } from '../../platform/host/caller-networks.ts';

/** Maximum tracked pairs; above it, the pair with the oldest failure is dropped. */
const MAX_PAIRS = 50_000;
const MAX_DELAY_MS = 15 * 60_000;
/** Without a failure for this long a pair is forgotten. */
const FORGET_AFTER_MS = 60 * 60_000;

interface Failures {
  count: number;
  lastAt: number;
  /** Monotonic time before which no attempt is made. */
  blockedUntil: number;
}

/** A password attempt. */
export interface Attempt {
  /** Identifies the account or name that failures are counted for: see `typedName` and `ofAccount`. */
  readonly target: string;
  /** The caller's address. */
  readonly address: string;
}

/** Counts by the typed name, folded, so that the result does not reveal whether an account has that name. */
export function typedName(name: string): string {
  return `name ${name.slice(0, 256)}`;
}

/** Counts by account, whether its user name or its e-mail address was typed. */
export function ofAccount(accountId: number): string {
  return `account ${accountId}`;
}

/** Wording of the refusal after failed attempts. */
interface ThrottleWords {
  readonly detail: string;
  readonly unaffected: string;
}

const OF_LOGINS: ThrottleWords = {
  detail: 'Too many failed logins of this account from this network',
  unaffected: 'logins from other networks',
};

export class LoginThrottle {
  readonly #clock: Clock;
  readonly #freeFailures: number;
  readonly #maxPairs: number;
  readonly #failures = new Map<string, Failures>();

  /** `freeFailures`: number of failures before attempts are delayed. */
  constructor(deps: { readonly clock: Clock; readonly freeFailures: number; readonly maxPairs?: number }) {
    this.#clock = deps.clock;
    this.#freeFailures = deps.freeFailures;
    this.#maxPairs = deps.maxPairs ?? MAX_PAIRS;
  }

  /** Time until the next attempt of this pair is accepted, ms; 0: now. */
  waitMs(attempt: Attempt): number {
    const blockedUntil = this.#failures.get(keyOf(attempt))?.blockedUntil ?? 0;
    return Math.max(0, blockedUntil - this.#clock.monotonic());
  }

  /** Throws `rate_limited` while the pair must wait. */
  assertAllowed(attempt: Attempt, refusal: ThrottleWords = OF_LOGINS): void {
    const waitMs = this.waitMs(attempt);
    if (waitMs === 0) return;
    throw new AppError('rate_limited', refusal.detail, {
      retryAfterSeconds: Math.ceil(waitMs / 1000),
      hint: `Wait for the number of seconds in Retry-After; ${refusal.unaffected} are not affected`,
    });
  }

  /** Counts a failure. From the `freeFailures`th on the wait doubles: 1 s, 2 s, 4 s, … up to 15 minutes. */
  failed(attempt: Attempt): void {
    const key = keyOf(attempt);
    const now = this.#clock.monotonic();
    const known = this.#failures.get(key);
    const count = known && now - known.lastAt < FORGET_AFTER_MS ? known.count + 1 : 1;
    const beyond = count - this.#freeFailures;
    const delayMs = beyond < 0 ? 0 : Math.min(1000 * 2 ** beyond, MAX_DELAY_MS);
    this.#failures.delete(key);
    this.#failures.set(key, { count, lastAt: now, blockedUntil: now + delayMs });
    if (this.#failures.size <= this.#maxPairs) return;
    const oldest = this.#failures.keys().next().value;
    if (oldest !== undefined) this.#failures.delete(oldest);
  }

  succeeded(attempt: Attempt): void {
    this.#failures.delete(keyOf(attempt));
  }
}

function keyOf({ target, address }: Attempt): string {
  return `${networkOf(address)} ${target}`;
}
