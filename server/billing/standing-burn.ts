/** What lines burn: the price of what they use now, and the cost of what was not settled yet. */
import { METERS, type MeterName, ticksOf } from './meters.ts';
import type { PriceQuestion } from './prices.ts';

const HOUR_MS = 3_600_000;
const NANO_PER_MICRO = 1000n;

export interface UsedLine {
  readonly meter: MeterName;
  readonly level: number | bigint;
  readonly level_since: number | bigint;
  readonly pending: number | bigint;
}

/** Nano-credits an hour, while the level stays. */
export function burnNanoOf({ meter, level }: Pick<UsedLine, 'meter' | 'level'>, priceNano: bigint): bigint {
  const { tickMs, perUnit } = METERS[meter];
  return (BigInt(level) * BigInt(HOUR_MS / tickMs) * priceNano) / perUnit;
}

/** About what is owed for what was used up to `steadyMs`, micro-credits; a settlement is exact. */
export function unsettledMicroOf(
  line: UsedLine,
  { priceNano, steadyMs }: { readonly priceNano: bigint; readonly steadyMs: number },
): bigint {
  const meter = METERS[line.meter];
  const openTicks = BigInt(ticksOf(meter, steadyMs)) - BigInt(line.level_since);
  const quantity = BigInt(line.pending) + BigInt(line.level) * openTicks;
  return (quantity * priceNano) / (meter.perUnit * NANO_PER_MICRO);
}

/** Asks for each price once. */
export function rememberedPrices(
  prices: { priceNano(question: PriceQuestion): bigint },
  at: number,
): (question: Omit<PriceQuestion, 'at'>) => bigint {
  const known = new Map<string, bigint>();
  return (question) => {
    const key = `${question.meter}\n${question.variant}\n${question.plan}`;
    const price = known.get(key) ?? prices.priceNano({ ...question, at });
    known.set(key, price);
    return price;
  };
}
