/** Counts in English. */
import { readerLocales } from '../reader-locales.ts';

const number = new Intl.NumberFormat(readerLocales);

/** `1,200` */
export function count(value: number): string {
  return number.format(value);
}

/** `1 file`, `1,200 files` */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}
