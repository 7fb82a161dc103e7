/** `/webhooks?log=whk-…`: with the deliveries of one over it. */
import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../../shell/base-routes.ts';

interface WebhooksSearch {
  readonly log?: string;
}

export const webhookRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/webhooks',
    validateSearch: ({ log }: Record<string, unknown>): WebhooksSearch =>
      typeof log === 'string' ? { log } : {},
    component: lazyRouteComponent(() => import('./webhooks-page.tsx'), 'WebhooksPage'),
  }),
] as const;
