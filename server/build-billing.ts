/** The part of the composition root that makes billing: clock, prices, use, settlement, holds. */
import type { Logger } from 'pino';
import { BillingAccountStore } from './billing/accounts-store.ts';
import { ClockStore } from './billing/clock-store.ts';
import { Credit } from './billing/credit.ts';
import { CreditStore } from './billing/credit-store.ts';
import { HoldStore } from './billing/hold-store.ts';
import { Holds } from './billing/holds.ts';
import { Ledger } from './billing/ledger.ts';
import { PriceStore } from './billing/price-store.ts';
import { type BuiltInPrice, Prices } from './billing/prices.ts';
import { QuotaStore } from './billing/quota-store.ts';
import { Quotas } from './billing/quotas.ts';
import { Settlement } from './billing/settlement.ts';
import { SteadyClock } from './billing/steady-clock.ts';
import { StorageCharges } from './billing/storage-charges.ts';
import { Usage } from './billing/usage.ts';
import { UsageStore } from './billing/usage-store.ts';
import { VmCharges } from './billing/vm-charges.ts';
import type { Clock } from './clock.ts';
import { INSTANCE_TYPES } from './compute/instance-types.ts';
import type { Metadata } from './metadata/metadata.ts';
import { hostBootId } from './system/host-boot.ts';
import type { Jobs } from './system/jobs.ts';

export interface BillingDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metadata: Metadata;
}

/** Machines cost what the catalogue says; the rest nothing, until the operator sets a price. */
const BUILT_IN: readonly BuiltInPrice[] = [
  ...INSTANCE_TYPES.map(({ name, priceMicro }) => ({
    ...{ meter: 'vm.time' as const, variant: name, priceNano: priceMicro * 1000 },
  })),
  ...INSTANCE_TYPES.map(({ name }) => ({ meter: 'vm.disk' as const, variant: name, priceNano: 0 })),
  { meter: 'storage', variant: '', priceNano: 0 },
  { meter: 'egress', variant: '', priceNano: 0 },
];

export type Billing = Awaited<ReturnType<typeof buildBilling>>;

export async function buildBilling({ clock, log, metadata }: BillingDeps) {
  const clockStore = new ClockStore(metadata);
  const anchor = await clockStore.find();
  const steady = new SteadyClock({ clock, bootId: hostBootId(), anchor });
  if (steady.uncountedMs > 0) log.warn({ ms: steady.uncountedMs }, 'time that is not charged');
  const accounts = new BillingAccountStore(metadata);
  const usageStore = new UsageStore(metadata);
  const holdStore = new HoldStore(metadata);
  const prices = new Prices({ store: new PriceStore(metadata), clock, builtIn: BUILT_IN });
  await prices.load();
  const shared = { metadata, clock, steady, prices, accounts };
  const credit = new Credit({ store: new CreditStore(metadata) });
  const usage = new Usage({ store: usageStore, steady });
  const holds = new Holds({ ...shared, store: holdStore });
  const quotas = new Quotas({ store: new QuotaStore(metadata) });
  const require = (accountId: number) => credit.require(accountId);
  const charges = { usage, holds, quotas, prices, accounts, require, now: () => clock.now() };
  return {
    ...{ accounts, prices, usageStore, usage, holds },
    vmCharges: new VmCharges(charges),
    storageCharges: new StorageCharges(charges),
    settlement: new Settlement({ ...shared, usage: usageStore, holds: holdStore }),
    ledger: new Ledger({ metadata }),
    /** Writes the charged time down. */
    flush: () => metadata.commit([clockStore.put(steady.reanchor())]),
  };
}

const MINUTE_MS = 60_000;

/** Begins to charge; only a server does, once machines that ended meanwhile are known. */
export function startBilling({ flush, settlement }: Billing, jobs: Jobs): void {
  jobs.every('write the charged time down', MINUTE_MS, flush);
  jobs.every('charge what is used', 60 * MINUTE_MS, () => settlement.settleAll());
}
