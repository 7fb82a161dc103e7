/** Which readings a caller asks for. */
import { readTime } from '../platform/clock.ts';
import { invalidField } from '../platform/errors.ts';
import { COARSE_STEP, FINE_STEP } from './samples-store.ts';

export interface RangeText {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** s */
  readonly step?: number | undefined;
}

export interface MetricsRange {
  /** ms since 1970, included. */
  readonly from: number;
  /** Not included. */
  readonly to: number;
  readonly stepMs: number;
  /** Before this moment readings are coarse. */
  readonly fineFrom: number;
}

const HOUR_MS = 3_600_000;
const COARSE_MS = COARSE_STEP * 1000;
/** More would be a file, not a chart: thirty days of 300 s are 8,640. */
const MAX_STEPS = 11_000;

/** Throws `invalid_request` that names the field. */
export function readRange(text: RangeText, now: number): MetricsRange {
  // A reading of this very moment belongs to it.
  const to = text.to === undefined ? now + 1 : readTime('to', text.to);
  const from = text.from === undefined ? to - HOUR_MS : readTime('from', text.from);
  if (from >= to) throw invalidField('from', 'must lie before to');
  // Only whole coarse steps: a reading belongs to a coarse row or is fine, never both.
  const fineFrom = Math.ceil((now - HOUR_MS) / COARSE_MS) * COARSE_MS;
  // Who asks for the last hour means it, although some seconds of it have passed meanwhile.
  const isFine = from >= now - HOUR_MS - COARSE_MS;
  const step = text.step ?? (isFine ? FINE_STEP : COARSE_STEP);
  if (!isFine && step % COARSE_STEP !== 0) {
    throw invalidField('step', `must be a multiple of ${COARSE_STEP} for readings older than an hour`);
  }
  if ((to - from) / (step * 1000) > MAX_STEPS) {
    throw invalidField('step', `is too short for this range: at most ${MAX_STEPS} steps`);
  }
  return { from, to, stepMs: step * 1000, fineFrom: isFine ? from : fineFrom };
}
