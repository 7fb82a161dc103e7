/** How many files this process may still open. Sockets and pipes are files, too. */
import { readdirSync, readFileSync } from 'node:fs';
import type { Clock } from './clock.ts';
import { AppError } from './errors.ts';

export interface DescriptorsDeps {
  readonly clock: Clock;
  /** So many are kept for what must go on: requests, the database, the end of machines. */
  readonly reserve: number;
  /** For tests. */
  readonly limit?: number;
  readonly count?: () => number;
}

/** The reserve is at most this share of a small limit. */
const RESERVE_SHARE = 4;
/** Counting takes some milliseconds when there are thousands. */
const COUNT_MS = 250;

export class Descriptors {
  readonly #clock: Clock;
  readonly #count: () => number;
  readonly #reserve: number;
  readonly limit: number;
  #counted = 0;
  #countedAt = Number.NEGATIVE_INFINITY;
  /** Taken since they were counted. */
  #taken = 0;

  constructor({ clock, reserve, limit = readLimit(), count = countOpen }: DescriptorsDeps) {
    this.#clock = clock;
    this.#count = count;
    this.limit = limit;
    this.#reserve = Math.min(reserve, Math.floor(limit / RESERVE_SHARE));
  }

  /** How many connections to the API's ports there may be at most, so that the reserve is left. */
  get connections(): number {
    return Math.max(1, this.limit - this.#reserve);
  }

  /** Whether `more` can be opened and the reserve is left. */
  hasRoom(more: number): boolean {
    if (this.#clock.monotonic() - this.#countedAt >= COUNT_MS) this.#recount();
    return this.#counted + this.#taken + more + this.#reserve <= this.limit;
  }

  /** As hasRoom; then they count as open before they are. For what stays open. */
  take(more: number): boolean {
    if (!this.hasRoom(more)) return false;
    this.#taken += more;
    return true;
  }

  /** Throws `insufficient_capacity` unless hasRoom. */
  assertFree(more: number): void {
    if (this.hasRoom(more)) return;
    const detail = `This cloud has nearly as many files open as its process may (${this.limit})`;
    throw new AppError('insufficient_capacity', detail, {
      hint: 'Stop machines; the operator can raise the limit: LimitNOFILE= in the service, or ulimit -n',
    });
  }

  #recount(): void {
    this.#counted = this.#count();
    this.#taken = 0;
    this.#countedAt = this.#clock.monotonic();
  }
}

/** Infinity where the system does not tell. */
function readLimit(): number {
  try {
    const text = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return text === undefined ? Number.POSITIVE_INFINITY : Number(text);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** Without the one that the counting itself opens. */
function countOpen(): number {
  try {
    return readdirSync('/proc/self/fd').length - 1;
  } catch {
    // Nothing more can be opened, not even that directory; or there is no such directory, and no limit.
    return Number.MAX_SAFE_INTEGER;
  }
}
