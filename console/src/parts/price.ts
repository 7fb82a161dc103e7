/** Credits in words, short enough to stand beside a button. */
import { text } from '../texts/text.ts';

const large = new Intl.NumberFormat(text.locale, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const small = new Intl.NumberFormat(text.locale, { maximumSignificantDigits: 3 });

/** As the API gives amounts: a number, or its decimals as text. What is free is `0`. */
export function sayCredits(amount: number | string): string {
  const value = Number(amount);
  return Math.abs(value) < 1 ? small.format(value) : large.format(value);
}
