/** Makes the system's own operations: status, health, metrics, maintenance. */
import type { Alarms } from '../platform/alarms.ts';
import type { Meters } from '../platform/prometheus.ts';
import { VERSION } from '../platform/version.ts';
import { gaugeLoopDelay } from './host-metrics.ts';
import { type SystemRoutesDeps, systemRoutes } from './routes.ts';
import { Status, type StatusDeps, type WithFailure } from './status.ts';

type SystemDeps = Omit<SystemRoutesDeps, 'status'> &
  Omit<StatusDeps<unknown, WithFailure>, 'version'> & { readonly alarms: Alarms };

export function systemPart(deps: SystemDeps) {
  const { alarms } = deps;
  const status = new Status({ ...deps, version: VERSION });
  let loopDelay: ReturnType<typeof gaugeLoopDelay> | undefined;
  return {
    routes: systemRoutes({ ...deps, status }),
    gauges: (meters: Meters) => {
      loopDelay = gaugeLoopDelay(meters);
      const read = () => alarms.list().length;
      meters.gauge('cloudlet_alarms', { help: 'Active alarms', type: 'gauge', read });
    },
    leave: () => status.leave(),
    // Once at the start, so that figures are known when the metadata store goes away.
    start: () => {
      status.serve();
      void status.read({ accountId: 0, seesAll: true }).catch(() => {});
    },
    close: async () => loopDelay?.stop(),
  };
}
