/** The API has credits as decimal numbers; internally, money is a whole number of micro-credits. */
import { invalidField } from '../platform/errors.ts';

const MICRO_PER_CREDIT = 1_000_000;
/** Limit of one amount and of a balance, in credits: exact as a double with 6 decimals. */
export const MAX_CREDITS = 1e9;

/** Exact, or throws `invalid_request` naming `field`: at most 6 decimals, at most MAX_CREDITS either way. */
export function toMicro(credits: number, field: string): number {
  if (!Number.isFinite(credits) || Math.abs(credits) > MAX_CREDITS) {
    throw invalidField(field, `must be from -${MAX_CREDITS} to ${MAX_CREDITS}`);
  }
  const micro = Math.round(credits * MICRO_PER_CREDIT);
  if (micro / MICRO_PER_CREDIT !== credits) throw invalidField(field, 'must have at most 6 decimals');
  return micro;
}

export function toCredits(micro: number | bigint): number {
  return Number(micro) / MICRO_PER_CREDIT;
}
