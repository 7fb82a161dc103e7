/** Makes billing, and what it shows. */
import { availableParallelism } from 'node:os';
import type { Logger } from 'pino';
import { CatalogStore } from '../billing/catalog/catalog-store.ts';
import { type HostSize, limitsOfHost } from '../billing/catalog/host-limits.ts';
import { Monthly, Plans } from '../billing/catalog/plans.ts';
import { PriceList } from '../billing/catalog/price-list.ts';
import { type BuiltInPrice, Prices } from '../billing/catalog/prices.ts';
import { Quotas } from '../billing/catalog/quotas.ts';
import { BillingAccountStore } from '../billing/credit/billing-account-store.ts';
import { Credit } from '../billing/credit/credit.ts';
import { type AccountStops, CreditStates } from '../billing/credit/credit-state.ts';
import { Checks } from '../billing/ledger/checks.ts';
import { LedgerStore } from '../billing/ledger/ledger-store.ts';
import { Holds } from '../billing/metering/holds.ts';
import { Rating } from '../billing/metering/rating.ts';
import { databaseCharges, storageCharges, vmCharges } from '../billing/metering/resource-charges.ts';
import { SteadyClock } from '../billing/metering/steady-clock.ts';
import { Usage } from '../billing/metering/usage.ts';
import { UsageStore } from '../billing/metering/usage-store.ts';
import { balanceOf, estimate } from '../billing/reports/estimate.ts';
import { Reports, revenueReport } from '../billing/reports/report.ts';
import { LedgerReports } from '../billing/reports/report-ledger.ts';
import type { Period } from '../billing/reports/report-period.ts';
import { INSTANCE_TYPES } from '../compute/instance-types.ts';
import { ENGINES } from '../databases/engine.ts';
import { Changes } from '../metadata/change.ts';
import type { Metadata } from '../metadata/metadata.ts';
import type { Alarms } from '../platform/alarms.ts';
import type { Clock } from '../platform/clock.ts';
import { isAppError } from '../platform/errors.ts';
import { hostBootId } from '../platform/host-boot.ts';
import type { Jobs } from '../platform/jobs.ts';
import { eventStatements } from '../webhooks/events.ts';

export interface BillingDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly base: {
    readonly metadata: Metadata;
    readonly alarms: Alarms;
  };
}

/** Two clocks never agree to the millisecond. */
const NOTED_MS = 1000;

/** Machines cost what the catalogue says; the rest nothing, until the operator sets a price. */
const BUILT_IN: readonly BuiltInPrice[] = [
  ...INSTANCE_TYPES.map(({ name, priceMicro }) => ({
    meter: 'vm.time' as const,
    variant: name,
    priceNano: priceMicro * 1000,
  })),
  ...INSTANCE_TYPES.map(({ name }) => ({ meter: 'vm.disk' as const, variant: name, priceNano: 0 })),
  { meter: 'storage', variant: '', priceNano: 0 },
  { meter: 'egress', variant: '', priceNano: 0 },
  ...ENGINES.map((variant) => ({ meter: 'database.storage' as const, variant, priceNano: 0 })),
];

export type Billing = Awaited<ReturnType<typeof buildBilling>>;

