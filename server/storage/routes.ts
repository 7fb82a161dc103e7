/** Storage over REST: who may call what, and how forms and queries become calls. */
import type { Route } from '../http/route.ts';
import { type BucketRoutesDeps, bucketRoutes } from './bucket-routes.ts';
import { type ContentRoutesDeps, contentRoutes } from './content-routes.ts';
import { type ObjectRoutesDeps, objectRoutes } from './object-routes.ts';
import { uploadRoutes } from './upload-routes.ts';

export type StorageRoutesDeps = BucketRoutesDeps & ObjectRoutesDeps & ContentRoutesDeps;

export function storageRoutes(deps: StorageRoutesDeps): Route[] {
  return [...bucketRoutes(deps), ...uploadRoutes(deps), ...objectRoutes(deps), ...contentRoutes(deps)];
}
