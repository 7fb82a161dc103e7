/** Periods of reports, and the format of figures in them. */
import { formatTime, readTime } from '../../platform/clock.ts';
import { invalidField } from '../../platform/errors.ts';
import { METERS, type MeterName } from '../metering/meters.ts';
import { hourOf, monthOf } from '../metering/settlement.ts';

export interface PeriodText {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

export interface Period {
  /** ms since 1970, included, a whole hour. */
  readonly from: number;
  /** Exclusive end, a whole hour. */
  readonly to: number;
}

const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
const MAX_DAYS = 400;

/**
 * The hours that `from` to `to` touch; by default this calendar month (UTC), or the month of the given one.
 * Throws `invalid_request` that names the field.
 */
export function readPeriod(text: PeriodText, now: number): Period {
  const given = {
    from: text.from === undefined ? undefined : readDayOrTime('from', text.from),
    to: text.to === undefined ? undefined : readDayOrTime('to', text.to),
  };
  // A period that ends with a month ends at the start of the next one.
  const month = monthOf(given.from ?? (given.to === undefined ? now : given.to - 1));
  const from = given.from ?? month.from;
  const to = given.to ?? Math.max(month.to, given.from === undefined ? 0 : monthOf(now).to);
  if (from > to) throw invalidField('from', 'must not be after to');
  if (to - from > MAX_DAYS * DAY_MS) {
    throw invalidField(
      text.from === undefined ? 'to' : 'from',
      `the period must not exceed ${MAX_DAYS} days`,
    );
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

const DAY = /^\d{4}-\d\d-\d\d$/;

/** Like readTime(); a day means its start. */
export function readDayOrTime(field: string, text: string): number {
  return readTime(field, DAY.test(text) ? `${text} 00:00:00` : text);
}

/** A number when a double holds the decimal exactly; otherwise the same decimal as text. */
export type Figure = number | string;

const MICRO_DIGITS = 6;
const NANO_DIGITS = 9;
/** Digits of a quantity, rounded for display; costs are computed from exact quantities. */
const QUANTITY_DIGITS = 9;
/** From this value on, toFixed() uses exponents. */
const FIXED_LIMIT = 1e21;

/** Micro-credits in credits, exactly. */
export function creditsOf(micro: bigint): Figure {
  return figure(decimalText(micro, MICRO_DIGITS), MICRO_DIGITS);
}

/** Hours of an average month, the usual unit of monthly prices. */
export const HOURS_PER_MONTH = 730n;

/** Nano-credits in credits, exactly. */
export function priceOfNano(nano: bigint): Figure {
  return figure(decimalText(nano, NANO_DIGITS), NANO_DIGITS);
}

/** A line's quantity in units of its meter, rounded to 9 decimals. */
export function quantityOf(meter: MeterName, quantity: bigint): Figure {
  const { perUnit } = METERS[meter];
  const scaled = quantity * 10n ** BigInt(QUANTITY_DIGITS);
  const half = perUnit / 2n;
  const rounded = (scaled < 0n ? scaled - half : scaled + half) / perUnit;
  return Number(decimalText(rounded, QUANTITY_DIGITS));
}

/** `value` ÷ 10^digits with all its digits. */
export function decimalText(value: bigint, digits: number): string {
  const size = String(value < 0n ? -value : value).padStart(digits + 1, '0');
  return `${value < 0n ? '-' : ''}${size.slice(0, -digits)}.${size.slice(-digits)}`;
}

function figure(text: string, digits: number): Figure {
  const number = Number(text);
  return Math.abs(number) < FIXED_LIMIT && number.toFixed(digits) === text ? number : text;
}
