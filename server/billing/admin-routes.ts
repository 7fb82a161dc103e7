/** Billing for administrators: prices, statements, revenue, and whether the ledger is sound. */
import { defineRoute, type Route } from '../http/route.ts';
import type { Clock } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import { Type } from '../platform/json-schema.ts';
import type { Checks } from './checks.ts';
import { AccountPath } from './plan-schema.ts';
import type { PriceList } from './price-list.ts';
import type { LedgerReports } from './report-ledger.ts';
import { formatMonth, type Period, readMonth, readPeriod } from './report-period.ts';
import type { RevenueReport } from './report-revenue.ts';
import * as shapes from './schema.ts';

export interface BillingAdminRoutesDeps {
  readonly priceList: Pick<PriceList, 'all' | 'set'>;
  readonly ledgerReports: Pick<LedgerReports, 'statement'>;
  readonly revenue: (period: Period) => Promise<RevenueReport>;
  readonly checks: Pick<Checks, 'verification' | 'startVerification'>;
  readonly clock: Clock;
}

const common = { tag: 'admin', permission: 'admin' } as const;

export function billingAdminRoutes(deps: BillingAdminRoutesDeps): Route[] {
  return [...priceRoutes(deps), ...bookRoutes(deps), ...verifyRoutes(deps)];
}

function priceRoutes({ priceList }: BillingAdminRoutesDeps): Route[] {
  return [
    defineRoute({
      ...common,
      method: 'GET',
      path: '/api/admin/prices',
      name: 'adminListPrices',
      summary: 'List every price that was set, newest first',
      description: 'What is not here costs what the catalogue says, or nothing.',
      responses: { 200: Type.Array(shapes.SetPrice) },
      handler: () => priceList.all(),
    }),
    defineRoute({
      ...common,
      method: 'POST',
      path: '/api/admin/prices',
      name: 'adminSetPrice',
      summary: 'Set a price from an hour to come on',
      description: 'In place of one for the same hour. A price of a plan goes before one for all.',
      body: shapes.NewPrice,
      responses: { 201: shapes.SetPrice },
      handler: (call) => priceList.set(call, call.body),
    }),
  ];
}

function bookRoutes({ ledgerReports, revenue, clock }: BillingAdminRoutesDeps): Route[] {
  return [
    defineRoute({
      ...common,
      method: 'GET',
      path: '/api/admin/accounts/{id}/statement',
      name: 'adminGetStatement',
      summary: 'What was booked for an account in a month, and its balance before and after',
      params: AccountPath,
      query: shapes.MonthQuery,
      responses: { 200: shapes.AccountStatement },
      errors: ['account_not_found'],
      handler: ({ params, query: { month } }) =>
        ledgerReports.statement(
          accountIdOf(params.id),
          readMonth('month', month ?? formatMonth(clock.now())),
        ),
    }),
    defineRoute({
      ...common,
      method: 'GET',
      path: '/api/admin/revenue',
      name: 'adminGetRevenue',
      summary: 'What was charged to all accounts, by service and day',
      query: shapes.PeriodQuery,
      responses: { 200: shapes.Revenue },
      handler: ({ query }) => revenue(readPeriod(query, clock.now())),
    }),
  ];
}

function verifyRoutes({ checks }: BillingAdminRoutesDeps): Route[] {
  return [
    defineRoute({
      ...common,
      method: 'POST',
      path: '/api/admin/ledger/verify',
      name: 'startLedgerVerification',
      summary: 'Start walking the whole ledger; poll the report',
      body: shapes.VerifyBody,
      responses: { 200: shapes.Verification },
      errors: ['job_running'],
      handler: ({ body: { head } }) => {
        checks.startVerification(head === undefined ? undefined : { seq: BigInt(head.seq), hash: head.hash });
        return checks.verification();
      },
    }),
    defineRoute({
      ...common,
      method: 'GET',
      path: '/api/admin/ledger/verify',
      name: 'getLedgerVerification',
      summary: 'The running or last walk of the whole ledger',
      responses: { 200: shapes.Verification },
      handler: () => checks.verification(),
    }),
  ];
}

/** Text that is no id names no account. */
function accountIdOf(text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new AppError('account_not_found', 'There is no such account');
}
