/** The calls of the JSON API about S3. */
import type { Route } from '../http/route.ts';
import { type AccessRoutesDeps, accessRoutes } from './access/access-routes.ts';
import { type EndpointRoutesDeps, endpointRoutes } from './endpoint-routes.ts';
import { type LifecyclePreviewDeps, lifecyclePreviewRoutes } from './settings/lifecycle-preview-routes.ts';
import { type SettingRoutesDeps, settingRoutes } from './settings/setting-routes.ts';
import { type KeyTrialRoutesDeps, keyTrialRoutes } from './sign/key-trial-routes.ts';

export type S3RoutesDeps = SettingRoutesDeps &
  AccessRoutesDeps &
  LifecyclePreviewDeps &
  KeyTrialRoutesDeps &
  EndpointRoutesDeps;

export function s3Routes(deps: S3RoutesDeps): Route[] {
  return [
    ...endpointRoutes(deps),
    ...settingRoutes(deps),
    ...accessRoutes(deps),
    ...lifecyclePreviewRoutes(deps),
    ...keyTrialRoutes(deps),
  ];
}
