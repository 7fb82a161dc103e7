/** Remaining file descriptors of this process, including sockets and pipes. */
import { readdirSync, readFileSync } from 'node:fs';
import type { Clock } from '../clock.ts';
import { AppError } from '../errors.ts';

export interface DescriptorsDeps {
  readonly clock: Clock;
  /** Descriptors reserved for requests, the database, and stopping machines. */
  readonly reserve: number;
  /** For tests. */
  readonly limit?: number;
  readonly count?: () => number;
}

/** The reserve is at most this share of a small limit. */
const RESERVE_SHARE = 4;
/** Counting thousands of descriptors takes some milliseconds. */
const COUNT_MS = 250;

export class Descriptors {
  readonly #clock: Clock;
  readonly #count: () => number;
  readonly #reserve: number;
  readonly limit: number;
  #counted = 0;
  #countedAt = Number.NEGATIVE_INFINITY;
  /** Descriptors taken since the last count. */
  #taken = 0;

  constructor({ clock, reserve, limit = readLimit(), count = countOpen }: DescriptorsDeps) {
    this.#clock = clock;
    this.#count = count;
    this.limit = limit;
    this.#reserve = Math.min(reserve, Math.floor(limit / RESERVE_SHARE));
  }

  /** Maximum connections to the API's ports, so that the reserve remains. */
  get connections(): number {
    return Math.max(1, this.limit - this.#reserve);
  }

  /** Whether `more` can be opened without using the reserve. */
  hasFree(more: number): boolean {
    if (this.#clock.monotonic() - this.#countedAt >= COUNT_MS) this.#recount();
    return this.#counted + this.#taken + more + this.#reserve <= this.limit;
  }

  /** Like hasFree, but also counts them as open in advance. For descriptors that stay open. */
  take(more: number): boolean {
    if (!this.hasFree(more)) return false;
    this.#taken += more;
    return true;
  }

  /** Throws `insufficient_capacity` unless hasFree. */
  assertFree(more: number): void {
    if (this.hasFree(more)) return;
    const detail = `The process is close to its open file limit (${this.limit})`;
    throw new AppError('insufficient_capacity', detail, {
      hint: 'Stop machines; the operator can raise the limit (LimitNOFILE= in the service, or ulimit -n)',
    });
  }

  #recount(): void {
    this.#counted = this.#count();
    this.#taken = 0;
    this.#countedAt = this.#clock.monotonic();
  }
}

/** Infinity if the system does not report it. */
function readLimit(): number {
  try {
    const text = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return text === undefined ? Number.POSITIVE_INFINITY : Number(text);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** Without the descriptor that the counting itself opens. */
function countOpen(): number {
  try {
    return readdirSync('/proc/self/fd').length - 1;
  } catch {
    // No descriptor is left, not even for that directory; or the directory does not exist, and there is no
    // limit.
    return Number.MAX_SAFE_INTEGER;
  }
}
