/** Builds billing: charging, and the credit states of accounts. */

import type { Logger } from 'pino';
import type { Ages } from '../metadata/ages.ts';
import type { Bus } from '../metadata/bus.ts';
import { Changes } from '../metadata/change.ts';
import type { Metadata } from '../metadata/metadata.ts';
import type { Alarms } from '../platform/alarms.ts';
import type { Job } from '../platform/background/jobs.ts';
import type { Clock } from '../platform/clock.ts';
import { isAppError } from '../platform/errors.ts';
import { hostBootId } from '../platform/host/host-facts.ts';
import type { Membership } from '../platform/membership.ts';
import type { DiskShares } from '../resources/disk-shares.ts';
import {
  type BillingAdminRoutesDeps,
  billingAdminRoutes,
  type PlanRoutesDeps,
  planRoutes,
} from './admin-routes.ts';
import { CatalogStore } from './catalog/catalog-store.ts';
import { Monthly, Plans } from './catalog/plans.ts';
import { PriceList } from './catalog/price-list.ts';
import { type BuiltInPrice, Prices } from './catalog/prices.ts';
import { Quotas } from './catalog/quotas.ts';
import { BillingAccountStore } from './credit/billing-account-store.ts';
import { Credit, Spendable } from './credit/credit.ts';
import { type AccountStops, CreditStates, type CreditStatesDeps } from './credit/credit-state.ts';
import { SpendCaps } from './credit/spend-cap.ts';
import { SpendLimits } from './credit/spend-limits.ts';
import { BILLING_ALARM, Checks } from './ledger/checks.ts';
import { LedgerStore } from './ledger/ledger-store.ts';
import { Holds } from './metering/holds.ts';
import { Rating } from './metering/rating.ts';
import { databaseCharges, storageCharges, Usage, vmCharges } from './metering/resource-charges.ts';
import { SteadyClock } from './metering/steady-clock.ts';
import { UsageStore } from './metering/usage-store.ts';
import { estimate } from './reports/estimate.ts';
import { ExportedBills } from './reports/exported-bills.ts';
import { quote } from './reports/quote.ts';
import { Reports, revenueReport } from './reports/report.ts';
import { LedgerReports } from './reports/report-ledger.ts';
import type { Period } from './reports/report-period.ts';
import { type BillingRoutesDeps, billingRoutes as ownRoutes } from './routes.ts';
import { type SpendRoutesDeps, spendRoutes } from './spend-routes.ts';
import type { QuoteQuery } from './spend-schema.ts';

export interface BillingDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** Prices that apply until the operator sets one. */
  readonly builtIn: readonly BuiltInPrice[];
  readonly base: {
    readonly metadata: Metadata;
    readonly bus: Bus;
    readonly ages: Ages;
    readonly alarms: Alarms;
    readonly membership: Membership;
    /** undefined: the objects of an account are not limited to a share of the disk. */
    readonly objectShares?: DiskShares | undefined;
  };
}

const MINUTE_MS = 60_000;
const FOLLOW_MS = 10_000;
/** Two clocks never agree to the millisecond. */
const NOTED_MS = 1000;

type RoutesDeps = BillingRoutesDeps & SpendRoutesDeps & BillingAdminRoutesDeps & PlanRoutesDeps;

export function billingRoutes(deps: RoutesDeps) {
  return [...ownRoutes(deps), ...spendRoutes(deps), ...planRoutes(deps), ...billingAdminRoutes(deps)];
}

export type Billing = Awaited<ReturnType<typeof openBilling>>;

/** Builds the charging part, which does not depend on the charged domains. */
export async function openBilling({ clock, log, base, builtIn }: BillingDeps) {
  const { metadata, bus, ages, alarms, membership } = base;
  const changes = new Changes({ metadata, bus });
  const usageStore = new UsageStore(metadata);
  const anchor = await usageStore.findAnchor();
  const steady = new SteadyClock({ clock, bootId: membership.runId || hostBootId(), anchor });
  if (steady.uncountedMs > NOTED_MS) log.warn({ ms: steady.uncountedMs }, 'time not charged');
  const accounts = new BillingAccountStore(metadata);
  const catalog = new CatalogStore(metadata);
  const ledger = new LedgerStore(metadata);
  const prices = new Prices({ store: catalog, clock, builtIn, bus, ages });
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
  const spendable = new Spendable({ ...shared, rating });
  const holds = new Holds({ ...shared, spendable, store: usageStore });
  base.objectShares?.count(() => accounts.storedBytes(), { isObjects: true });
  const quotas = new Quotas({ store: catalog, bus, ages, diskShares: base.objectShares });
  const caps = new SpendCaps({ ...shared, metadata, rating });
  const credit = new Credit({ accounts, spendable, checks, caps });
  const charges = { usage, rating, holds, quotas, prices, accounts, credit, clock };
  /** Stores the charged time. */
  const store = () => changes.store([usageStore.putAnchor(steady.reanchor())]);
  const follow = async () => {
    const stored = await usageStore.findAnchor();
    if (stored !== null) steady.follow(stored);
  };
  const flush = async () => {
    const stored = membership.isShared ? await usageStore.findAnchor() : null;
    if (stored === null || steady.isOwn(stored)) await store();
  };
  return {
    clock,
    log,
    metadata,
    bus,
    ages,
    membership,
    changes,
    accounts,
    steady,
    prices,
    catalog,
    ledger,
    /** Hash of the transfer; null: no such transfer. */
    transferHash: async (seq: number) => (await ledger.hashedFrom(seq, 1))[0]?.hash ?? null,
    usageStore,
    rating,
    holds,
    spendable,
    caps,
    quotas,
    checks,
    vmCharges: vmCharges(charges),
    databaseCharges: databaseCharges(charges),
    storageCharges: storageCharges(charges),
    anchors: { store, follow, flush },
  };
}

