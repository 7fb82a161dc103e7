/** One delivery attempt: a POST and its result. */
import type { Clock } from '../platform/clock.ts';
import { type Outbound, OutboundRefused } from '../platform/outbound.ts';
import { signedHeaders } from './signature.ts';

export interface Outgoing {
  readonly url: string;
  readonly eventId: string;
  readonly body: string;
  /** In the form `whsec_…`, the current one first. */
  readonly secrets: readonly string[];
  readonly signal: AbortSignal;
}

export interface AttemptResult {
  /** When it began, ms since 1970. */
  readonly at: number;
  /** null: there was no response. */
  readonly status: number | null;
  readonly durationMs: number;
  /** The first 1 KiB of the response; null: there was none. */
  readonly response: string | null;
  /** Why there was no response, in words for the webhook's owner. */
  readonly error: string | null;
  /** Retry-After of the receiver, ms; null: none. */
  readonly retryAfterMs: number | null;
}

const TOTAL_MS = 10_000;
const KEPT_BYTES = 1024;
/** Maximum bytes read of a response, so that a receiver with a short one can finish. */
const READ_BYTES = 64 * 1024;
const NO_STATUS = { status: null, response: null, retryAfterMs: null };

/** Rejects only when `signal` was aborted. */
export async function attemptDelivery(
  { outbound, clock }: { readonly outbound: Outbound; readonly clock: Clock },
  { url, eventId, body, secrets, signal }: Outgoing,
): Promise<AttemptResult> {
  const at = clock.now();
  const begin = clock.monotonic();
  const took = () => Math.round(clock.monotonic() - begin);
  const message = { id: eventId, timestamp: Math.floor(at / 1000), body };
  try {
    const answer = await outbound.fetch({
      url,
      method: 'POST',
      body: Buffer.from(body),
      totalMs: TOTAL_MS,
      signal,
      headers: { 'content-type': 'application/json', ...signedHeaders(message, secrets) },
      // The limit is applied below; a long response is no failure.
      maxBytes: Number.MAX_SAFE_INTEGER,
    });
    const response = await readBeginning(answer.bytes, signal);
    const retryAfterMs = parseRetryAfter(answer.retryAfter, at);
    return { at, status: answer.status, durationMs: took(), response, error: null, retryAfterMs };
  } catch (error) {
    signal.throwIfAborted();
    const words = error instanceof OutboundRefused ? error.message : 'the request could not be sent';
    return { ...NO_STATUS, at, durationMs: took(), error: words };
  }
}

/** The status decides, so a truncated response counts as a complete one. */
async function readBeginning(bytes: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<string> {
  const pieces: Uint8Array[] = [];
  let total = 0;
  try {
    for await (const piece of bytes) {
      if (total < KEPT_BYTES) pieces.push(piece);
      total += piece.length;
      if (total > READ_BYTES) break;
    }
  } catch {
    signal.throwIfAborted();
  }
  const kept = Buffer.concat(pieces).subarray(0, KEPT_BYTES);
  // Decoded as a stream, so that a character cut in two is left out; SQLite's texts end at a NUL.
  return new TextDecoder().decode(kept, { stream: true }).replaceAll('\0', '\ufffd');
}

/** Retry schedule of a failed delivery. */
const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Delays after the first attempt, the second, …; after the last it has failed. */
const DELAYS_MS = [
  ...[5 * SECOND_MS, 5 * MINUTE_MS, 30 * MINUTE_MS],
  ...[2 * HOUR_MS, 5 * HOUR_MS, 10 * HOUR_MS, 10 * HOUR_MS],
];
/** Maximum share added at random, so that deliveries that failed together are not retried together. */
const JITTER = 0.1;
/** Maximum Retry-After that is honoured. */
const MAX_RETRY_AFTER_MS = 24 * HOUR_MS;

/** Upper bound of the time to the next attempt, unless the wall clock was set back. */
export const MAX_DELAY_MS = MAX_RETRY_AFTER_MS;
export const MAX_TRIES = DELAYS_MS.length + 1;

export interface Retry {
  /** Attempts so far, 1 or more. */
  readonly tries: number;
  /** A random number from 0 to 1. */
  readonly chance: number;
  /** Delay that the receiver asked for, ms; null: none. */
  readonly retryAfterMs: number | null;
}

/** Delay before the next attempt, ms; null: it was the last. */
export function retryDelayMs({ tries, chance, retryAfterMs }: Retry): number | null {
  const delay = DELAYS_MS[tries - 1];
  if (delay === undefined) return null;
  const asked = Math.min(retryAfterMs ?? 0, MAX_RETRY_AFTER_MS);
  return Math.max(Math.round(delay * (1 + JITTER * chance)), asked);
}

/** A `Retry-After` header, in seconds or as a date, as ms from `now`; null when it is neither. */
export function parseRetryAfter(text: string | null, now: number): number | null {
  if (text === null) return null;
  const trimmed = text.trim();
  if (/^\d{1,9}$/.test(trimmed)) return Number(trimmed) * SECOND_MS;
  const date = /^[A-Z][a-z]{2}, /.test(trimmed) ? Date.parse(trimmed) : Number.NaN;
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}
