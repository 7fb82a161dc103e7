/** Dates: parts, construction, formatting and parsing. */
import { type Document, Long } from 'bson';
import { CommandError } from '../../command-error.ts';
import { isNumber, plainNumber } from '../../values/numbers.ts';
import { isNil, typeNameOf } from '../../values/type-names.ts';
import { parseDate, parseWith } from './date-texts.ts';
import {
  civil,
  DAY_MS,
  fromLocal,
  isoParts,
  momentOf,
  toLocal,
  weekday,
  weekStart,
  type Zone,
  zoneOf,
} from './time-zones.ts';

/** Parts of a date in a zone, from milliseconds of its local time. */
const PARTS: Readonly<Record<string, (localMs: number) => unknown>> = {
  $year: (ms) => new Date(ms).getUTCFullYear(),
  $month: (ms) => new Date(ms).getUTCMonth() + 1,
  $dayOfMonth: (ms) => new Date(ms).getUTCDate(),
  $hour: (ms) => new Date(ms).getUTCHours(),
  $minute: (ms) => new Date(ms).getUTCMinutes(),
  $second: (ms) => new Date(ms).getUTCSeconds(),
  $millisecond: (ms) => new Date(ms).getUTCMilliseconds(),
  $dayOfYear: dayOfYear,
  $dayOfWeek: (ms) => weekday(ms) + 1,
  $week: (ms) => Math.floor((dayOfYear(ms) + 6 - weekday(ms)) / 7),
  $isoWeek: (ms) => isoParts(ms).week,
  $isoWeekYear: (ms) => Long.fromNumber(isoParts(ms).year),
  $isoDayOfWeek: (ms) => isoParts(ms).day,
};

function dayOfYear(localMs: number): number {
  const start = civil([new Date(localMs).getUTCFullYear(), 1, 1]);
  return Math.floor((localMs - start) / DAY_MS) + 1;
}

/** Operators with one operand: a date, or `{ date, timezone }`. None throws for null. */
export const DATE_PARTS: Readonly<Record<string, (values: Document) => unknown>> = Object.fromEntries(
  Object.entries(PARTS).map(([name, read]) => [
    name,
    ({ date, timezone }: Document) => {
      if (isNil(date) || timezone === null) return null;
      return read(toLocal(momentOf(date), zoneOf(timezone)));
    },
  ]),
);

const two = (value: number, width = 2) => String(value).padStart(width, '0');
const MONTHS = 'January February March April May June July August September October November December'.split(
  ' ',
);

const WRITTEN: Readonly<Record<string, (localMs: number, offset: number) => string>> = {
  Y: (ms) => two(new Date(ms).getUTCFullYear(), 4),
  m: (ms) => two(new Date(ms).getUTCMonth() + 1),
  b: (ms) => (MONTHS[new Date(ms).getUTCMonth()] as string).slice(0, 3),
  B: (ms) => MONTHS[new Date(ms).getUTCMonth()] as string,
  d: (ms) => two(new Date(ms).getUTCDate()),
  H: (ms) => two(new Date(ms).getUTCHours()),
  M: (ms) => two(new Date(ms).getUTCMinutes()),
  S: (ms) => two(new Date(ms).getUTCSeconds()),
  L: (ms) => two(new Date(ms).getUTCMilliseconds(), 3),
  j: (ms) => two(dayOfYear(ms), 3),
  w: (ms) => String(weekday(ms) + 1),
  u: (ms) => String(isoParts(ms).day),
  U: (ms) => two(Math.floor((dayOfYear(ms) + 6 - weekday(ms)) / 7)),
  V: (ms) => two(isoParts(ms).week),
  G: (ms) => two(isoParts(ms).year, 4),
  z: (_, offset) => {
    const minutes = Math.abs(offset) / 60_000;
    return `${offset < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}${two(Math.floor(minutes % 60))}`;
  },
  Z: (_, offset) => `${offset < 0 ? '-' : '+'}${Math.floor(Math.abs(offset) / 60_000)}`,
  '%': () => '%',
};

function written(utcMs: number, format: string, zone: Zone): string {
  const offset = zone.offsetAt(utcMs);
  const localMs = utcMs + offset;
  const year = new Date(localMs).getUTCFullYear();
  if (!(year >= 0 && year <= 9999))
    throw new CommandError(
      18537,
      `Could not convert date to string: date component was outside 0-9999: ${year}`,
    );
  return format.replace(/%(.?)/gs, (_, token: string) => {
    const write = Object.hasOwn(WRITTEN, token) ? WRITTEN[token] : undefined;
    if (write !== undefined) return write(localMs, offset);
    if (token === '') throw new CommandError(18535, "Unmatched '%' at end of format string");
    throw new CommandError(18536, `Invalid format character '%${token}' in format string`);
  });
}

