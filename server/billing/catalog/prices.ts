/**
 * Unit prices and when they take effect. The operator's prices are stored with the hour from which they
 * apply, and the price of an hour that has begun never changes, so that earlier charges can be explained.
 */
import type { Clock } from '../../platform/clock.ts';
import { METERS, type Meter, type MeterName } from '../metering/meters.ts';
import { hourOf } from '../metering/settlement.ts';
import type { CatalogStore, PriceRow } from './catalog-store.ts';

/** A price that applies until another is set, nano-credits per unit. */
export interface BuiltInPrice {
  readonly meter: MeterName;
  readonly variant: string;
  readonly priceNano: number;
}

export interface PriceQuestion {
  readonly meter: MeterName;
  readonly variant: string;
  readonly plan: string;
  /** ms since 1970. */
  readonly at: number;
}

export interface PricesDeps {
  readonly store: CatalogStore;
  readonly clock: Clock;
  readonly builtIn: readonly BuiltInPrice[];
}

export class Prices {
  readonly #deps: PricesDeps;
  #rows: readonly PriceRow[] = [];

  constructor(deps: PricesDeps) {
    this.#deps = deps;
  }

  /** Loads the stored prices. Call once before anything else. */
  async load(): Promise<void> {
    this.#rows = inOrder(await this.#deps.store.prices());
  }

  /** Adds a price that was just stored, replacing one for the same hour. */
  put(row: PriceRow): void {
    this.#rows = inOrder([row, ...this.#rows.filter((other) => !isSameHour(other, row))]);
  }

  /**
   * Nano-credits per unit; 0 if none was ever set. The price of a plan takes precedence over the general one,
   * whichever is newer.
   */
  priceNano({ meter, variant, plan, at }: PriceQuestion): bigint {
    const holds = this.#rows.filter(
      (row) => row.meter === meter && row.variant === variant && row.effective_from <= at,
    );
    const row = holds.find((one) => one.plan === plan) ?? holds.find((one) => one.plan === '');
    return row === undefined ? BigInt(this.#builtIn(meter, variant)) : BigInt(row.price_nano);
  }

  #builtIn(meter: MeterName, variant: string): number {
    const known = this.#deps.builtIn.find((one) => one.meter === meter && one.variant === variant);
    return known?.priceNano ?? 0;
  }

  /** Everything that has a price, in the order of the catalogue. */
  priced(): { readonly meter: Meter; readonly variant: string }[] {
    return this.#deps.builtIn.map(({ meter, variant }) => ({ meter: METERS[meter], variant }));
  }

  /** All stored rows, newest first. */
  all(): readonly PriceRow[] {
    return this.#rows;
  }

  /** The first hour that a price can still be set for, ms since 1970. */
  nextHour(): number {
    return hourOf(this.#deps.clock.now()) + 3_600_000;
  }
}

/** Newest first, and those for one plan before those for all. */
function inOrder(rows: readonly PriceRow[]): PriceRow[] {
  return [...rows].sort((a, b) => b.effective_from - a.effective_from || b.plan.localeCompare(a.plan));
}

function isSameHour(a: PriceRow, b: PriceRow): boolean {
  const isSamePrice = a.meter === b.meter && a.variant === b.variant && a.plan === b.plan;
  return isSamePrice && a.effective_from === b.effective_from;
}
