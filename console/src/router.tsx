/** Every address of the console. Each area lists its own in pages/<area>/routes.ts. */
import { createRouter } from '@tanstack/react-router';
import { cloud } from './cloud.ts';
import { accountRoutes } from './pages/account/routes.ts';
import { administrationRoutes } from './pages/administration/routes.ts';
import { billingRoutes } from './pages/billing/routes.ts';
import { databaseRoutes } from './pages/databases/routes.ts';
import { doorRoutes } from './pages/door/routes.ts';
import { machineRoutes } from './pages/machines/routes.ts';
import { overviewRoutes } from './pages/overview/routes.ts';
import { recoveryRoutes } from './pages/recovery/routes.ts';
import { storageRoutes } from './pages/storage/routes.ts';
import { isSignedOut, queryClient, whenSessionEnds } from './queries.ts';
import { rootRoute, shellRoute } from './shell/base-routes.ts';

const routeTree = rootRoute.addChildren([
  ...doorRoutes,
  shellRoute.addChildren([
    ...overviewRoutes,
    ...storageRoutes,
    ...machineRoutes,
    ...databaseRoutes,
    ...billingRoutes,
    ...recoveryRoutes,
    ...administrationRoutes,
    ...accountRoutes,
  ]),
]);

export const router = createRouter({
  routeTree,
  context: { queryClient },
  defaultPreload: 'intent',
  scrollRestoration: true,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}

const isOutside = () => router.state.location.pathname.startsWith('/sign-');

whenSessionEnds(async () => {
  if (isOutside()) return;
  // The refusal may be of a call that was made before one signed in again.
  const isOver = await cloud.account.get().then(() => false, isSignedOut);
  if (!isOver || isOutside()) return;
  queryClient.removeQueries({ queryKey: ['account'] });
  await router.navigate({ to: '/sign-in', search: { next: router.state.location.href, ended: true } });
});
