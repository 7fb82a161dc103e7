/**
 * Removes what engines have and no row knows: a creation was cut off before its commit, or a deletion after
 * it. An orphan is left alone for a while, and nothing is removed when there are far too many (SweepGuard).
 */
import type { Clock } from '../platform/clock.ts';
import type { SweepGuard } from '../platform/sweep-guard.ts';

export interface OrphansDeps {
  readonly clock: Clock;
  readonly sweepGuard: SweepGuard;
  /** How long an orphan is left alone after it was first found, ms. */
  readonly orphanGraceMs: number;
  readonly isClosing: () => boolean;
  readonly onError: (id: string, what: string, error: unknown) => void;
}

/** One that no row knows. */
export interface Unnamed {
  readonly remove: () => Promise<void>;
  /** It was made a moment ago, and is counted but left alone. */
  readonly isYoung?: boolean;
}

/** What a look at the engines gave. */
export interface Found {
  /** Of the data directory, and in words: what is swept. */
  readonly folder: string;
  readonly what: string;
  /** How many there are, those with a row included. */
  readonly count: number;
  /** By name. */
  readonly unnamed: ReadonlyMap<string, Unnamed>;
}

/** After one that could not be removed, beside the grace, ms. */
const RETRY_MS = 60 * 60_000;

export class Orphans {
  readonly #deps: OrphansDeps;
  /** When each was first found, monotonic ms. */
  readonly #since = new Map<string, number>();

  constructor(deps: OrphansDeps) {
    this.#deps = deps;
  }

  /** Removes those that were found long ago, and forgets those that are gone. Failures are reported. */
  async sweep({ folder, what, count, unnamed }: Found): Promise<void> {
    const { clock, sweepGuard, orphanGraceMs, isClosing, onError } = this.#deps;
    for (const known of this.#since.keys()) if (!unnamed.has(known)) this.#since.delete(known);
    if (!(await sweepGuard.allows({ folder, what, found: count, unnamed: unnamed.size }))) return;
    for (const [id, { remove, isYoung = false }] of unnamed) {
      const since = this.#since.get(id) ?? clock.monotonic();
      this.#since.set(id, since);
      if (isClosing() || isYoung || clock.monotonic() - since < orphanGraceMs) continue;
      try {
        await remove();
        this.#since.delete(id);
      } catch (error) {
        onError(id, 'what no row knows could not be removed', error);
        this.#since.set(id, clock.monotonic() + RETRY_MS);
      }
    }
  }
}
