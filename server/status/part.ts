/** Builds the system's own operations: status, health, metrics, maintenance. */
import type { Meters } from '../platform/prometheus.ts';
import { VERSION } from '../platform/version.ts';
import { gaugeLoopDelay } from './host-metrics.ts';
import { type SystemRoutesDeps, systemRoutes } from './routes.ts';
import { Status, type StatusDeps, type WithFailure } from './status.ts';
import { meterSystem, type SystemMetersDeps } from './system-metrics.ts';

type SystemDeps = Omit<SystemRoutesDeps, 'status'> &
  Omit<StatusDeps<unknown, WithFailure>, 'version' | 'metrics'> &
  Pick<SystemMetersDeps, 'host'>;

export function systemPart(deps: SystemDeps) {
  const status = new Status({ ...deps, version: VERSION, metrics: () => deps.host.read() });
  let loopDelay: ReturnType<typeof gaugeLoopDelay> | undefined;
  return {
    routes: systemRoutes({ ...deps, status }),
    gauges: (meters: Meters) => {
      loopDelay = gaugeLoopDelay(meters);
      meterSystem(meters, { ...deps, version: VERSION });
    },
    leave: () => status.leave(),
    // Once at the start, so that figures are known if the metadata store becomes unavailable.
    start: () => {
      status.serve();
      void status.read({ accountId: 0, seesAll: true }).catch(() => {});
    },
    close: async () => loopDelay?.stop(),
  };
}
