/** The price of a resource before it is created, and how long the credits last with it. */
import { toCredits } from '../../accounts/credits.ts';
import { AppError, invalidField } from '../../platform/errors.ts';
import type { Prices } from '../catalog/prices.ts';
import type { BillingAccountStore } from '../credit/billing-account-store.ts';
import { burnNanoOf, rememberedPrices, totalBurnNano } from '../credit/credit.ts';
import { reachedAt, type SpendCaps } from '../credit/spend-cap.ts';
import { METERS, type MeterName } from '../metering/meters.ts';
import { balancesOf, monthOf, settle } from '../metering/settlement.ts';
import type { Quote, QuoteQuery } from '../spend-schema.ts';
import { burnOf, daysLeft } from './estimate.ts';
import { creditsOf, priceOfNano } from './report-period.ts';

export interface QuoteDeps {
  readonly accounts: BillingAccountStore;
  readonly caps: Pick<SpendCaps, 'of'>;
  readonly prices: Prices;
}

interface Part {
  readonly meter: MeterName;
  readonly variant: string;
  readonly level: bigint;
}

const GIB = 2n ** 30n;

/** Throws `account_not_found`, `invalid_request`. */
export async function quote(deps: QuoteDeps, accountId: number, query: QuoteQuery): Promise<Quote> {
  const { accounts, caps, prices } = deps;
  const spend = await caps.of(accountId);
  const account = await accounts.find(accountId);
  if (spend === undefined || account === undefined)
    throw new AppError('account_not_found', 'There is no such account');
  await prices.load();
  const { plan, unrated, spentMicro, at, row } = spend;
  const price = rememberedPrices(prices, at);
  const items = partsOf(deps, query).map(({ meter, variant, level }) => {
    const priceNano = price({ meter, variant, plan });
    const nano = burnNanoOf({ meter, level }, priceNano);
    const { unit, perUnit } = METERS[meter];
    const isByTime = unit !== 'GB';
    const quantity =
      unit === 'GB-hour' && perUnit !== 3_600_000n ? Number(level) / Number(GIB) : Number(level);
    return {
      nano,
      item: {
        meter,
        quantity: isByTime ? quantity : 0,
        unit,
        unit_price: priceOfNano(priceNano),
        ...burnOf(nano),
      },
    };
  });
  const added = items.reduce((sum, { nano }) => sum + nano, 0n);
  const now = totalBurnNano(unrated.lines, plan, price);
  const { free } = settle(accountId, balancesOf(account), unrated.owed).after;
  const { to } = monthOf(at);
  const capMicro = row.cap_micro === null ? null : BigInt(row.cap_micro);
  return {
    resource_type: query.resource_type,
    currency: 'credits',
    ...burnOf(added),
    items: items.map(({ item }) => item),
    spendable: creditsOf(free),
    days_left: daysLeft(free, now),
    days_left_with: daysLeft(free, now + added),
    cap: row.cap_micro === null ? null : toCredits(row.cap_micro),
    cap_reached_with: reachedAt({ capMicro, spentMicro, burnNano: now + added, at, to }),
  };
}

/** The lines that a resource would have. */
function partsOf({ prices }: QuoteDeps, query: QuoteQuery): readonly Part[] {
  const { resource_type: type, instance_type: instance = '', engine = '', size_gb: size = 1 } = query;
  const bytes = BigInt(size) * GIB;
  if (type === 'bucket') {
    return [
      { meter: 'storage', variant: '', level: bytes },
      { meter: 'egress', variant: '', level: 0n },
    ];
  }
  if (type === 'database') {
    if (prices.usualLevel('database.storage', engine) === undefined)
      throw invalidField('engine', 'must be one of GET /api/database-engines');
    return [{ meter: 'database.storage', variant: engine, level: bytes }];
  }
  const usual = prices.usualLevel('vm.disk', instance);
  if (usual === undefined) throw invalidField('instance_type', 'must be one of GET /api/instance-types');
  const disk = BigInt(query.size_gb ?? usual);
  return [
    { meter: 'vm.time', variant: instance, level: 1n },
    { meter: 'vm.disk', variant: instance, level: disk },
  ];
}
