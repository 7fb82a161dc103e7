/** The parts of a cloud, each of a domain: what they start, and how they end. */
import type { Logger } from 'pino';
import type { SocketRoute } from '../http/connections/web-sockets.ts';
import type { Route } from '../http/route.ts';
import type { Job, Jobs } from '../platform/jobs.ts';
import type { Meters } from '../platform/prometheus.ts';

/** A domain as the cloud sees it, beside its services. The cloud goes through all parts in start order. */
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

/** `elsewhere`: parts whose work another node of the cluster does. */
export function startParts(
  parts: readonly Part[],
  { elsewhere, jobs }: { readonly elsewhere: readonly Part[]; readonly jobs: Jobs },
): void {
  for (const part of parts) {
    if (!elsewhere.includes(part)) part.start?.();
    for (const job of part.jobs ?? []) jobs.start(job);
  }
}

/** Stops background work, then the parts, in reverse. */
export async function closeParts(
  parts: readonly Part[],
  { jobs, log }: { readonly jobs: Jobs; readonly log: Logger },
): Promise<void> {
  for (const part of parts) part.stop?.();
  await jobs.stop();
  for (const part of parts.toReversed()) await part.close?.();
  for (const part of parts) await flush(part, log);
}

async function flush(part: Part, log: Logger): Promise<void> {
  try {
    await part.flush?.();
  } catch (error) {
    // Figures of the last seconds are not worth a failed stop.
    log.warn({ err: error }, 'storing metrics of the last seconds failed');
  }
}
