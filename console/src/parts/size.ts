/** Bytes and counts in words. */
import { readerLocales } from '../texts/reader-locales.ts';

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'];
const count = new Intl.NumberFormat(readerLocales);
/** By the number of decimals. */
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
