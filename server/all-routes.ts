/** Every route of the two origins: what is mounted, documented and walked by the permission test. */
import { type AdminRoutesDeps, adminRoutes } from './accounts/admin-routes.ts';
import { type AccountRoutesDeps, accountRoutes } from './accounts/routes.ts';
import { type BillingAdminRoutesDeps, billingAdminRoutes } from './billing/admin-routes.ts';
import { type PlanRoutesDeps, planRoutes } from './billing/plan-routes.ts';
import { type BillingRoutesDeps, billingRoutes } from './billing/routes.ts';
import { type ComputeRoutesDeps, computeRoutes } from './compute/routes.ts';
import { type DatabaseRoutesDeps, databaseRoutes } from './databases/routes.ts';
import { documentRoutes } from './http/document-routes.ts';
import { type IndexRoutesDeps, indexRoutes } from './http/index-routes.ts';
import { type OperationRoutesDeps, operationRoutes } from './http/operation-routes.ts';
import type { Route } from './http/route.ts';
import { type RecoveryRoutesDeps, recoveryRoutes } from './recovery/routes.ts';
import { type SystemRoutesDeps, systemRoutes } from './status/routes.ts';
import { cdnRoutes } from './storage/content-routes.ts';
import { type StorageRoutesDeps, storageRoutes } from './storage/routes.ts';
import { type WebhookRoutesDeps, webhookRoutes } from './webhooks/routes.ts';

export interface ApiDeps {
  readonly accounts: AccountRoutesDeps;
  readonly administration: AdminRoutesDeps;
  readonly storage: StorageRoutesDeps;
  readonly compute: ComputeRoutesDeps;
  readonly databases: DatabaseRoutesDeps;
  readonly recovery: RecoveryRoutesDeps;
  readonly billing: BillingRoutesDeps & BillingAdminRoutesDeps & PlanRoutesDeps;
  readonly webhooks: WebhookRoutesDeps;
  readonly system: SystemRoutesDeps;
  readonly operations: OperationRoutesDeps;
  readonly index: IndexRoutesDeps;
}

/** The API origin. */
export function apiRoutes(deps: ApiDeps): Route[] {
  const routes = [
    ...accountRoutes(deps.accounts),
    ...storageRoutes(deps.storage),
    ...computeRoutes(deps.compute),
    ...databaseRoutes(deps.databases),
    ...recoveryRoutes(deps.recovery),
    ...billingRoutes(deps.billing),
    ...webhookRoutes(deps.webhooks),
    ...operationRoutes(deps.operations),
    ...systemRoutes(deps.system),
    ...adminRoutes(deps.administration),
    ...planRoutes(deps.billing),
    ...billingAdminRoutes(deps.billing),
    ...indexRoutes(deps.index),
  ];
  return [...routes, ...documentRoutes(routes)];
}

/** The data origin. */
export function dataRoutes(deps: Parameters<typeof cdnRoutes>[0]): Route[] {
  return cdnRoutes(deps);
}

/** The API's routes as declared, without anything behind them: enough to document them. */
export function declaredRoutes(): Route[] {
  const nothing = {} as never;
  return apiRoutes({
    accounts: nothing,
    administration: nothing,
    storage: nothing,
    compute: nothing,
    databases: nothing,
    recovery: nothing,
    billing: nothing,
    webhooks: nothing,
    system: nothing,
    operations: nothing,
    index: nothing,
  });
}
