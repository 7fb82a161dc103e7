/** What a domain gives to the cloud beside its services. The cloud goes through all parts in start order. */
import type { Route } from '../http/route.ts';
import type { SocketRoute } from '../http/web-sockets.ts';
import type { Job } from '../platform/jobs.ts';
import type { Meters } from '../platform/prometheus.ts';

export interface Part {
  /** Operations of the API. */
  readonly routes?: readonly Route[];
  /** Routes of the data origin: users' files by signed link. */
  readonly dataRoutes?: readonly Route[];
  readonly sockets?: readonly SocketRoute[];
  /** Registers the gauges and counters that Prometheus reads. */
  readonly gauges?: (meters: Meters) => void;
  /** Only a server runs them, no operator's command. */
  readonly jobs?: readonly Job[];
  /** Begins what only a server does. */
  readonly start?: () => void;
  /** Begins nothing more: the jobs under way are about to be waited for. */
  readonly stop?: () => void;
  /** Ends what runs. */
  readonly close?: () => Promise<void>;
  /** Writes down what is written now and then, for the last time. */
  readonly flush?: () => Promise<unknown>;
}
