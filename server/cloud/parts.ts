/** A domain as part of the cloud: its services, start and stop. The cloud starts all in order. */
import type { SocketRoute } from '../http/connections/web-sockets.ts';
import type { Route } from '../http/route.ts';
import type { LivingPart } from '../platform/parts.ts';
import type { Meters } from '../platform/prometheus.ts';

export interface Part extends LivingPart {
  /** Operations of the API. */
  readonly routes?: readonly Route[];
  /** Routes of the data origin: users' files by signed link. */
  readonly dataRoutes?: readonly Route[];
  readonly sockets?: readonly SocketRoute[];
  /** Registers the gauges and counters that Prometheus reads. */
  readonly gauges?: (meters: Meters) => void;
}
