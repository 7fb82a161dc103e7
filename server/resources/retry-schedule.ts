/** The retry schedule of outgoing deliveries: webhook events and mail. */
import { randomSecret } from '../platform/ids.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Delays after the first attempt, the second, …; after the last, the delivery has failed. */
const DELAYS_MS = [
  ...[5 * SECOND_MS, 5 * MINUTE_MS, 30 * MINUTE_MS],
  ...[2 * HOUR_MS, 5 * HOUR_MS, 10 * HOUR_MS, 10 * HOUR_MS],
];
/** Maximum random share added, so that deliveries that failed together are not retried together. */
const JITTER = 0.1;
/** Maximum Retry-After that is honoured. */
const MAX_RETRY_AFTER_MS = 24 * HOUR_MS;

/** Upper bound of the time to the next attempt, unless the wall clock was set back. */
export const MAX_DELAY_MS = MAX_RETRY_AFTER_MS;
export const MAX_TRIES = DELAYS_MS.length + 1;

export interface Retry {
  /** Attempts so far, 1 or more. */
  readonly tries: number;
  /** From 0 to 1; default: random. */
  readonly chance?: number;
  /** Delay that the receiver asked for, ms; null: none. */
  readonly retryAfterMs: number | null;
}

/** Delay before the next attempt, ms; null: it was the last. */
export function retryDelayMs({ tries, chance = randomShare(), retryAfterMs }: Retry): number | null {
  const delay = DELAYS_MS[tries - 1];
  if (delay === undefined) return null;
  const asked = Math.min(retryAfterMs ?? 0, MAX_RETRY_AFTER_MS);
  return Math.max(Math.round(delay * (1 + JITTER * chance)), asked);
}

function randomShare(): number {
  return randomSecret(4).readUInt32BE() / 2 ** 32;
}

/** A `Retry-After` header, in seconds or as a date, as ms from `now`; null: neither. */
export function parseRetryAfter(text: string | null, now: number): number | null {
  if (text === null) return null;
  const trimmed = text.trim();
  if (/^\d{1,9}$/.test(trimmed)) return Number(trimmed) * SECOND_MS;
  const date = /^[A-Z][a-z]{2}, /.test(trimmed) ? Date.parse(trimmed) : Number.NaN;
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}
