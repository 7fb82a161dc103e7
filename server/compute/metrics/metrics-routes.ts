/** A machine's metrics over REST. */

import { defineRoute, type Route } from '../../http/route.ts';
import { MetricsQuery } from '../../metadata/sample-history.ts';
import { namedObject, type Static, Type } from '../../platform/json/json-schema.ts';
import { VmPath } from '../schema.ts';
import type { Metrics } from './metrics.ts';

/** Public schemas of a machine's metrics. */
const OrNull = <T extends ReturnType<typeof Type.Number> | ReturnType<typeof Type.Integer>>(type: T) =>
  Type.Union([type, Type.Null()]);

const figures = {
  cpu_percent: OrNull(
    Type.Number({
      description:
        'Utilization of all vCPUs over the last seconds, 0 to 100; since the start for a run that just began',
    }),
  ),
  memory_percent: OrNull(Type.Number({ description: 'As reported by the guest, 0 to 100' })),
  memory_used_mb: OrNull(Type.Number({ description: 'MiB, as reported by the guest' })),
  disk_read_bytes: OrNull(Type.Integer({ description: 'Since this run began' })),
  disk_write_bytes: OrNull(Type.Integer({ description: 'Since this run began' })),
  network_rx_bytes: OrNull(
    Type.Integer({
      description:
        'Bytes received since this run began; if the hypervisor does not count them, bytes through the address',
    }),
  ),
  network_tx_bytes: OrNull(
    Type.Integer({
      description:
        'Bytes sent since this run began; if the hypervisor does not count them, bytes through the address',
    }),
  ),
};

const HistoryEntry = namedObject('VmMetricsEntry', {
  timestamp: Type.String({ description: 'Start of the step' }),
  ...figures,
});
export type HistoryEntry = Static<typeof HistoryEntry>;

export const VmMetrics = namedObject('VmMetrics', {
  vm_id: Type.String(),
  state: Type.String(),
  timestamp: Type.String({ description: 'When the metrics were read' }),
  ...figures,
  uptime_seconds: OrNull(Type.Integer({ description: 'Time since this run began' })),
  history: Type.Optional(
    Type.Array(HistoryEntry, {
      description:
        'Oldest first. Steps without samples are omitted; counters have the value of the last sample in the step',
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
      livesOn: 'host-or-any',
      tag: 'compute',
      summary: 'Read the metrics of a virtual machine',
      description:
        'Sampled from the hypervisor and the guest every 5 seconds. Zero while the machine is not running; ' +
        'null when unknown. With from, to or step, includes the history: one hour in steps of 5 ' +
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
