/**
 * Memory for the parts of uploads, which S3 takes only as a whole. A part is counted from its first byte to
 * the answer of S3, with all the bytes that it may get: so the parts of all uploads together never take more
 * than the limit, and an upload that has memory for a part can always fill it. The first 64 KiB of a blob are
 * not counted: the number of connections bounds these.
 *
 * Free memory goes to the owner who has least, so that nobody's uploads keep others waiting. An upload
 * that sends slowly would hold its memory for long: when others wait for it, its part is evicted, after 5 s
 * if its owner has more than they have, else after 30 s.
 */
import type { Clock } from '../../platform/clock.ts';

/** Memory of one part, until release(). */
export interface PartLease {
  /** All bytes arrived: the lease ends when S3 has responded. */
  filled(): void;
  release(): void;
}

export interface PartMemoryDeps {
  /** Maximum bytes of all parts. */
  readonly limitBytes: number;
  readonly clock: Clock;
}

interface Held extends PartLease {
  readonly owner: number;
  readonly since: number;
  readonly evict: () => void;
  isFilled: boolean;
}

export interface PartRequest {
  readonly bytes: number;
  /** Account that the upload belongs to. */
  readonly owner: number;
  /** Called if the part arrives slowly and others wait: must release the lease. */
  readonly evict: () => void;
}

interface Waiter {
  readonly bytes: number;
  readonly owner: number;
  readonly grant: () => void;
}

/** How often a waiter checks for memory to take, ms. */
const LOOK_MS = 1000;
/** A part of 8 MiB that takes longer arrives at less than 270 KiB/s. */
const SLOW_MS = 30_000;
/** The same if its owner has more memory than the waiter. */
const UNFAIR_MS = 5000;

export class PartMemory {
  readonly #deps: PartMemoryDeps;
  readonly #held = new Set<Held>();
  readonly #waiting = new Set<Waiter>();
  readonly #byOwner = new Map<number, number>();
  #usedBytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: PartMemoryDeps) {
    this.#deps = deps;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Resolves when memory is available. A part larger than the limit gets all of it. */
  take({ bytes, owner, evict }: PartRequest): Promise<PartLease> {
    const counted = Math.min(bytes, this.#deps.limitBytes);
    return new Promise((resolve) => {
      const grant = () => resolve(this.#hold({ bytes: counted, owner, evict }));
      this.#waiting.add({ bytes: counted, owner, grant });
      this.#grant();
      this.#watch();
    });
  }

  #hold({ bytes, owner, evict }: PartRequest): PartLease {
    this.#use(owner, bytes);
    const held: Held = {
      owner,
      evict,
      since: this.#deps.clock.monotonic(),
      isFilled: false,
      filled: () => {
        held.isFilled = true;
      },
      release: () => {
        if (!this.#held.delete(held)) return;
        this.#use(owner, -bytes);
        this.#grant();
      },
    };
    this.#held.add(held);
    return held;
  }

  #use(owner: number, bytes: number): void {
    this.#usedBytes += bytes;
    const now = this.#usedBy(owner) + bytes;
    if (now === 0) this.#byOwner.delete(owner);
    else this.#byOwner.set(owner, now);
  }

  #usedBy(owner: number): number {
    return this.#byOwner.get(owner) ?? 0;
  }

  /** The first request of the owner with the least memory. */
  #next(): Waiter | undefined {
    let next: Waiter | undefined;
    for (const waiter of this.#waiting) {
      if (next === undefined || this.#usedBy(waiter.owner) < this.#usedBy(next.owner)) next = waiter;
    }
    return next;
  }

  #grant(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      if (this.#usedBytes + next.bytes > this.#deps.limitBytes) return;
      this.#waiting.delete(next);
      next.grant();
    }
  }

  #watch(): void {
    if (this.#waiting.size === 0 || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#evictFor(this.#next());
      this.#watch();
    }, LOOK_MS).unref();
  }

  #evictFor(waiter: Waiter | undefined): void {
    if (waiter === undefined) return;
    const now = this.#deps.clock.monotonic();
    const fair = this.#usedBy(waiter.owner) + waiter.bytes;
    // In the order of granting, so the first is the slowest.
    for (const held of this.#held) {
      const mostMs = this.#usedBy(held.owner) > fair ? UNFAIR_MS : SLOW_MS;
      if (held.isFilled || now - held.since < mostMs) continue;
      held.evict();
      return;
    }
  }
}
