/** The expected cost of a month at its end. */

const HOUR_MS = 3_600_000;

/**
 * Credits at the end of the month (UTC) of `now` (ms) if usage stays the same.
 *
 * @param cost credits of this month up to `asOf` (ms)
 * @param perHour credits per hour at the current usage
 */
export function costAtMonthEnd(cost: number, perHour: number, { asOf, now = Date.now() }: Moments): number {
  const today = new Date(now);
  const end = Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + 1);
  return cost + (perHour * Math.max(0, end - Math.min(asOf, now))) / HOUR_MS;
}

interface Moments {
  readonly asOf: number;
  readonly now?: number;
}
