/** The calls of the JSON API about S3. */
import type { Route } from '../http/route.ts';
import { type EndpointRoutesDeps, endpointRoutes } from './endpoint-routes.ts';
import { type KeyTrialRoutesDeps, keyTrialRoutes } from './key-trial-routes.ts';
import { type SettingRoutesDeps, settingRoutes } from './setting-routes.ts';

export function s3Routes(deps: SettingRoutesDeps & KeyTrialRoutesDeps & EndpointRoutesDeps): Route[] {
  return [...endpointRoutes(deps), ...settingRoutes(deps), ...keyTrialRoutes(deps)];
}
