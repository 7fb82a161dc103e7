/**
 * Slows the guessing of passwords: failures are counted per name and network, so that a flood from one
 * network never locks the owner out from another. In memory and bounded; a restart forgets.
 */
import { isIPv4, isIPv6 } from 'node:net';
import type { Clock } from '../clock.ts';
import { AppError } from '../errors.ts';

/** Pairs remembered at most; beyond it the one longest without a failure is forgotten. */
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

/** Who tries to log in: a folded name, as typed, and the caller's address. */
export interface Attempt {
  readonly name: string;
  readonly address: string;
}

export class LoginThrottle {
  readonly #clock: Clock;
  readonly #freeFailures: number;
  readonly #maxPairs: number;
  readonly #failures = new Map<string, Failures>();

  /** `freeFailures`: how many may fail before attempts are delayed. */
  constructor(deps: { readonly clock: Clock; readonly freeFailures: number; readonly maxPairs?: number }) {
    this.#clock = deps.clock;
    this.#freeFailures = deps.freeFailures;
    this.#maxPairs = deps.maxPairs ?? MAX_PAIRS;
  }

  /** Throws `rate_limited` while the pair must wait. */
  check(attempt: Attempt): void {
    const known = this.#failures.get(keyOf(attempt));
    if (known === undefined) return;
    const waitMs = known.blockedUntil - this.#clock.monotonic();
    if (waitMs <= 0) return;
    throw new AppError('rate_limited', 'Too many failed logins of this account from this network', {
      retryAfterSeconds: Math.ceil(waitMs / 1000),
      hint: 'Wait as long as Retry-After says; logins from other networks are not affected',
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

function keyOf({ name, address }: Attempt): string {
  return `${networkOf(address)} ${name.slice(0, 256)}`;
}

/** The /24 of an IPv4 address or the /64 of an IPv6 one; an IPv4-mapped address counts as IPv4. */
export function networkOf(address: string): string {
  const plain = address.replace(/%.*$/, '').toLowerCase();
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(plain)?.[1] ?? plain;
  if (isIPv4(mapped)) return `${mapped.slice(0, mapped.lastIndexOf('.'))}.0/24`;
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.split('::');
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    // A dotted tail stands for two groups, and never reaches the first four unless the head is that long.
    const tailGroups = tail === '' ? 0 : tail.split(':').length + (tail.includes('.') ? 1 : 0);
    while (groups.length < Math.min(4, 8 - tailGroups)) groups.push('0');
    if (groups.length < 4) groups.push(...tail.split(':').slice(0, 4 - groups.length));
  }
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}
