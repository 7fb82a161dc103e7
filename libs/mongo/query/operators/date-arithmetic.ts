/** Adds to dates, truncates them to units, and computes differences. */
import { type Document, Long } from 'bson';
import { CommandError } from '../../command-error.ts';
import { isNumber, plainNumber } from '../../values/numbers.ts';
import { isNil, typeNameOf } from '../../values/type-names.ts';
import { civil, DAY_MS, fromLocal, momentOf, toLocal, weekStart, type Zone, zoneOf } from './time-zones.ts';

const MONTHS_OF: Readonly<Record<string, number>> = { year: 12, quarter: 3, month: 1 };
const DAYS_OF: Readonly<Record<string, number>> = { week: 7, day: 1 };
const MS_OF: Readonly<Record<string, number>> = {
  hour: 3_600_000,
  minute: 60_000,
  second: 1000,
  millisecond: 1,
};
const WEEKDAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'];
/** Origin of bins of any size, in local time of the zone. */
const REFERENCE = [2000, 1, 1] as const;
/** Years that a date may have. */
const MOST_MS = 8.64e15;

function unitOf(value: unknown): string {
  const isUnit =
    typeof value === 'string' && [MONTHS_OF, DAYS_OF, MS_OF].some((units) => Object.hasOwn(units, value));
  if (isUnit) return value;
  if (typeof value !== 'string')
    throw new CommandError(5439013, `unit must be a string, found ${typeNameOf(value)}`);
  throw new CommandError('FailedToParse', `unknown time unit value: ${value}`);
}

function weekdayOf(value: unknown = 'sunday'): number {
  const name = String(value).toLowerCase();
  const at = WEEKDAYS.findIndex((each) => each === name || each.slice(0, 3) === name);
  if (at >= 0) return at;
  throw new CommandError('FailedToParse', `unknown day of week value: ${String(value)}`);
}

function monthOf(localMs: number): number {
  const date = new Date(localMs);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

const startOfMonth = (month: number) => civil([Math.floor(month / 12), (((month % 12) + 12) % 12) + 1, 1]);

/** A day beyond the end of the month becomes its last day. */
function movedByMonths(localMs: number, months: number): number {
  const month = monthOf(localMs) + months;
  const start = startOfMonth(month);
  const days = Math.round((startOfMonth(month + 1) - start) / DAY_MS);
  const day = Math.min(new Date(localMs).getUTCDate(), days);
  return start + (day - 1) * DAY_MS + (((localMs % DAY_MS) + DAY_MS) % DAY_MS);
}

function moved(name: string, sign: 1 | -1): (values: Document) => unknown {
  return ({ startDate, unit, amount, timezone }) => {
    if ([startDate, unit, amount].some(isNil) || timezone === null) return null;
    const by = unitOf(unit);
    const count = isNumber(amount) ? plainNumber(amount) : Number.NaN;
    if (!Number.isInteger(count))
      throw new CommandError(
        5166405,
        `${name} expects integer amount of time units, found ${typeNameOf(amount)}`,
      );
    const zone = zoneOf(timezone);
    const ms = shifted(momentOf(startDate), by, { count: sign * count, zone });
    if (Math.abs(ms) <= MOST_MS) return new Date(ms);
    throw new CommandError(5166406, `${name} overflowed`);
  };
}

/** Whole days and longer follow the zone's clocks, shorter times are elapsed time. */
function shifted(utcMs: number, unit: string, { count, zone }: { count: number; zone: Zone }): number {
  const ms = MS_OF[unit];
  if (ms !== undefined) return utcMs + count * ms;
  const localMs = toLocal(utcMs, zone);
  const days = DAYS_OF[unit];
  if (days !== undefined) return fromLocal(localMs + count * days * DAY_MS, zone);
  return fromLocal(movedByMonths(localMs, count * (MONTHS_OF[unit] as number)), zone);
}

function difference({ startDate, endDate, unit, timezone, startOfWeek }: Document): unknown {
  if ([startDate, endDate, unit].some(isNil) || timezone === null || startOfWeek === null) return null;
  const [by, zone, firstDay] = [unitOf(unit), zoneOf(timezone), weekdayOf(startOfWeek)];
  const [from, to] = [startDate, endDate].map(momentOf) as [number, number];
  return Long.fromNumber(bordersBetween([from, to], by, { zone, firstDay }));
}

function bordersBetween(
  ends: readonly [number, number],
  unit: string,
  { zone, firstDay }: { zone: Zone; firstDay: number },
): number {
  const [from, to] = ends.map((each) => toLocal(each, zone)) as [number, number];
  const months = MONTHS_OF[unit];
  if (months !== undefined) return Math.floor(monthOf(to) / months) - Math.floor(monthOf(from) / months);
  if (unit === 'week')
    return Math.round((weekStart(to, firstDay) - weekStart(from, firstDay)) / (7 * DAY_MS));
  if (unit === 'day') return Math.floor(to / DAY_MS) - Math.floor(from / DAY_MS);
  const ms = MS_OF[unit] as number;
  const [start, end] = [from, to].map((local, i) => (ends[i] as number) - (((local % ms) + ms) % ms));
  return Math.round(((end as number) - (start as number)) / ms);
}

function cut({ date, unit, binSize = 1, timezone, startOfWeek }: Document): unknown {
  if (isNil(date) || isNil(unit) || [binSize, timezone, startOfWeek].includes(null)) return null;
  const size = isNumber(binSize) ? plainNumber(binSize) : Number.NaN;
  if (!Number.isInteger(size) || size < 1)
    throw new CommandError(5439018, '$dateTrunc requires binSize to be a whole number above 0');
  const [by, zone] = [unitOf(unit), zoneOf(timezone)];
  const utcMs = momentOf(date);
  const localMs = toLocal(utcMs, zone);
  const floor = (value: number, step: number) => Math.floor(value / step) * step;
  const months = MONTHS_OF[by];
  if (months !== undefined) {
    const start = REFERENCE[0] * 12;
    return new Date(fromLocal(startOfMonth(start + floor(monthOf(localMs) - start, months * size)), zone));
  }
  if (Object.hasOwn(DAYS_OF, by)) {
    const first =
      by === 'week' ? weekStart(civil(REFERENCE) + 6 * DAY_MS, weekdayOf(startOfWeek)) : civil(REFERENCE);
    return new Date(fromLocal(first + floor(localMs - first, (DAYS_OF[by] as number) * DAY_MS * size), zone));
  }
  const first = fromLocal(civil(REFERENCE), zone);
  return new Date(first + floor(utcMs - first, (MS_OF[by] as number) * size));
}

/** Operators with named operands. */
export const DATE_ARITHMETIC: Readonly<Record<string, (values: Document) => unknown>> = {
  $dateAdd: moved('$dateAdd', 1),
  $dateSubtract: moved('$dateSubtract', -1),
  $dateDiff: difference,
  $dateTrunc: cut,
};
