/** The schedule of recovery points. All times are UTC. */
import { invalidField } from '../../platform/errors.ts';

export const RHYTHMS = ['off', 'hourly', 'daily', 'weekly'] as const;
export type Rhythm = (typeof RHYTHMS)[number];
export const WEEKDAYS = [
  'sunday',
  'monday',
  'tuesday',
  'wednesday',
  'thursday',
  'friday',
  'saturday',
] as const;
type Weekday = (typeof WEEKDAYS)[number];

/** Retention keeps this many points of each kind, see keepers(). */
export const RULES = ['last', 'hourly', 'daily', 'weekly', 'monthly'] as const;
export type Rule = (typeof RULES)[number];
export type KeepRules = Readonly<Record<Rule, number>>;

export interface Schedule {
  readonly every: Rhythm;
  /** `HH:MM`; of an hourly schedule only the minutes count. */
  readonly at: string;
  /** Used by a weekly schedule only. */
  readonly weekday: Weekday;
  readonly keep: KeepRules;
}

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
const PERIODS_MS: Readonly<Record<Rhythm, number>> = {
  off: Number.POSITIVE_INFINITY,
  hourly: HOUR_MS,
  daily: DAY_MS,
  weekly: 7 * DAY_MS,
};

/** The default schedule; `off` if the target is in the data directory. */
export function defaultSchedule(isTargetSet: boolean): Schedule {
  return {
    every: isTargetSet ? 'daily' : 'off',
    at: '03:00',
    weekday: 'sunday',
    keep: { last: 0, hourly: 0, daily: 7, weekly: 4, monthly: 6 },
  };
}

/** The next time after `after`, ms; null: never. */
export function nextAfter({ every, at, weekday }: Schedule, after: number): number | null {
  if (every === 'off') return null;
  const [hours, minutes] = at.split(':').map(Number) as [number, number];
  const inPeriod = minutes * 60_000 + (every === 'hourly' ? 0 : hours * HOUR_MS);
  // 1970 began on a Thursday.
  const days = every === 'weekly' ? WEEKDAYS.indexOf(weekday) - WEEKDAYS.indexOf('thursday') : 0;
  const periodMs = PERIODS_MS[every];
  const first = inPeriod + days * DAY_MS;
  return first + (Math.floor((after - first) / periodMs) + 1) * periodMs;
}

/** Age at which the newest complete point is overdue: two periods, or one period plus a day. */
export function overdueMs({ every }: Schedule): number {
  const periodMs = PERIODS_MS[every];
  return periodMs + Math.min(periodMs, DAY_MS);
}

/** Throws `invalid_request` for a schedule that would keep none of its points. */
export function assertSchedule({ every, keep }: Schedule): void {
  if (every === 'off' || RULES.some((rule) => keep[rule] > 0)) return;
  const message = `must keep at least one point: set one of ${RULES.join(', ')} above 0`;
  throw invalidField('keep', message);
}