export async function buildBilling({ clock, log, base }: BillingDeps) {
  const { metadata, alarms } = base;
  const changes = new Changes({ metadata });
  const usageStore = new UsageStore(metadata);
  const anchor = await usageStore.findAnchor();
  const steady = new SteadyClock({ clock, bootId: hostBootId(), anchor });
  if (steady.uncountedMs > NOTED_MS) log.warn({ ms: steady.uncountedMs }, 'time that is not charged');
  const accounts = new BillingAccountStore(metadata);
  const catalog = new CatalogStore(metadata);
  const ledger = new LedgerStore(metadata);
  const prices = new Prices({ store: catalog, clock, builtIn: BUILT_IN });
  await prices.load();
  const shared = { changes, clock, steady, prices, accounts };
  const rating = new Rating({ ...shared, usage: usageStore });
  const checks = new Checks({
    clock,
    alarms,
    store: ledger,
    rateUsage: (accountId) => rating.rateUsage(accountId),
    onError: (error) => {
      if (!isAppError(error, 'shutting_down')) log.error({ err: error }, 'a check of billing failed');
    },
  });
  const usage = new Usage({ store: usageStore, steady });
  const holds = new Holds({ ...shared, store: usageStore });
  const quotas = new Quotas({ store: catalog });
  const credit = new Credit({ accounts, checks });
  const charges = { usage, holds, quotas, prices, accounts, credit, now: () => clock.now() };
  return {
    clock,
    log,
    metadata,
    changes,
    accounts,
    steady,
    prices,
    catalog,
    ledger,
    usageStore,
    rating,
    holds,
    quotas,
    checks,
    vmCharges: vmCharges(charges),
    databaseCharges: databaseCharges(charges),
    storageCharges: storageCharges(charges),
    /** Writes the charged time down. */
    flush: () => changes.store([usageStore.putAnchor(steady.reanchor())]),
  };
}

/** The limits of plans that follow from this host. Where they cannot be stored, those of before hold. */
export async function followHost(
  { log }: Pick<Billing, 'log'>,
  plans: Plans,
  { diskBytes, memoryMb }: Pick<HostSize, 'diskBytes' | 'memoryMb'>,
): Promise<void> {
  const startable = INSTANCE_TYPES.map((type) => type.memoryMb).filter((size) => size <= memoryMb);
  const size = { diskBytes, memoryMb, largestMb: Math.max(0, ...startable), cores: availableParallelism() };
  const give = plans.followHost(limitsOfHost(size));
  await give.catch((error: unknown) => log.warn({ err: error }, 'the limits of plans were not stored'));
}

export type Credits = ReturnType<typeof buildCredits>;

/** What follows when credits run out or come, or an account is suspended: needs what is stopped then. */
export function buildCredits(billing: Billing, stops: readonly AccountStops[], graceMs: number) {
  const { clock, log, accounts, catalog: store, changes, usageStore: usage } = billing;
  const creditStates = new CreditStates({
    ...billing,
    usage,
    stops,
    graceMs,
    announce: eventStatements,
    store: accounts,
    onError: (accountId, what, error) => log.error({ account_id: accountId, err: error }, what),
  });
  const creditsAdded = (accountId: number) => creditStates.creditsAdded(accountId);
  const accountChanged = (accountId: number) => creditStates.accountChanged(accountId);
  const reactivation = (accountId: number) => [accounts.resumeDue(accountId)];
  const monthly = new Monthly({ changes, clock, store, creditsAdded });
  const balance = (accountId: number) => balanceOf(billing, accountId);
  const forAccounts = { creditsAdded, accountChanged, reactivation, balance };
  return { creditStates, monthly, forAccounts, graceMs, plans: new Plans({ ...billing, store, monthly }) };
}

const MINUTE_MS = 60_000;

/** Begins to charge and to look; only a server does. */
export function startBilling(
  billing: Billing,
  { creditStates, monthly, graceMs }: Credits,
  jobs: Jobs,
): void {
  const { flush, rating, checks } = billing;
  checks.startVerification();
  creditStates.serve();
  jobs.every('write the charged time down', MINUTE_MS, flush);
  jobs.every('charge what is used', MINUTE_MS, () => rating.rateHour());
  jobs.every('check billing', MINUTE_MS, () => checks.check());
  // A short grace is to be noticed when it is over.
  jobs.every('look at credits', Math.min(graceMs, MINUTE_MS), () => creditStates.tick());
  jobs.every('give the credits of plans', MINUTE_MS, () => monthly.tick());
}

export function buildReports({ accounts, prices, catalog, ledger, rating, checks, clock, changes }: Billing) {
  return {
    clock,
    checks,
    reports: new Reports({ store: ledger, clock, rating }),
    ledgerReports: new LedgerReports({ store: ledger }),
    priceList: new PriceList({ prices, accounts, changes, clock, reports: ledger, catalog }),
    estimate: (accountId: number) => estimate({ accounts, prices, clock, rating }, accountId),
    revenue: (period: Period) => revenueReport(ledger, period),
  };
}
