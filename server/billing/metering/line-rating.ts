/** What one line has used since it was rated: as hours with their price, and what they cost. */
import type { PriceQuestion } from '../catalog/prices.ts';
import { charge, spreadOverHours } from './charge.ts';
import { METERS, ticksOf } from './meters.ts';
import type { LineRow, RatedLine, WindowRow } from './usage-store.ts';

/** One moment on both clocks, the same for all lines that were read together. */
export interface Moment {
  readonly wallMs: number;
  readonly steadyMs: number;
}

export interface LineRating {
  readonly costMicro: bigint;
  readonly windows: readonly WindowRow[];
  /** What the line is then. */
  readonly rated: RatedLine;
}

interface RatingTerms {
  readonly plan: string;
  readonly moment: Moment;
  readonly priceNano: (question: PriceQuestion) => bigint;
}

/** null: nothing was used. */
export function rateLine(
  line: LineRow,
  { plan, moment, priceNano: priceOf }: RatingTerms,
): LineRating | null {
  const meter = METERS[line.meter];
  const now = ticksOf(meter, moment.steadyMs);
  const openTicks = BigInt(now) - BigInt(line.level_since);
  const open = BigInt(line.level) * openTicks;
  const quantity = BigInt(line.pending) + open;
  if (quantity === 0n) return null;
  const openSince = moment.wallMs - Number(openTicks) * meter.tickMs;
  const settledTo = moment.wallMs - (now - Number(line.settled_to)) * meter.tickMs;
  // After an end that was earlier than what is charged, it goes back to the hours it was charged in.
  const [from, to] = settledTo <= openSince ? [settledTo, openSince] : [openSince, settledTo];
  const parts = [
    ...spreadOverHours(BigInt(line.pending), from, to),
    ...spreadOverHours(open, openSince, moment.wallMs),
  ];
  const { meter: name, resource_id, variant, account_id } = line;
  let carry = BigInt(line.carry);
  let costMicro = 0n;
  const windows = parts.map(({ windowStart, quantity: used }) => {
    const priceNano = priceOf({ meter: name, variant, plan, at: windowStart });
    const charged = charge(meter, { quantity: used, priceNano, carry });
    carry = charged.carry;
    costMicro += charged.costMicro;
    return {
      account_id,
      window_start: windowStart,
      meter: name,
      resource_id,
      name: line.name,
      variant,
      price_nano: priceNano,
      quantity: used,
      cost_micro: charged.costMicro,
    };
  });
  return { costMicro, windows, rated: { meter: name, resourceId: resource_id, now, quantity, carry } };
}
