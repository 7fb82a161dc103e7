/** The parent routes: the root, and the frame that requires a session. */
import type { QueryClient } from '@tanstack/react-query';
import { createRootRouteWithContext, createRoute, redirect } from '@tanstack/react-router';
import { accountQuery, endOfSession, isSignedOut, session } from '../queries.ts';
import { NotFound } from './failures.tsx';

interface RouterContext {
  readonly queryClient: QueryClient;
}

export const rootRoute = createRootRouteWithContext<RouterContext>()({
  notFoundComponent: NotFound,
});

/**
 * Parent of every page for signed-in users; others are redirected to the sign-in page and back. The
 * router sets its component, the frame, which imports the palette, and with it the routes of every
 * area.
 */
export const shellRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: 'shell',
  beforeLoad: assertSignedIn,
});

/** For the `beforeLoad` of a route: redirects to sign-in and back. */
export async function assertSignedIn({
  context,
  location,
}: {
  readonly context: RouterContext;
  readonly location: { readonly href: string };
}): Promise<void> {
  try {
    await context.queryClient.ensureQueryData(accountQuery);
  } catch (error) {
    if (!isSignedOut(error)) throw error;
    if (endOfSession(error) === 'replaced') session.set('replaced');
    throw redirect({ to: '/sign-in', search: { next: location.href } });
  }
}