function stringOf(name: string, value: unknown, code: number): string {
  if (typeof value === 'string') return value;
  throw new CommandError(code, `${name} must be a string, found ${typeNameOf(value)}`);
}

/** A whole number of 32 bits. Throws CommandError. */
function wholeOf(name: string, value: unknown): number {
  const number = isNumber(value) ? plainNumber(value) : Number.NaN;
  if (Number.isInteger(number) && Math.abs(number) < 2 ** 31) return number;
  throw new CommandError(40515, `'${name}' must evaluate to an integer, found ${typeNameOf(value)}`);
}

const TIME = ['hour', 'minute', 'second', 'millisecond'] as const;

function fromParts(values: Document): unknown {
  const isIso = 'isoWeekYear' in values;
  if (isIso === 'year' in values)
    throw new CommandError(
      isIso ? 40489 : 40516,
      "$dateFromParts requires either 'year' or 'isoWeekYear' to be present, and not both",
    );
  if (Object.values(values).some(isNil)) return null;
  const part = (name: string, otherwise: number) =>
    name in values ? wholeOf(name, values[name]) : otherwise;
  const year = part(isIso ? 'isoWeekYear' : 'year', 0);
  if (!(year >= 1 && year <= 9999))
    throw new CommandError(
      40523,
      `'${isIso ? 'isoWeekYear' : 'year'}' must evaluate to an integer in the range 1 to 9999`,
    );
  const days = isIso
    ? weekStart(civil([year, 1, 4]), 1) +
      ((part('isoWeek', 1) - 1) * 7 + part('isoDayOfWeek', 1) - 1) * DAY_MS
    : civil([year, part('month', 1), part('day', 1)]);
  const [hour, minute, second, millisecond] = TIME.map((name) => part(name, 0)) as [
    number,
    number,
    number,
    number,
  ];
  const localMs = days + ((hour * 60 + minute) * 60 + second) * 1000 + millisecond;
  return new Date(fromLocal(localMs, zoneOf(values.timezone)));
}

function toParts({ date, timezone, iso8601 = false }: Document): unknown {
  if (isNil(date) || timezone === null || iso8601 === null) return null;
  if (typeof iso8601 !== 'boolean') throw new CommandError(40521, 'iso8601 must evaluate to a bool');
  const localMs = toLocal(momentOf(date), zoneOf(timezone));
  const at = new Date(localMs);
  const { year, week, day } = isoParts(localMs);
  const days = iso8601
    ? { isoWeekYear: year, isoWeek: week, isoDayOfWeek: day }
    : { year: at.getUTCFullYear(), month: at.getUTCMonth() + 1, day: at.getUTCDate() };
  return {
    ...days,
    hour: at.getUTCHours(),
    minute: at.getUTCMinutes(),
    second: at.getUTCSeconds(),
    millisecond: at.getUTCMilliseconds(),
  };
}

function fromText({ dateString, format, timezone, onNull = null, ...more }: Document): unknown {
  if (isNil(dateString)) return onNull;
  if (format === null || timezone === null) return null;
  try {
    if (typeof dateString !== 'string')
      throw new CommandError(
        'ConversionFailure',
        `$dateFromString requires that 'dateString' be a string, found: ${typeNameOf(dateString)}`,
      );
    const zone = timezone === undefined ? undefined : zoneOf(timezone);
    return new Date(
      format === undefined
        ? parseDate(dateString, zone)
        : parseWith(dateString, stringOf('format', format, 40684), zone),
    );
  } catch (error) {
    if ('onError' in more && error instanceof CommandError && error.code === 241) return more.onError ?? null;
    throw error;
  }
}

/** Operators with named operands. */
export const DATE_TEXTS: Readonly<Record<string, (values: Document) => unknown>> = {
  $dateFromParts: fromParts,
  $dateToParts: toParts,
  $dateFromString: fromText,
  $dateToString: ({ date, format, timezone, onNull = null }) => {
    if (isNil(date)) return onNull;
    if (timezone === null || format === null) return null;
    const zone = zoneOf(timezone);
    const iso = `%Y-%m-%dT%H:%M:%S.%L${zone.isUtc ? 'Z' : ''}`;
    const pattern = format === undefined ? iso : stringOf('$dateToString format', format, 18533);
    return written(momentOf(date), pattern, zone);
  },
};
