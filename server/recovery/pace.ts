/** Lets bytes through no faster than they may be read, of all files together. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../platform/clock.ts';
import { HOLE } from './chunks.ts';

export interface PaceDeps {
  readonly clock: Clock;
  readonly bytesPerSecond: number;
  readonly signal: AbortSignal;
}

export class Pace {
  readonly #deps: PaceDeps;
  /** When what was let through so far may have been read; ms of the monotonic clock. */
  #dueAt = 0;

  constructor(deps: PaceDeps) {
    this.#deps = deps;
  }

  /** `onPiece` is told of the bytes of each. Rejects when the signal aborts. */
  async *through(pieces: AsyncIterable<Buffer>, onPiece: (bytes: number) => void): AsyncGenerator<Buffer> {
    for await (const piece of pieces) {
      // Nobody reads a hole.
      if (piece !== HOLE) await this.wait(piece.length);
      onPiece(piece.length);
      yield piece;
    }
  }

  /** Until so many bytes may have been read. Rejects when the signal aborts. */
  async wait(bytes: number): Promise<void> {
    const { clock, bytesPerSecond, signal } = this.#deps;
    this.#dueAt = Math.max(this.#dueAt, clock.monotonic()) + (bytes / bytesPerSecond) * 1000;
    const aheadMs = this.#dueAt - clock.monotonic();
    if (aheadMs > 1) await sleep(aheadMs, undefined, { signal });
  }
}
