/** A database's metrics over REST. */
import { defineRoute, type Route } from '../http/route.ts';
import { MetricsQuery } from '../metadata/sample-schema.ts';
import type { Metrics } from './metrics.ts';
import { DatabaseMetrics } from './metrics-schema.ts';
import { DatabasePath } from './schema.ts';

export interface DatabaseMetricsRoutesDeps {
  readonly metrics: Metrics;
}

export function databaseMetricsRoutes({ metrics }: DatabaseMetricsRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/databases/{database_id}/metrics',
      name: 'getDatabaseMetrics',
      tag: 'databases',
      summary: 'Read what a database takes and does',
      description:
        'Read from its engine every 5 seconds while it is used; a figure that the engine does not tell is ' +
        'null. With from, to or step also the history: one hour in steps of 5 seconds, 30 days in steps of 300.',
      permission: 'databases:read',
      params: DatabasePath,
      query: MetricsQuery,
      responses: { 200: DatabaseMetrics },
      errors: ['database_not_found'],
      handler: ({ principal, params, query }) => metrics.read(principal, params.database_id, query),
    }),
  ];
}
