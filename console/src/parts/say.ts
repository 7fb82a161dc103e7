/** Formats bytes, counts, credits, names and shell words. */
import { readerLocales } from '../texts/reader-locales.ts';
import { text } from '../texts/text.ts';

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'];
const count = new Intl.NumberFormat(readerLocales);
/** Indexed by number of decimals. */
const decimals = [0, 1, 2].map(
  (digits) =>
    new Intl.NumberFormat(readerLocales, {
      minimumFractionDigits: digits,
      maximumFractionDigits: digits,
      useGrouping: false,
    }),
);

/** 1024-based, as the API's `size_formatted`, with three digits at most. */
export function sayBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${decimals[digits]?.format(value)} ${UNITS[unit]}`;
}

export function sayCount(value: number): string {
  return count.format(value);
}

/** A size that was chosen, not measured: `30 GB`. */
export function sayWhole(megabytes: number): string {
  const gigabytes = megabytes / 1024;
  if (gigabytes < 1) return `${count.format(megabytes)} MB`;
  return gigabytes < 1024 ? `${count.format(gigabytes)} GB` : `${count.format(gigabytes / 1024)} TB`;
}

const large = new Intl.NumberFormat(readerLocales, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const small = new Intl.NumberFormat(readerLocales, { maximumSignificantDigits: 3 });

/** `amount`: a number, or the API's decimal string. */
export function sayCredits(amount: number | string): string {
  const value = Number(amount);
  return Math.abs(value) < 1 ? small.format(value) : large.format(value);
}

/** A price; zero is shown as `free`. */
export function sayPrice(amount: number | string): string {
  return Number(amount) === 0 ? text.billing.free : sayCredits(amount);
}

/** An hourly price, for lists. */
export function sayHourly(amount: number | string): string {
  return Number(amount) === 0 ? text.billing.free : text.machines.perHour(sayCredits(amount));
}

/** Characters that change text direction: after them `exe.gpj` may look like `jpg.exe`. */
const TURNING = /[\u202a-\u202e\u2066-\u2069]/g;

/** A file name as shown: characters that disguise it are made visible. */
export function sayName(name: string): string {
  return name.replace(TURNING, '\ufffd');
}

/** Quotes a text for a POSIX shell. */
export function shellWord(text: string): string {
  return /^[\w./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
