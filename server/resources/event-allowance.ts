/** Limits events that are free for an account: each is stored and sent to its webhooks. */
import type { Clock } from '../platform/clock.ts';

/** Events added per second. */
const PER_SECOND = 1;

export class EventAllowance {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #burst: number;
  /** Remaining events by account, if fewer than the burst. */
  readonly #left = new Map<number, { readonly events: number; readonly at: number }>();

  /** `burst`: maximum events without a pause. */
  constructor(clock: Pick<Clock, 'monotonic'>, burst: number) {
    this.#clock = clock;
    this.#burst = burst;
  }

  /** False: at most `reserve` events remain. */
  take(accountId: number, reserve = 0): boolean {
    const events = this.#eventsOf(accountId);
    if (events < reserve + 1) return false;
    this.#left.set(accountId, { events: events - 1, at: this.#clock.monotonic() });
    return true;
  }

  /** Forgets accounts with all events available again. Call now and then. */
  forget(): void {
    for (const accountId of this.#left.keys()) {
      if (this.#eventsOf(accountId) >= this.#burst) this.#left.delete(accountId);
    }
  }

  #eventsOf(accountId: number): number {
    const left = this.#left.get(accountId);
    if (left === undefined) return this.#burst;
    return Math.min(this.#burst, left.events + ((this.#clock.monotonic() - left.at) / 1000) * PER_SECOND);
  }
}
