/** Money and amounts as reports show them: exact decimals, as JSON numbers wherever one can hold them. */
import { METERS, type MeterName } from './meters.ts';

/** A number when a double holds the decimal to its last digit; the same decimal as text otherwise. */
export type Figure = number | string;

const MICRO_DIGITS = 6;
const NANO_DIGITS = 9;
/** Of a quantity, which is rounded to be shown; costs are not made from what is shown. */
const QUANTITY_DIGITS = 9;
/** From here on toFixed() writes exponents. */
const FIXED_LIMIT = 1e21;

/** Micro-credits in credits, exactly. */
export function creditsOf(micro: bigint): Figure {
  return figure(decimalText(micro, MICRO_DIGITS), MICRO_DIGITS);
}

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
