/**
 * Memory for the parts of uploads, which S3 takes only as a whole. A part is counted from its first byte to
 * the answer of S3, with all the bytes that it may get: so the parts of all uploads together never take more
 * than the limit, and an upload that has memory for a part can always fill it. The first 64 KiB of a blob are
 * not counted: the number of connections bounds these.
 *
 * An upload that sends slowly would hold its memory for long. When others wait for it, the slowest part ends.
 */
import type { Clock } from '../../platform/clock.ts';

/** Memory of one part, until release(). */
export interface PartLease {
  /** All its bytes are there: it ends by itself, when S3 has answered. */
  filled(): void;
  release(): void;
}

export interface PartMemoryDeps {
  /** Bytes of all parts together. */
  readonly limitBytes: number;
  readonly clock: Clock;
}

interface Held extends PartLease {
  readonly bytes: number;
  readonly since: number;
  readonly evict: () => void;
  isFilled: boolean;
}

interface Waiter {
  readonly bytes: number;
  readonly grant: () => void;
}

/** A waiter asks for another's memory that often, ms. */
const LOOK_MS = 1000;
/** A part of 8 MiB that takes longer comes at less than 270 KiB/s. */
const SLOW_MS = 30_000;

export class PartMemory {
  readonly #deps: PartMemoryDeps;
  readonly #held = new Set<Held>();
  readonly #waiting: Waiter[] = [];
  #usedBytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: PartMemoryDeps) {
    this.#deps = deps;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /**
   * Resolves when the memory is free, in the order of the calls. A part larger than the limit gets all of it.
   * `evict` is called when the part came slowly and others wait: it must release the lease.
   */
  take(bytes: number, evict: () => void): Promise<PartLease> {
    const counted = Math.min(bytes, this.#deps.limitBytes);
    return new Promise((resolve) => {
      const grant = () => resolve(this.#hold(counted, evict));
      if (this.#waiting.length === 0 && this.#fits(counted)) grant();
      else this.#waiting.push({ bytes: counted, grant });
      this.#watch();
    });
  }

  #fits(bytes: number): boolean {
    return this.#usedBytes + bytes <= this.#deps.limitBytes;
  }

  #hold(bytes: number, evict: () => void): PartLease {
    this.#usedBytes += bytes;
    const held: Held = {
      bytes,
      evict,
      since: this.#deps.clock.monotonic(),
      isFilled: false,
      filled: () => {
        held.isFilled = true;
      },
      release: () => {
        if (!this.#held.delete(held)) return;
        this.#usedBytes -= bytes;
        this.#grantNext();
      },
    };
    this.#held.add(held);
    return held;
  }

  #grantNext(): void {
    for (let next = this.#waiting[0]; next !== undefined && this.#fits(next.bytes); next = this.#waiting[0]) {
      this.#waiting.shift();
      next.grant();
    }
  }

  #watch(): void {
    if (this.#waiting.length === 0 || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#evictSlowest();
      this.#watch();
    }, LOOK_MS).unref();
  }

  #evictSlowest(): void {
    const before = this.#deps.clock.monotonic() - SLOW_MS;
    // In the order in which they were granted, so the first is the slowest.
    for (const held of this.#held) {
      if (held.isFilled || held.since > before) continue;
      held.evict();
      return;
    }
  }
}
