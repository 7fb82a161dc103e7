/** A machine's metrics over REST. */
import { defineRoute, type Route } from '../../http/route.ts';
import { MetricsQuery } from '../../metadata/sample-schema.ts';
import { VmPath } from '../schema.ts';
import type { Metrics } from './metrics.ts';
import { VmMetrics } from './metrics-schema.ts';

export interface MetricsRoutesDeps {
  readonly metrics: Pick<Metrics, 'read'>;
}

export function metricsRoutes({ metrics }: MetricsRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/vms/{vm_id}/metrics',
      name: 'getVmMetrics',
      tag: 'compute',
      summary: 'Read the metrics of a virtual machine',
      description:
        'Read from the hypervisor and the guest every 5 seconds. A machine that does not run has zeros; a ' +
        'figure that is not known is null. With from, to or step also the history: one hour in steps of 5 ' +
        'seconds, 30 days in steps of 300.',
      permission: 'compute:read',
      params: VmPath,
      query: MetricsQuery,
      responses: { 200: VmMetrics },
      errors: ['vm_not_found'],
      handler: ({ principal, params, query }) => metrics.read(principal, params.vm_id, query),
    }),
  ];
}
