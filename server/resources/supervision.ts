/**
 * Reconciles resources of one kind with their engines. A failed reconciliation is retried with
 * exponential back-off; resources of engines without a row are removed after a grace period: their
 * creation was interrupted before its commit, or their deletion after it.
 */

import type { SweepGuard } from '../platform/background/sweep-guard.ts';
import type { Clock } from '../platform/clock.ts';
import { eachOf } from '../platform/concurrency.ts';
import { AppError } from '../platform/errors.ts';

export interface SupervisionDeps {
  readonly clock: Clock;
  readonly sweepGuard: SweepGuard;
  /** How long an orphan is kept after it was first found, ms. */
  readonly orphanGraceMs: number;
  /** Resources reconciled concurrently. */
  readonly atOnce: number;
  /** No work begins once they are closing. */
  readonly turns: { readonly isClosing: boolean };
  readonly onError: (id: string, what: string, error: unknown) => void;
}

/** An engine's resource without a row. */
export interface Orphan {
  readonly remove: () => Promise<void>;
  /** Created recently: counted, but not removed. */
  readonly isYoung?: boolean;
}

/** One listing of the engines. */
export interface Found {
  /** The folder of the data directory that is swept, and its contents in words. */
  readonly folder: string;
  readonly what: string;
  /** Number of resources, including those with a row. */
  readonly count: number;
  /** By name. */
  readonly orphans: ReadonlyMap<string, Orphan>;
}

/** One failure of a resource. */
export interface Failure {
  readonly error: unknown;
  /** Consecutive failures, including this one. */
  readonly count: number;
}

/** Wait after a failure, ms; doubled after each further one. */
const RETRY_MS = 15_000;
const MAX_RETRY_MS = 15 * 60_000;
/** Wait after a failure to remove an orphan, besides the grace period, ms. */
const ORPHAN_RETRY_MS = 60 * 60_000;

export class Supervision {
  readonly #deps: SupervisionDeps;
  readonly #failures = new Map<string, { readonly count: number; readonly retryAt: number }>();
  /** When each orphan was first found, monotonic ms. */
  readonly #orphansSince = new Map<string, number>();

  constructor(deps: SupervisionDeps) {
    this.#deps = deps;
  }

  /**
   * Reconciles all resources that need it, `atOnce` at the same time, except those that wait for a
   * retry, until Cloudlet closes. Failures of resources that no longer need it are forgotten.
   */
  async each(ids: readonly string[], reconcile: (id: string) => Promise<unknown>): Promise<void> {
    const { clock, atOnce, turns } = this.#deps;
    const listed = new Set(ids);
    for (const id of this.#failures.keys()) if (!listed.has(id)) this.#failures.delete(id);
    await eachOf(ids, atOnce, async (id) => {
      if (turns.isClosing || (this.#failures.get(id)?.retryAt ?? 0) > clock.monotonic()) return;
      await reconcile(id);
    });
  }

  /**
   * Runs `work` on a resource and reports its error. Resolves with the failure, null if there was
   * none. An AppError means that the engine is unavailable or full, not that it failed: the next
   * round retries.
   */
  async attempt(id: string, work: () => Promise<unknown>): Promise<Failure | null> {
    const { clock, onError } = this.#deps;
    try {
      await work();
      this.#failures.delete(id);
      return null;
    } catch (error) {
      onError(id, 'reconciling a resource with its engine failed', error);
      const count = (this.#failures.get(id)?.count ?? 0) + 1;
      const wait = error instanceof AppError ? 0 : Math.min(RETRY_MS * 2 ** (count - 1), MAX_RETRY_MS);
      this.#failures.set(id, { count, retryAt: clock.monotonic() + wait });
      return { error, count };
    }
  }

  /**
   * Removes orphans that were found long ago. Removes none if there are far too many (SweepGuard).
   * Failures are reported.
   */
  async sweep({ folder, what, count, orphans }: Found): Promise<void> {
    const { clock, sweepGuard, orphanGraceMs, turns, onError } = this.#deps;
    const firstFound = this.#orphansSince;
    for (const known of firstFound.keys()) if (!orphans.has(known)) firstFound.delete(known);
    if (!(await sweepGuard.allows({ folder, what, found: count, unnamed: orphans.size }))) return;
    for (const [id, { remove, isYoung = false }] of orphans) {
      const since = firstFound.get(id) ?? clock.monotonic();
      firstFound.set(id, since);
      if (turns.isClosing || isYoung || clock.monotonic() - since < orphanGraceMs) continue;
      try {
        await remove();
        firstFound.delete(id);
      } catch (error) {
        onError(id, 'removing leftovers without a row failed', error);
        firstFound.set(id, clock.monotonic() + ORPHAN_RETRY_MS);
      }
    }
  }
}
