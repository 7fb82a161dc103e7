/** Token buckets in memory, one per caller; and the two families of headers that tell about them. */
import type { Clock } from '../clock.ts';
import { AppError } from '../errors.ts';

export interface RateLimit {
  /** Shown in the headers. */
  readonly name: string;
  readonly requests: number;
  readonly windowSeconds: number;
}

interface Bucket {
  tokens: number;
  updatedAt: number;
}

/** Callers remembered at most; beyond it the oldest is forgotten, which only ever grants tokens. */
const MAX_BUCKETS = 100_000;

/** Sums of fractions end a hair below the whole: who waited as Retry-After said must not pay for that. */
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
   * Takes one token of `caller` and writes the headers. Throws AppError `rate_limited` when there is none.
   * Headers: RateLimit and RateLimit-Policy of draft-ietf-httpapi-ratelimit-headers, and X-RateLimit-*.
   */
  take(caller: string, headers: Record<string, string>): void {
    const now = this.#clock.monotonic();
    const bucket = this.#bucketOf(caller, now);
    const allowed = bucket.tokens >= 1 - ROUNDING;
    if (allowed) bucket.tokens = Math.max(0, bucket.tokens - 1);
    const left = Math.floor(bucket.tokens);
    const resetSeconds = Math.ceil(this.#secondsFor(this.limit.requests - bucket.tokens));
    headers['ratelimit-policy'] = this.#policy;
    headers.ratelimit = `"${this.limit.name}";r=${left};t=${resetSeconds}`;
    headers['x-ratelimit-limit'] = String(this.limit.requests);
    headers['x-ratelimit-remaining'] = String(left);
    headers['x-ratelimit-reset'] = String(Math.ceil(this.#clock.now() / 1000) + resetSeconds);
    if (!allowed) throw this.#refusal(bucket);
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
        hint: 'Wait as long as Retry-After says; the operator may raise the limit',
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
