/** Limits of requests: token buckets in memory, of credentials, accounts and addresses. */
import type { Principal } from '../../calls/principal.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { sourceOf } from '../../platform/host/caller-networks.ts';

/** A limit of requests by token buckets. */
export interface RateLimit {
  /** Name shown in the headers. */
  readonly name: string;
  readonly requests: number;
  readonly windowSeconds: number;
}

interface Bucket {
  tokens: number;
  updatedAt: number;
}

/** Maximum callers kept; above it, the oldest is dropped, which only grants it additional tokens. */
const MAX_BUCKETS = 100_000;

/** Tolerance for rounding: a caller who waited for Retry-After must find a token. */
const ROUNDING = 1e-9;

export class RateLimiter {
  readonly limit: RateLimit;
  readonly #clock: Clock;
  readonly #policy: string;
  readonly #perMs: number;
  readonly #buckets = new Map<string, Bucket>();

  constructor(limit: RateLimit, clock: Clock) {
    this.limit = limit;
    this.#clock = clock;
    this.#policy = `"${limit.name}";q=${limit.requests};w=${limit.windowSeconds}`;
    this.#perMs = limit.requests / (limit.windowSeconds * 1000);
  }

  /**
   * Takes one token of `caller` and writes the headers. Throws AppError `rate_limited` if none is left.
   * Headers: RateLimit and RateLimit-Policy of draft-ietf-httpapi-ratelimit-headers, and X-RateLimit-*.
   */
  take(caller: string, headers: Record<string, string>): void {
    const { bucket, isAllowed } = this.#spend(caller);
    this.#tell(bucket, headers);
    if (!isAllowed) throw this.#refusal(bucket);
  }

  /** Like take(), but sets the headers of this limit only on refusal. */
  takeUnseen(caller: string, headers: Record<string, string>): void {
    const { bucket, isAllowed } = this.#spend(caller);
    if (isAllowed) return;
    this.#tell(bucket, headers);
    throw this.#refusal(bucket);
  }

  #spend(caller: string): { readonly bucket: Bucket; readonly isAllowed: boolean } {
    const bucket = this.#bucketOf(caller, this.#clock.monotonic());
    const isAllowed = bucket.tokens >= 1 - ROUNDING;
    if (isAllowed) bucket.tokens = Math.max(0, bucket.tokens - 1);
    return { bucket, isAllowed };
  }

  #tell(bucket: Bucket, headers: Record<string, string>): void {
    const left = Math.floor(bucket.tokens);
    const resetSeconds = Math.ceil(this.#secondsFor(this.limit.requests - bucket.tokens));
    headers['ratelimit-policy'] = this.#policy;
    headers.ratelimit = `"${this.limit.name}";r=${left};t=${resetSeconds}`;
    headers['x-ratelimit-limit'] = String(this.limit.requests);
    headers['x-ratelimit-remaining'] = String(left);
    headers['x-ratelimit-reset'] = String(Math.ceil(this.#clock.now() / 1000) + resetSeconds);
  }

  #secondsFor(tokens: number): number {
    return (tokens * this.limit.windowSeconds) / this.limit.requests;
  }

  #refusal(bucket: Bucket): AppError {
    const { name, requests, windowSeconds } = this.limit;
    return new AppError(
      'rate_limited',
      `More than ${requests} requests in ${windowSeconds} s (limit "${name}")`,
      {
        retryAfterSeconds: this.#secondsFor(1 - bucket.tokens),
        hint: 'Wait for the number of seconds in Retry-After; the operator can raise the limit',
      },
    );
  }

  #bucketOf(caller: string, now: number): Bucket {
    const known = this.#buckets.get(caller);
    if (known) {
      known.tokens = Math.min(this.limit.requests, known.tokens + (now - known.updatedAt) * this.#perMs);
      known.updatedAt = now;
      return known;
    }
    if (this.#buckets.size >= MAX_BUCKETS) {
      const oldest = this.#buckets.keys().next().value;
      if (oldest !== undefined) this.#buckets.delete(oldest);
    }
    const fresh = { tokens: this.limit.requests, updatedAt: now };
    this.#buckets.set(caller, fresh);
    return fresh;
  }
}

/** The caller that limits apply to. */
export interface Caller {
  readonly principal: Principal;
  readonly address: string;
}

/** The limits of every request: per credential and account, or per address without a credential. */
export class CallerLimits {
  readonly #perCaller: RateLimiter;
  readonly #perAccount: RateLimiter;

  constructor(perCaller: RateLimiter, perAccount: RateLimiter) {
    this.#perCaller = perCaller;
    this.#perAccount = perAccount;
  }

  /** Like RateLimiter.take; headers show the credential's limit unless the account's refuses. */
  take({ principal, address }: Caller, headers: Record<string, string>): void {
    const { via, credentialId, accountId } = principal;
    if (via === 'control') return;
    this.#perCaller.take(via === 'nobody' ? addressKey(address) : credentialId, headers);
    if (accountId !== 0) this.#perAccount.takeUnseen(String(accountId), headers);
  }
}

/** Rate limit key of an address. */
export function addressKey(address: string): string {
  return `address:${sourceOf(address)}`;
}
