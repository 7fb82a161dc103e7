/** How fast the other side of a transfer takes or gives bytes while it is waited for. */
import type { Clock } from '../clock.ts';

/** A rate is of at least this much waiting; what was faster before does not count. */
const PACE_MS = 10_000;

interface Mark {
  readonly waitedMs: number;
  readonly bytes: number;
}

const START: Mark = { waitedMs: 0, bytes: 0 };

export class Pace {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #waitedMs = 0;
  #bytes = 0;
  #waitsSince: number | null = null;
  #before = START;
  #last = START;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** The wait for the other side begins. Only such time counts. */
  waits(): void {
    this.#waitsSince = this.#clock.monotonic();
  }

  /** The wait is over: it took or gave these bytes. */
  went(bytes: number): void {
    this.#waitedMs = this.#waited();
    this.#waitsSince = null;
    this.#bytes += bytes;
    this.#turn();
  }

  /** Whether it was waited for so long in all, and was slower than this in the last seconds of waiting. */
  isBelow(bytesPerMs: number, waitedMs = PACE_MS): boolean {
    return this.#waited() >= waitedMs && this.bytesPerMs() < bytesPerMs;
  }

  /** In the last seconds of waiting. */
  bytesPerMs(): number {
    if (this.#waited() - this.#waitedMs >= PACE_MS) return 0;
    this.#turn();
    const { waitedMs, bytes } = this.#before;
    return (this.#bytes - bytes) / Math.max(1, this.#waited() - waitedMs);
  }

  #waited(): number {
    return this.#waitedMs + (this.#waitsSince === null ? 0 : this.#clock.monotonic() - this.#waitsSince);
  }

  #turn(): void {
    const waitedMs = this.#waited();
    if (waitedMs - this.#last.waitedMs < PACE_MS) return;
    this.#before = this.#last;
    this.#last = { waitedMs, bytes: this.#bytes };
  }
}
