/** Dates in time zones: a moment as local time of a zone, in milliseconds as if it were UTC. */
import { ObjectId, Timestamp } from 'bson';
import { CommandError } from '../../command-error.ts';
import { spend } from '../../command-time.ts';
import { typeNameOf } from '../../values/type-names.ts';

export const DAY_MS = 86_400_000;

/** Offsets from UTC, ms. */
export interface Zone {
  readonly isUtc: boolean;
  offsetAt(utcMs: number): number;
}

const UTC: Zone = { isUtc: true, offsetAt: () => 0 };
/** Cost of computing the local time of a named zone. */
const FORMAT_STEPS = 50;
/** A formatter is some 50 KB. */
const MAX_ZONES = 100;
const zones = new Map<string, Zone>();

/** A name of the Olson database, or `+04:30`, `+0430` or `+04`. Throws CommandError. */
export function zoneOf(name: unknown): Zone {
  if (name === undefined) return UTC;
  if (typeof name !== 'string')
    throw new CommandError(40517, `timezone must evaluate to a string, found ${typeNameOf(name)}`);
  if (/^(?:UTC|GMT|Z)$/.test(name)) return UTC;
  const [, sign, hours, minutes = '0'] = /^([+-])(\d\d):?(\d\d)?$/.exec(name) ?? [];
  if (hours !== undefined) {
    const offset = (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
    return { isUtc: false, offsetAt: () => offset };
  }
  const known = zones.get(name);
  if (known !== undefined) return known;
  const zone = namedZone(name);
  if (zones.size >= MAX_ZONES) zones.clear();
  zones.set(name, zone);
  return zone;
}

function namedZone(name: string): Zone {
  if (!/^[A-Za-z][A-Za-z0-9_+/-]*$/.test(name))
    throw new CommandError(40485, `unrecognized time zone identifier: "${name}"`);
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      hourCycle: 'h23',
      era: 'short',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  } catch {
    throw new CommandError(40485, `unrecognized time zone identifier: "${name}"`);
  }
  const offsetAt = (utcMs: number) => {
    spend(FORMAT_STEPS);
    const parts = Object.fromEntries(format.formatToParts(utcMs).map(({ type, value }) => [type, value]));
    const year = parts.era?.startsWith('B') ? 1 - Number(parts.year) : Number(parts.year);
    const whole = Math.floor(utcMs / 1000) * 1000;
    return (
      civil(
        [year, Number(parts.month), Number(parts.day)],
        [parts.hour, parts.minute, parts.second].map(Number),
      ) - whole
    );
  };
  return { isUtc: false, offsetAt };
}

/** Milliseconds of a calendar date; parts out of range carry over. */
export function civil(
  [year, month, day]: readonly [number, number, number],
  [hour = 0, minute = 0, second = 0, millisecond = 0]: readonly number[] = [],
): number {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second, millisecond);
  return date.getTime();
}

export function toLocal(utcMs: number, zone: Zone): number {
  return utcMs + zone.offsetAt(utcMs);
}

/** An hour that clocks repeat means the first; one that they skip counts from before it. */
export function fromLocal(localMs: number, zone: Zone): number {
  const before = localMs - zone.offsetAt(localMs - DAY_MS);
  if (toLocal(before, zone) === localMs) return before;
  const after = localMs - zone.offsetAt(localMs + DAY_MS);
  return toLocal(after, zone) === localMs ? after : before;
}

/** Milliseconds of a date, or of the time within an ObjectId or Timestamp. Throws CommandError. */
export function momentOf(value: unknown): number {
  if (value instanceof Date) return value.getTime();
  if (value instanceof ObjectId) return value.getTimestamp().getTime();
  if (value instanceof Timestamp) return value.t * 1000;
  throw new CommandError(16006, `can't convert from BSON type ${typeNameOf(value)} to Date`);
}

/** Days of the week are 0 for Sunday to 6. */
export function weekday(localMs: number): number {
  return new Date(localMs).getUTCDay();
}

/** The first day of the week that contains a day. */
export function weekStart(localMs: number, firstDay: number): number {
  const day = Math.floor(localMs / DAY_MS) * DAY_MS;
  return day - ((weekday(day) - firstDay + 7) % 7) * DAY_MS;
}

/** The year of ISO 8601, its week and its day, 1 for Monday. */
export function isoParts(localMs: number): { year: number; week: number; day: number } {
  const monday = weekStart(localMs, 1);
  const year = new Date(monday + 3 * DAY_MS).getUTCFullYear();
  const first = weekStart(civil([year, 1, 4]), 1);
  const day = weekday(localMs) || 7;
  return { year, week: Math.round((monday - first) / (7 * DAY_MS)) + 1, day };
}
