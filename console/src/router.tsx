/** Every URL of the console. Each area lists its own in pages/<area>/routes.ts. */
import { createRouter } from '@tanstack/react-router';
import { cloud } from './cloud.ts';
import { accountRoutes } from './pages/account/routes.ts';
import { administrationRoutes } from './pages/administration/routes.ts';
import { billingRoutes } from './pages/billing/routes.ts';
import { databaseRoutes } from './pages/databases/routes.ts';
import { machineRoutes } from './pages/machines/routes.ts';
import { overviewRoutes } from './pages/overview/routes.ts';
import { recoveryRoutes } from './pages/recovery/routes.ts';
import { referenceRoutes } from './pages/reference/routes.ts';
import { signInRoutes } from './pages/sign-in/routes.ts';
import { storageRoutes } from './pages/storage/routes.ts';
import { webhookRoutes } from './pages/webhooks/routes.ts';
import { accountQuery, endOfSession, isSignedOut, queryClient, session, whenSessionEnds } from './queries.ts';
import { rootRoute, shellRoute } from './shell/base-routes.ts';
import { PageFailed } from './shell/failures.tsx';
import { Shell } from './shell/shell.tsx';

shellRoute.update({ component: Shell });

const routeTree = rootRoute.addChildren([
  ...signInRoutes,
  shellRoute.addChildren([
    ...overviewRoutes,
    ...storageRoutes,
    ...machineRoutes,
    ...databaseRoutes,
    ...billingRoutes,
    ...recoveryRoutes,
    ...administrationRoutes,
    ...webhookRoutes,
    ...accountRoutes,
    ...referenceRoutes,
  ]),
]);

export const router = createRouter({
  routeTree,
  context: { queryClient },
  // Unknown search params are dropped: `?tab=nothing` shows the first tab.
  search: { strict: true },
  // Shown instead of the failing page: the frame around it stays.
  defaultErrorComponent: PageFailed,
  defaultPreload: 'intent',
  // The query client has the cache: preloading always calls it, and a displayed page never repeats
  // the call.
  defaultPreloadStaleTime: 0,
  defaultStaleTime: Number.POSITIVE_INFINITY,
  scrollRestoration: true,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}

const isSigningIn = () => router.state.location.pathname.startsWith('/sign-');

whenSessionEnds(async () => {
  // Before the first sign-in, the route redirects to the sign-in page.
  if (queryClient.getQueryData(accountQuery.queryKey) === undefined || session.get() !== 'alive') return;
  if (isSigningIn()) return;
  // The refused call may be older than the current session.
  const refusal: unknown = await cloud.getAccount({ api_key: false }).then(
    () => null,
    (error) => error,
  );
  if (isSignedOut(refusal) && !isSigningIn()) session.set(endOfSession(refusal));
});
