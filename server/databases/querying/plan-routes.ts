/** Plans of statements over REST. */

import { closeOf } from '../../http/bodies/received-file.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { DatabasePath } from '../schema.ts';
import { Plan, PlanQuery } from './plan-schema.ts';
import type { Plans } from './plans.ts';

export function planRoutes({ plans }: { readonly plans: Plans }): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/databases/{database_id}/query/explain',
      name: 'explainDatabaseQuery',
      livesOn: 'host',
      tag: 'databases',
      summary: 'Show how a statement would be run',
      description:
        "The engine's plan as a list of steps, in the same format for all engines. The limits of queries apply. The " +
        'MySQL engine plans only statements that read.',
      permission: 'databases:write',
      params: DatabasePath,
      body: PlanQuery,
      maxBodyBytes: 2 * 2 ** 20,
      takesNul: true,
      changesNothing: () => true,
      responses: { 200: Plan },
      errors: [
        ...(['database_not_found', 'database_not_ready', 'query_failed', 'query_timeout'] as const),
        ...(['data_damaged', 'data_missing', 'engine_unavailable', 'host_disk_full'] as const),
        ...(['out_of_space', 'operation_cancelled'] as const),
      ],
      handler: ({ principal, params: { database_id }, body: input, reply }) =>
        plans.explain(principal, database_id, { input, signal: closeOf(reply) }),
    }),
  ];
}
