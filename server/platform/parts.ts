/** The lifecycle of a program's parts: what they start, and how they stop. */
import type { Logger } from 'pino';
import type { Job, Jobs } from './background/jobs.ts';

export interface LivingPart {
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

/** `elsewhere`: parts that run on another node of the cluster. */
export function startParts(
  parts: readonly LivingPart[],
  { elsewhere, jobs }: { readonly elsewhere: readonly LivingPart[]; readonly jobs: Pick<Jobs, 'start'> },
): void {
  for (const part of parts) {
    if (!elsewhere.includes(part)) part.start?.();
    for (const job of part.jobs ?? []) jobs.start(job);
  }
}

/** Stops background work, then the parts, in reverse. */
export async function closeParts(
  parts: readonly LivingPart[],
  { jobs, log }: { readonly jobs: Pick<Jobs, 'stop'>; readonly log: Pick<Logger, 'warn'> },
): Promise<void> {
  for (const part of parts) part.stop?.();
  await jobs.stop();
  for (const part of parts.toReversed()) await part.close?.();
  for (const part of parts) await flush(part, log);
}

async function flush(part: LivingPart, log: Pick<Logger, 'warn'>): Promise<void> {
  try {
    await part.flush?.();
  } catch (error) {
    // Metrics of the last seconds are not worth a failed stop.
    log.warn({ err: error }, 'storing metrics of the last seconds failed');
  }
}
