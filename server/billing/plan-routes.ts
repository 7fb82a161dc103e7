/** Plans, who has which, and quotas over REST. */
import { accountNotFound } from '../accounts/accounts.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { Type } from '../platform/json-schema.ts';
import * as shapes from './plan-schema.ts';
import type { Plans } from './plans.ts';

export interface PlanRoutesDeps {
  readonly plans: Plans;
}

const PLANS = '/api/admin/plans';
const PLAN = `${PLANS}/{name}`;

/** Everything under /api/admin/plans, the terms of an account, and one's own quotas. */
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
      permission: 'admin',
      responses: { 200: Type.Array(shapes.Plan) },
      handler: () => plans.list(),
    }),
    defineRoute({
      method: 'POST',
      path: PLANS,
      name: 'adminCreatePlan',
      tag: 'admin',
      summary: 'Create a plan',
      description: 'Its prices are those of the price list that name it, and else those for all.',
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
      description: 'Limits that are lowered take nothing away; they refuse what is new.',
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

function accountRoutes({ plans }: PlanRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'PATCH',
      path: '/api/admin/accounts/{id}',
      name: 'adminChangeAccount',
      tag: 'admin',
      summary: 'Give an account another plan, or limits of its own',
      permission: 'admin',
      params: shapes.AccountPath,
      body: shapes.TermsChange,
      responses: { 200: shapes.AccountTerms },
      errors: ['account_not_found', 'plan_not_found'],
      handler: (call) => plans.setTerms(call, accountIdOf(call.params), call.body),
    }),
    defineRoute({
      method: 'GET',
      path: '/api/billing/quotas',
      name: 'getQuotas',
      tag: 'billing',
      summary: 'Show what you may have at most, and what you have',
      permission: 'billing:read',
      responses: { 200: shapes.AccountQuotas },
      errors: ['account_not_found'],
      handler: ({ principal }) => plans.quotasOf(principal.accountId),
    }),
  ];
}

/** Text that is no id names no account. */
function accountIdOf({ id }: { id: string }): number {
  if (!/^[1-9]\d{0,14}$/.test(id)) throw accountNotFound();
  return Number(id);
}
