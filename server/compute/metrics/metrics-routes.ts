/** A machine's metrics over REST. */

import { defineRoute, type Route } from '../../http/route.ts';
import { MetricsQuery } from '../../metadata/sample-history.ts';
import { namedObject, type Static, Type } from '../../platform/json-schema.ts';
import { VmPath } from '../schema.ts';
import type { Metrics } from './metrics.ts';

/** What a machine's metrics look like from outside. */
const OrNull = <T extends ReturnType<typeof Type.Number> | ReturnType<typeof Type.Integer>>(type: T) =>
  Type.Union([type, Type.Null()]);

const figures = {
  cpu_percent: OrNull(
    Type.Number({
      description:
        'Of all its processors together, 0 to 100: of the last seconds, or since it started while that is less',
    }),
  ),
  memory_percent: OrNull(Type.Number({ description: 'As the guest counts it, 0 to 100' })),
  memory_used_mb: OrNull(Type.Number({ description: 'MiB, as the guest counts it' })),
  disk_read_bytes: OrNull(Type.Integer({ description: 'Since this run began' })),
  disk_write_bytes: OrNull(Type.Integer({ description: 'Since this run began' })),
  network_rx_bytes: OrNull(
    Type.Integer({
      description:
        'To the machine since this run began; where the engine does not count, the bytes through its address',
    }),
  ),
  network_tx_bytes: OrNull(Type.Integer({ description: 'From the machine, likewise' })),
};

const HistoryEntry = namedObject('VmMetricsEntry', {
  timestamp: Type.String({ description: 'Beginning of the step' }),
  ...figures,
});
export type HistoryEntry = Static<typeof HistoryEntry>;

export const VmMetrics = namedObject('VmMetrics', {
  vm_id: Type.String(),
  state: Type.String(),
  timestamp: Type.String({ description: 'When the figures were read' }),
  ...figures,
  uptime_seconds: OrNull(Type.Integer({ description: 'Since its processor began to run' })),
  history: Type.Optional(
    Type.Array(HistoryEntry, {
      description: 'Oldest first. Steps without a reading are left out; counters are those of the last one',
    }),
  ),
});
export type VmMetrics = Static<typeof VmMetrics>;

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
