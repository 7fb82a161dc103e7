/** Prices as accounts see them and as the operator sets them. */

import type { Changes, Recorder } from '../../metadata/change.ts';
import { type Clock, formatTime, formatTimeOrNull } from '../../platform/clock.ts';
import { invalidField } from '../../platform/errors.ts';
import type { BillingAccountStore } from '../credit/billing-account-store.ts';
import type { LedgerStore } from '../ledger/ledger-store.ts';
import { METERS, type MeterName, PRICED_BY } from '../metering/meters.ts';
import { hourOf } from '../metering/settlement.ts';
import { type Figure, HOURS_PER_MONTH, priceOfNano, readDayOrTime } from '../reports/report-period.ts';
import type { CatalogStore, PriceRow } from './catalog-store.ts';
import type { Prices } from './prices.ts';

export interface PriceListDeps {
  readonly prices: Prices;
  readonly catalog: CatalogStore;
  readonly accounts: BillingAccountStore;
  readonly reports: LedgerStore;
  readonly changes: Changes;
  readonly clock: Clock;
}

export interface ListedPrice {
  readonly meter: MeterName;
  readonly resource_type: string;
  readonly instance_type: string | null;
  readonly engine: string | null;
  readonly unit: string;
  readonly price: Figure;
  /** The price of 730 hours; null if the price is not per hour. */
  readonly price_per_month: Figure | null;
  /** null: always. */
  readonly effective_from: string | null;
  readonly upcoming: { readonly price: Figure; readonly effective_from: string }[];
}

export interface SetPrice {
  readonly meter: MeterName;
  readonly instance_type: string | null;
  readonly engine: string | null;
  readonly plan: string | null;
  readonly unit: string;
  readonly price: Figure;
  readonly effective_from: string;
}

export interface NewPrice {
  readonly meter: MeterName;
  readonly instance_type?: string | undefined;
  readonly engine?: string | undefined;
  readonly plan?: string | undefined;
  /** Credits per unit. */
  readonly price: number;
  readonly effective_from?: string | undefined;
}

const HOUR_MS = 3_600_000;
const STORED_WITHIN_MS = 10_000;
const NANO_PER_CREDIT = 1e9;
/** Bounded so that an hour of a petabyte fits into one ledger transfer. */
export const MAX_PRICE = 1000;

export class PriceList {
  readonly #deps: PriceListDeps;

  constructor(deps: PriceListDeps) {
    this.#deps = deps;
  }

  /** This account's prices, current and scheduled. */
  async of(accountId: number): Promise<ListedPrice[]> {
    const { prices, accounts, clock } = this.#deps;
    await prices.load();
    const plan = (await accounts.find(accountId))?.plan ?? '';
    const now = clock.now();
    return prices.priced().map(({ meter, variant }) => {
      const question = { meter: meter.name, variant, plan };
      const rows = prices
        .all()
        .filter((row) => row.meter === meter.name && row.variant === variant)
        .filter((row) => row.plan === '' || row.plan === plan);
      const began = rows.filter((row) => row.effective_from <= now);
      const inForce = began.find((row) => row.plan === plan) ?? began[0];
      let last = prices.priceNano({ ...question, at: now });
      const price = priceOfNano(last);
      const pricePerMonth = priceOfNano(last * HOURS_PER_MONTH);
      const upcoming: { price: Figure; effective_from: string }[] = [];
      const hours = new Set(rows.map((row) => row.effective_from).filter((from) => from > now));
      for (const at of [...hours].sort((a, b) => a - b)) {
        const next = prices.priceNano({ ...question, at });
        if (next === last) continue;
        upcoming.push({ price: priceOfNano(next), effective_from: formatTime(at) });
        last = next;
      }
      return {
        meter: meter.name,
        resource_type: meter.resourceType,
        ...variantOf(meter.name, variant),
        unit: meter.unit,
        price,
        price_per_month: meter.unit === 'GB' ? null : pricePerMonth,
        effective_from: formatTimeOrNull(inForce?.effective_from ?? null),
        upcoming,
      };
    });
  }

  /** All prices that were ever set, newest first. */
  async all(): Promise<SetPrice[]> {
    const { prices } = this.#deps;
    await prices.load();
    return prices.all().map(describeRow);
  }

  /**
   * Throws `invalid_request`. The price takes effect at its hour; the price of an hour that has begun never
   * changes.
   */
  async set(call: Recorder, wanted: NewPrice): Promise<SetPrice> {
    const { catalog, changes } = this.#deps;
    const row = await this.#rowOf(wanted);
    return changes.run(call, (change) => {
      change.add(catalog.setPrice(row));
      change.forgets({ kind: 'price', id: '' });
      return describeRow(row);
    });
  }

  async #rowOf(wanted: NewPrice): Promise<PriceRow> {
    const { reports, clock } = this.#deps;
    const { meter, plan, price, effective_from } = wanted;
    const variant = this.#variantOf(wanted);
    if (plan !== undefined && !(await reports.hasPlan(plan))) throw invalidField('plan', 'unknown plan');
    // Not in the last moments of an hour: prices must be stored and loaded before their hour begins.
    const nextHour = hourOf(clock.now() + STORED_WITHIN_MS) + HOUR_MS;
    const from = effective_from === undefined ? nextHour : readDayOrTime('effective_from', effective_from);
    if (from % HOUR_MS !== 0) throw invalidField('effective_from', 'must be a whole hour');
    if (from < nextHour) {
      throw invalidField('effective_from', `must not be before ${formatTime(nextHour)}, the next hour`);
    }
    return { meter, variant, plan: plan ?? '', effective_from: from, price_nano: toNano(price) };
  }

  #variantOf({ meter, instance_type, engine }: NewPrice): string {
    const word = PRICED_BY[METERS[meter].resourceType];
    const given = { instance_type, engine };
    for (const other of ['instance_type', 'engine'] as const) {
      if (other !== word && given[other] !== undefined) {
        throw invalidField(other, `is not allowed for ${meter}`);
      }
    }
    if (word === null) return '';
    const variant = given[word] ?? '';
    const known = this.#deps.prices
      .priced()
      .some((one) => one.meter.name === meter && one.variant === variant);
    if (!known) throw invalidField(word, `must be a value from the catalogue for ${meter}`);
    return variant;
  }
}

/** The variant under the field that selects the meter's price: instance type or engine. */
function variantOf(meter: MeterName, variant: string) {
  const word = PRICED_BY[METERS[meter].resourceType];
  return {
    instance_type: word === 'instance_type' ? variant : null,
    engine: word === 'engine' ? variant : null,
  };
}

function toNano(credits: number): number {
  if (!(credits >= 0 && credits <= MAX_PRICE)) {
    throw invalidField('price', `must be from 0 to ${MAX_PRICE}`);
  }
  const nano = Math.round(credits * NANO_PER_CREDIT);
  if (nano / NANO_PER_CREDIT !== credits) throw invalidField('price', 'must have at most 9 decimals');
  return nano;
}

function describeRow(row: PriceRow): SetPrice {
  return {
    meter: row.meter,
    ...variantOf(row.meter, row.variant),
    plan: row.plan === '' ? null : row.plan,
    unit: METERS[row.meter].unit,
    price: priceOfNano(BigInt(row.price_nano)),
    effective_from: formatTime(row.effective_from),
  };
}
