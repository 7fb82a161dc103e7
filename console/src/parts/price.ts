/** Credits in words, short enough to stand beside a button. */
import { readerLocales } from '../texts/reader-locales.ts';
import { text } from '../texts/text.ts';

const large = new Intl.NumberFormat(readerLocales, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const small = new Intl.NumberFormat(readerLocales, { maximumSignificantDigits: 3 });

/** `amount`: a number, or the API's decimal string. */
export function sayCredits(amount: number | string): string {
  const value = Number(amount);
  return Math.abs(value) < 1 ? small.format(value) : large.format(value);
}

/** A price; what costs nothing is `free`. */
export function sayPrice(amount: number | string): string {
  return Number(amount) === 0 ? text.billing.free : sayCredits(amount);
}

/** An hourly price, for lists. */
export function sayHourly(amount: number | string): string {
  return Number(amount) === 0 ? text.billing.free : text.machines.perHour(sayCredits(amount));
}