/** Builds the credit states of accounts, which depend on the resources to stop. */
export function billingPart(
  billing: Billing,
  stops: readonly AccountStops[],
  {
    graceMs,
    announce,
    changeAccount,
  }: Pick<PlanRoutesDeps, 'changeAccount'> & {
    readonly graceMs: number;
    readonly announce: CreditStatesDeps['announce'];
  },
) {
  const { clock, log, metadata, accounts, catalog: store, changes, usageStore: usage, ledger } = billing;
  const { bus, ages, membership, checks, rating, prices, spendable, anchors } = billing;
  const creditStates = new CreditStates({
    ...billing,
    usage,
    stops,
    graceMs,
    announce,
    store: accounts,
    onError: (accountId, what, error) => log.error({ account_id: accountId, err: error }, what),
  });
  const creditsAdded = (accountId: number) => creditStates.creditsAdded(accountId);
  const monthly = new Monthly({ changes, clock, store, bus, ages, creditsAdded });
  const every = (name: string, run: () => Promise<unknown>, more: Partial<Job> = {}): Job => {
    return { name, everyMs: MINUTE_MS, per: 'cluster', run, ...more };
  };
  const plans = new Plans({ ...billing, store, monthly });
  const spendLimits = new SpendLimits({ ...billing, capChanged: creditsAdded });
  const reports = new Reports({ metadata, clock, rating });
  const ledgerReports = new LedgerReports({ store: ledger });
  return {
    plans,
    exported: new ExportedBills({ reports, ledgerReports, clock }),
    forAccounts: {
      creditsAdded,
      accountChanged: (accountId: number) => creditStates.accountChanged(accountId),
      reactivation: (accountId: number) => [accounts.resumeDue(accountId)],
      balance: (accountId: number) => spendable.of(accountId),
      settle: (accountId: number) => rating.rateUsage(accountId),
      assignPlan: (accountId: number, name: string) => store.assignPlan(accountId, name),
      capNew: (accountId: number, capMicro: number) => accounts.capNew(accountId, capMicro),
      hasPlan: async (name: string) => (await store.findPlan(name)) !== undefined,
    },
    routes: billingRoutes({
      clock,
      checks,
      plans,
      spendLimits,
      changeAccount,
      reports,
      ledgerReports,
      priceList: new PriceList({ prices, accounts, changes, clock, reports: ledger, catalog: store }),
      estimate: (accountId: number) => estimate({ accounts, prices, clock, rating }, accountId),
      quote: (accountId: number, query: QuoteQuery) => quote(billing, accountId, query),
      revenue: (period: Period) => revenueReport(ledger, period),
    }),
    jobs: [
      every('store the charged time', anchors.store),
      ...(membership.isShared
        ? [every('follow the charged time', anchors.follow, { everyMs: FOLLOW_MS, per: 'node' })]
        : []),
      every('charge usage', () => rating.rateHour()),
      every('check billing', () => checks.check(), { raises: [BILLING_ALARM] }),
      // The end of a short grace period must be noticed soon.
      every('check credits', () => creditStates.tick(), {
        everyMs: Math.min(graceMs, MINUTE_MS),
        per: 'host',
      }),
      every('grant plan credits', () => monthly.tick()),
    ],
    start: () => {
      checks.startVerification();
      if (!membership.isHost) return;
      // Machines and databases stop and start in their own domains.
      creditStates.serve();
      if (membership.isShared)
        bus.onForget('account', (id) => {
          if (id === null) return;
          creditStates.accountChanged(id);
          // Its spend cap may have changed, too.
          creditsAdded(id);
        });
    },
    close: async () => {
      await creditStates.whenIdle();
      await checks.close();
    },
    flush: anchors.flush,
  };
}
