/**
 * Unit prices and when they take effect. The operator's prices are stored with the hour from which they
 * apply, and the price of an hour that has begun never changes, so that earlier charges can be explained.
 */
import { type Ages, Remembered } from '../../metadata/ages.ts';
import type { Bus } from '../../metadata/bus.ts';
import type { Awaitable } from '../../metadata/metadata.ts';
import type { Clock } from '../../platform/clock.ts';
import { METERS, type Meter, type MeterName } from '../metering/meters.ts';
import { hourOf } from '../metering/settlement.ts';
import type { CatalogStore, PriceRow } from './catalog-store.ts';

/** A price that applies until another is set, nano-credits per unit. */
export interface BuiltInPrice {
  readonly meter: MeterName;
  readonly variant: string;
  readonly priceNano: number;
  /** Level that a resource usually has: GB of the disk of an instance type. Default: 1. */
  readonly usual?: number;
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
  readonly ages: Ages;
  readonly bus: Pick<Bus, 'onForget'>;
}

export class Prices {
  readonly #deps: PricesDeps;
  #rows: readonly PriceRow[] = [];
  readonly #stored: Remembered<'', readonly PriceRow[]>;

  constructor(deps: PricesDeps) {
    this.#deps = deps;
    const { store, ages, bus } = deps;
    this.#stored = new Remembered({ ages, read: async () => inOrder(await store.prices()) });
    bus.onForget('price', () => this.#stored.forget());
  }

  /** Call and await before the prices are used: reads them again where other nodes may have set some. */
  load(): Awaitable<void> {
    const rows = this.#stored.get('');
    if (rows instanceof Promise) return rows.then((read) => this.#use(read));
    this.#use(rows);
  }

  #use(rows: readonly PriceRow[]): void {
    this.#rows = rows;
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

  /** Like priceNano(), for display without waiting: the first answer may be the previous price. */
  shownNano(question: PriceQuestion): bigint {
    Promise.resolve(this.load()).catch(() => {});
    return this.priceNano(question);
  }

  #builtIn(meter: MeterName, variant: string): number {
    const known = this.#deps.builtIn.find((one) => one.meter === meter && one.variant === variant);
    return known?.priceNano ?? 0;
  }

  /** Level that a resource usually has; undefined: the catalogue does not have the variant. */
  usualLevel(meter: MeterName, variant: string): number | undefined {
    const known = this.#deps.builtIn.find((one) => one.meter === meter && one.variant === variant);
    return known && (known.usual ?? 1);
  }

  /** Everything with a price, in the order of the catalogue. */
  priced(): { readonly meter: Meter; readonly variant: string }[] {
    return this.#deps.builtIn.map(({ meter, variant }) => ({ meter: METERS[meter], variant }));
  }

  /** All stored rows, newest first. */
  all(): readonly PriceRow[] {
    return this.#rows;
  }

  /** The first hour for which a price can still be set, ms since 1970. */
  nextHour(): number {
    return hourOf(this.#deps.clock.now()) + 3_600_000;
  }
}

/** Newest first; prices of one plan before general ones. */
function inOrder(rows: readonly PriceRow[]): PriceRow[] {
  return [...rows].sort((a, b) => b.effective_from - a.effective_from || b.plan.localeCompare(a.plan));
}
