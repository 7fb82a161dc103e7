/** Bytes and counts in words. */
import { text } from '../texts/text.ts';

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'];
const count = new Intl.NumberFormat(text.locale);

/** 1024-based, as the API's `size_formatted`, with three digits at most. */
export function sayBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${UNITS[unit]}`;
}

export function sayCount(value: number): string {
  return count.format(value);
}
