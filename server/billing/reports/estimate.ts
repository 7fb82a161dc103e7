/** Running resources, their cost at the current rate, and how long the credits last. */
import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import type { Prices } from '../catalog/prices.ts';
import type { BillingAccountStore } from '../credit/billing-account-store.ts';
import { burnNanoOf, rememberedPrices } from '../credit/credit.ts';
import { METERS, type MeterName, resourceTypeOf } from '../metering/meters.ts';
import type { Rating, Unrated } from '../metering/rating.ts';
import { balancesOf, settle } from '../metering/settlement.ts';
import type { LineRow } from '../metering/usage-store.ts';
import { creditsOf, type Figure, HOURS_PER_MONTH, priceOfNano, quantityOf } from './report-period.ts';

export interface EstimateDeps {
  readonly accounts: BillingAccountStore;
  readonly rating: Pick<Rating, 'withUnrated'>;
  readonly prices: Prices;
  readonly clock: Clock;
}

/** Credits at the current rate. */
export interface Burn {
  readonly per_hour: Figure;
  readonly per_day: Figure;
  readonly per_month: Figure;
}

export interface EstimateItem extends Burn {
  readonly resource_type: string;
  readonly resource_id: string;
  readonly name: string;
  readonly meter: MeterName;
  /** Used per hour. */
  readonly quantity: Figure;
  readonly unit: string;
  readonly unit_price: Figure;
}

export interface EstimateReport extends Burn {
  readonly account_id: number;
  readonly currency: 'credits';
  readonly spendable: Figure;
  readonly held: Figure;
  /** Days until the balance is used up; null if no running resource costs anything. */
  readonly days_left: number | null;
  readonly items: EstimateItem[];
}

const HOUR_MS = 3_600_000;
const HOURS_PER_DAY = 24n;
const NANO_PER_MICRO = 1000n;

/** Usage that is not charged yet counts as spent; reading charges nothing. Throws `account_not_found`. */
export function estimate(deps: EstimateDeps, accountId: number): Promise<EstimateReport> {
  return deps.rating.withUnrated(accountId, (unrated) => estimateWith(deps, accountId, unrated));
}

async function estimateWith(
  { accounts, prices, clock }: EstimateDeps,
  accountId: number,
  { lines, owed }: Unrated,
): Promise<EstimateReport> {
  const account = await accounts.find(accountId);
  if (account === undefined) throw new AppError('account_not_found', 'There is no such account');
  let nanoPerHour = 0n;
  const items: EstimateItem[] = [];
  const price = rememberedPrices(prices, clock.now());
  for (const line of lines) {
    if (BigInt(line.level) === 0n) continue;
    const priceNano = price({ meter: line.meter, variant: line.variant, plan: account.plan });
    const nano = burnNanoOf(line, priceNano);
    nanoPerHour += nano;
    items.push({ ...describeLine(line), unit_price: priceOfNano(priceNano), ...burnOf(nano) });
  }
  const { free, held } = settle(accountId, balancesOf(account), owed).after;
  return {
    account_id: accountId,
    currency: 'credits',
    ...burnOf(nanoPerHour),
    spendable: creditsOf(free),
    held: creditsOf(held),
    days_left: daysLeft(free, nanoPerHour),
    items,
  };
}

function ticksPerHour(meter: MeterName): bigint {
  return BigInt(HOUR_MS / METERS[meter].tickMs);
}

function describeLine(line: LineRow) {
  const { unit } = METERS[line.meter];
  const resourceType = resourceTypeOf(line.meter, line.resource_id);
  return {
    resource_type: resourceType,
    resource_id: resourceType === 'bucket' ? line.name : line.resource_id,
    name: line.name,
    meter: line.meter,
    quantity: quantityOf(line.meter, BigInt(line.level) * ticksPerHour(line.meter)),
    unit,
  };
}

export function burnOf(nanoPerHour: bigint): Burn {
  return {
    per_hour: priceOfNano(nanoPerHour),
    per_day: priceOfNano(nanoPerHour * HOURS_PER_DAY),
    per_month: priceOfNano(nanoPerHour * HOURS_PER_MONTH),
  };
}

/** To a hundredth of a day, rounded down. */
export function daysLeft(spendableMicro: bigint, nanoPerHour: bigint): number | null {
  if (nanoPerHour === 0n) return null;
  return Number((spendableMicro * NANO_PER_MICRO * 100n) / (nanoPerHour * HOURS_PER_DAY)) / 100;
}
