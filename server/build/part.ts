/** A domain as the cloud sees it, beside its services. The cloud goes through all parts in start order. */
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
  /** Run by a server only, not by operator's commands. */
  readonly jobs?: readonly Job[];
  /** Starts the work of a server. */
  readonly start?: () => void;
  /** Starts nothing more: running jobs are about to be awaited. */
  readonly stop?: () => void;
  /** Stops everything. */
  readonly close?: () => Promise<void>;
  /** Writes buffered facts, for the last time. */
  readonly flush?: () => Promise<unknown>;
}
