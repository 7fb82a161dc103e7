/** One delivery attempt: a POST and its result. */
import type { Clock } from '../platform/clock.ts';
import { type Outbound, OutboundRefused } from '../platform/outbound.ts';
import { parseRetryAfter } from '../resources/retry-schedule.ts';
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
  /** When the attempt began, ms since 1970. */
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
  // Decoded as a stream, so that a cut character is left out; SQLite's texts end at a NUL.
  return new TextDecoder().decode(kept, { stream: true }).replaceAll('\0', '\ufffd');
}
