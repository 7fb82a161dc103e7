/** The part of the composition root that makes what billing shows. */
import { estimate } from './billing/estimate.ts';
import { PriceList } from './billing/price-list.ts';
import { PriceStore } from './billing/price-store.ts';
import { Reports } from './billing/report.ts';
import { LedgerReports } from './billing/report-ledger.ts';
import type { Period } from './billing/report-period.ts';
import { revenueReport } from './billing/report-revenue.ts';
import { ReportStore } from './billing/report-store.ts';
import type { Billing } from './build-billing.ts';

export function buildReports(billing: Billing) {
  const { accounts, prices, usageStore: usage, settlement, checks, clock, metadata } = billing;
  const store = new ReportStore(metadata);
  const settle = (accountId: number, notSince: number) => settlement.settle(accountId, notSince);
  const priceStore = new PriceStore(metadata);
  return {
    clock,
    checks,
    reports: new Reports({ store, clock, settle }),
    ledgerReports: new LedgerReports({ store }),
    priceList: new PriceList({ prices, accounts, metadata, clock, reports: store, priceStore }),
    estimate: (accountId: number) => estimate({ accounts, usage, prices, clock, settle }, accountId),
    revenue: (period: Period) => revenueReport(store, period),
  };
}
