/** Billing over REST for administrators: ledger, revenue, prices, plans. */

import { accountNotFound } from '../accounts/account-errors.ts';
import type { Call } from '../calls/principal.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Change } from '../metadata/change.ts';
import type { Clock } from '../platform/clock.ts';
import { Type } from '../platform/json/json-schema.ts';
import type { Plans } from './catalog/plans.ts';
import type { PriceList } from './catalog/price-list.ts';
import type { SpendLimits } from './credit/spend-limits.ts';
import type { Checks } from './ledger/checks.ts';
import type { RevenueReport } from './reports/report.ts';
import type { LedgerReports } from './reports/report-ledger.ts';
import { formatMonth, type Period, readMonth, readPeriod } from './reports/report-period.ts';
import * as shapes from './schema.ts';
import { AccountPath } from './schema.ts';

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
      permission: 'admin:read',
      path: '/api/admin/prices',
      name: 'adminListPrices',
      summary: 'List all set prices, newest first',
      description: 'All other meters have the catalogue price, or are free.',
      responses: { 200: Type.Array(shapes.SetPrice) },
      handler: () => priceList.all(),
    }),
    defineRoute({
      ...common,
      method: 'POST',
      path: '/api/admin/prices',
      name: 'adminSetPrice',
      audit: { detail: ['meter', 'instance_type', 'engine', 'plan', 'price'] },
      summary: 'Set a price that takes effect at a future hour',
      description:
        'Replaces a price for the same hour. The price of a plan takes precedence over the general one.',
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
      permission: 'admin:read',
      path: '/api/admin/accounts/{id}/statement',
      name: 'adminGetStatement',
      summary: 'Monthly statement of an account, with opening and closing balance',
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
      permission: 'admin:read',
      path: '/api/admin/revenue',
      name: 'adminGetRevenue',
      summary: 'Revenue from all accounts, by service and day',
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
      summary: 'Start a verification of the whole ledger',
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
      permission: 'admin:read',
      path: '/api/admin/ledger/verify',
      name: 'getLedgerVerification',
      summary: 'Show the running or last verification of the ledger',
      responses: { 200: shapes.Verification },
      handler: () => checks.verification(),
    }),
  ];
}

/** Throws `account_not_found` for text that is not an id. */
export function accountIdOf(text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw accountNotFound();
}

export interface PlanRoutesDeps {
  readonly plans: Plans;
  readonly spendLimits: Pick<SpendLimits, 'setByAdministrator'>;
  /** Adds the account's other changes to the commit that changes its terms. */
  readonly changeAccount: (
    change: Change,
    call: Call,
    target: Pick<
      shapes.TermsChange,
      'email' | 'is_admin' | 'is_auditor' | 'expires_at' | 'must_change_password'
    > & {
      readonly id: number;
    },
  ) => Promise<void>;
}

const PLANS = '/api/admin/plans';
const PLAN = `${PLANS}/{name}`;

/** Everything under /api/admin/plans, the terms of an account, and the caller's quotas. */
export function planRoutes(deps: PlanRoutesDeps): Route[] {
  return [...adminPlanRoutes(deps), ...accountRoutes(deps)];
}

function adminPlanRoutes({ plans }: PlanRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: PLANS,
      name: 'adminListPlans',
      tag: 'admin',
      summary: 'List the plans, oldest first',
      permission: 'admin:read',
      responses: { 200: Type.Array(shapes.Plan) },
      handler: () => plans.list(),
    }),
    defineRoute({
      method: 'POST',
      path: PLANS,
      name: 'adminCreatePlan',
      tag: 'admin',
      summary: 'Create a plan',
      description: 'Prices set for the plan apply to it; otherwise the general prices do.',
      permission: 'admin',
      body: shapes.NewPlan,
      responses: { 201: shapes.Plan },
      errors: ['plan_exists'],
      handler: (call) => plans.create(call, call.body),
    }),
    defineRoute({
      method: 'PATCH',
      path: PLAN,
      name: 'adminChangePlan',
      tag: 'admin',
      summary: 'Change a plan',
      description: 'Lowering a limit removes nothing; it only prevents new resources.',
      permission: 'admin',
      params: shapes.PlanPath,
      body: shapes.PlanChange,
      responses: { 200: shapes.Plan },
      errors: ['plan_not_found', 'write_conflict'],
      handler: (call) => plans.change(call, call.params.name, call.body),
    }),
    defineRoute({
      method: 'DELETE',
      path: PLAN,
      name: 'adminDeletePlan',
      tag: 'admin',
      summary: 'Delete a plan that no account has',
      permission: 'admin',
      params: shapes.PlanPath,
      responses: { 200: shapes.Plan },
      errors: ['plan_not_found', 'plan_in_use'],
      handler: (call) => plans.remove(call, call.params.name),
    }),
  ];
}

function accountRoutes({ plans, spendLimits, changeAccount }: PlanRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'PATCH',
      path: '/api/admin/accounts/{id}',
      name: 'adminChangeAccount',
      audit: { account: 'params.id', detail: ['plan', 'quotas', 'spend_cap', 'is_admin', 'is_auditor'] },
      livesOn: 'host-or-any',
      tag: 'admin',
      summary: 'Change an account: plan, quotas, spend cap, e-mail address, rights or expiry',
      description:
        'All or nothing. In a session, another e-mail address or other rights need the password, given in the last 15 ' +
        'minutes. The address of another administrator can be changed only by that administrator, or by the operator on ' +
        'the host.',
      permission: 'admin',
      params: shapes.AccountPath,
      body: shapes.TermsChange,
      responses: { 200: shapes.AccountTerms },
      errors: [
        ...(['account_not_found', 'plan_not_found', 'email_taken', 'last_administrator'] as const),
        ...(['operator_required', 'password_required', 'write_conflict'] as const),
      ],
      handler: (call) => {
        const id = accountIdOf(call.params.id);
        const { spend_cap: cap } = call.body;
        const beside = async (change: Change) => {
          if (cap !== undefined) await spendLimits.setByAdministrator(change, id, cap);
          await changeAccount(change, call, { ...call.body, id });
        };
        return plans.setTerms(call, id, { ...call.body, beside });
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/billing/quotas',
      name: 'getQuotas',
      tag: 'billing',
      summary: 'Show your quotas and their usage',
      permission: 'billing:read',
      responses: { 200: shapes.AccountQuotas },
      errors: ['account_not_found'],
      handler: ({ principal }) => plans.quotasOf(principal.accountId),
    }),
  ];
}
