/** Spend caps, and prices before something is created, over REST. */

import { defineRoute, type Route } from '../http/route.ts';
import { accountIdOf } from './admin-routes.ts';
import type { SpendLimits } from './credit/spend-limits.ts';
import { AccountPath } from './schema.ts';
import * as shapes from './spend-schema.ts';

export interface SpendRoutesDeps {
  readonly quote: (accountId: number, query: shapes.QuoteQuery) => Promise<shapes.Quote>;
  readonly spendLimits: Pick<SpendLimits, 'of' | 'setOwn'>;
}

export function spendRoutes(deps: SpendRoutesDeps): Route[] {
  return [...capRoutes(deps), ...quoteRoutes(deps)];
}

function capRoutes({ spendLimits }: SpendRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/billing/cap',
      name: 'getSpendCap',
      tag: 'billing',
      summary: 'Show your spend cap, and what you spent this month',
      permission: 'billing:read',
      responses: { 200: shapes.SpendCap },
      errors: ['account_not_found'],
      handler: ({ principal }) => spendLimits.of(principal.accountId),
    }),
    defineRoute({
      method: 'PATCH',
      path: '/api/billing/cap',
      name: 'setSpendCap',
      audit: { detail: ['cap', 'warn_percent'] },
      tag: 'billing',
      summary: 'Set your spend cap per calendar month (UTC), and when to be warned',
      description:
        'At the cap, machines and databases are stopped, and nothing new can be created, started or stored (402 ' +
        '`spend_cap_reached`). Nothing is deleted. Everything starts again with a higher cap, or in the next month. An ' +
        'administrator’s cap holds beside yours: the lower cap applies.',
      permission: 'account:write',
      body: shapes.SpendCapChange,
      responses: { 200: shapes.SpendCap },
      errors: ['account_not_found', 'write_conflict'],
      handler: (call) => spendLimits.setOwn(call, call.principal.accountId, call.body),
    }),
    defineRoute({
      method: 'GET',
      path: '/api/admin/accounts/{id}/spend-cap',
      name: 'adminGetSpendCap',
      tag: 'admin',
      summary: 'Show the spend cap of an account, and what it spent this month',
      permission: 'admin:read',
      params: AccountPath,
      responses: { 200: shapes.SpendCap },
      errors: ['account_not_found'],
      handler: ({ params }) => spendLimits.of(accountIdOf(params.id)),
    }),
  ];
}

function quoteRoutes({ quote }: SpendRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/billing/quote',
      name: 'getQuote',
      tag: 'billing',
      summary: 'Show what a machine, bucket or database would cost, and how long your credits would last',
      permission: 'billing:read',
      query: shapes.QuoteQuery,
      responses: { 200: shapes.Quote },
      errors: ['account_not_found'],
      handler: ({ principal, query }) => quote(principal.accountId, query),
    }),
  ];
}
