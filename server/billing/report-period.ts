/** From when to when a report tells. Use is kept by the hour, so that a period is of whole hours. */
import { formatTime } from '../clock.ts';
import { invalidField } from '../errors.ts';
import { hourOf } from './charge.ts';

export interface PeriodText {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

export interface Period {
  /** ms since 1970, included, a whole hour. */
  readonly from: number;
  /** Not included, a whole hour. */
  readonly to: number;
}

const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
const MAX_DAYS = 400;

const TIME = /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d:\d\d)?)?$/i;
const TIME_MESSAGE = 'must be YYYY-MM-DD HH:MM:SS (UTC), YYYY-MM-DD or RFC 3339';

/**
 * The hours that `from` to `to` touch; by default this calendar month (UTC), and the month of the one that
 * is given. Throws `invalid_request` that names the field.
 */
export function readPeriod(text: PeriodText, now: number): Period {
  const given = {
    from: text.from === undefined ? undefined : readTime('from', text.from),
    to: text.to === undefined ? undefined : readTime('to', text.to),
  };
  // A period that ends with a month ends where the next one begins.
  const month = monthOf(given.from ?? (given.to === undefined ? now : given.to - 1));
  const from = given.from ?? month.from;
  const to = given.to ?? Math.max(month.to, given.from === undefined ? 0 : monthOf(now).to);
  if (from > to) throw invalidField('from', 'must not lie after to');
  if (to - from > MAX_DAYS * DAY_MS) {
    throw invalidField(text.from === undefined ? 'to' : 'from', `a period has at most ${MAX_DAYS} days`);
  }
  return { from: hourOf(from), to: hourOf(to + HOUR_MS - 1) };
}

const MONTH = /^(\d{4})-(0[1-9]|1[0-2])$/;

/** A calendar month, `YYYY-MM`. Throws `invalid_request` that names the field. */
export function readMonth(field: string, text: string): Period {
  const [, year, month] = MONTH.exec(text) ?? [];
  if (year === undefined || month === undefined) throw invalidField(field, 'must be YYYY-MM');
  return monthOf(Date.parse(`${year}-${month}-01T00:00:00Z`));
}

/** `YYYY-MM`. */
export function formatMonth(ms: number): string {
  return formatTime(ms).slice(0, 7);
}

/** ms since 1970. Throws `invalid_request` that names the field. */
export function readTime(field: string, text: string): number {
  const [, day, time = '00:00:00', zone = 'Z'] = TIME.exec(text) ?? [];
  const ms = day === undefined ? Number.NaN : Date.parse(`${day}T${time}${zone.toUpperCase()}`);
  // Date.parse makes 2 March of 30 February.
  if (Number.isNaN(ms) || formatTime(Date.parse(`${day}T00:00:00Z`)).slice(0, 10) !== day) {
    throw invalidField(field, TIME_MESSAGE);
  }
  return ms;
}

function monthOf(ms: number): Period {
  const date = new Date(ms);
  const first = (months: number) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1);
  return { from: first(0), to: first(1) };
}
