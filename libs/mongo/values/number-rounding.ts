/** Rounds all number types, to decimals before or after the point. */
import { Decimal128, Long } from 'bson';
import { CommandError } from '../command-error.ts';
import { readDecimal, toDecimal128 } from './decimal-numbers.ts';
import { asDecimal, type BsonNumber, plainNumber, toType } from './numbers.ts';

export type RoundingMode = 'round' | 'trunc' | 'floor' | 'ceil';

/** The number keeps its type. Half is rounded to the even digit. */
export function roundNumber(
  value: BsonNumber,
  { places, mode }: { places: number; mode: RoundingMode },
): BsonNumber {
  if (!Number.isInteger(places) || places < -20 || places > 100)
    throw new CommandError(51083, `cannot round to ${places} places: it must be in [-20, 100]`);
  const isWhole = value instanceof Long || (typeof value === 'number' && Number.isInteger(value));
  if (!Number.isFinite(plainNumber(value)) || (isWhole && places >= 0)) return value;
  const exact = readDecimal(asDecimal(value));
  if (exact.kind !== 'finite' || exact.exponent >= -places) return value;
  const unit = 10n ** BigInt(-places - exact.exponent);
  const rounded = roundUnits(exact.coefficient, unit, mode);
  if (value instanceof Decimal128) return toDecimal128(rounded, -places);
  return toType(Number(`${rounded}e${-places}`), [value]);
}

function roundUnits(coefficient: bigint, unit: bigint, mode: RoundingMode): bigint {
  const whole = coefficient / unit;
  const rest = coefficient % unit;
  if (rest === 0n || mode === 'trunc') return whole;
  if (mode === 'floor') return rest < 0n ? whole - 1n : whole;
  if (mode === 'ceil') return rest > 0n ? whole + 1n : whole;
  const twice = (rest < 0n ? -rest : rest) * 2n;
  const isUp = twice > unit || (twice === unit && whole % 2n !== 0n);
  return isUp ? whole + (rest < 0n ? -1n : 1n) : whole;
}
