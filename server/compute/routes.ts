/** Compute over REST: who may call what. */
import type { Route } from '../http/route.ts';
import { type ConsoleRoutesDeps, consoleRoutes } from './console/console-routes.ts';
import { type ImageRoutesDeps, imageRoutes } from './images/image-routes.ts';
import { vmAdminRoutes } from './machines/vm-admin-routes.ts';
import { type VmRoutesDeps, vmRoutes } from './machines/vm-routes.ts';
import { type MetricsRoutesDeps, metricsRoutes } from './metrics/metrics-routes.ts';

export type ComputeRoutesDeps = VmRoutesDeps & ImageRoutesDeps & MetricsRoutesDeps & ConsoleRoutesDeps;

export function computeRoutes(deps: ComputeRoutesDeps): Route[] {
  return [
    ...vmRoutes(deps),
    ...vmAdminRoutes(deps),
    ...imageRoutes(deps),
    ...metricsRoutes(deps),
    ...consoleRoutes(deps),
  ];
}
