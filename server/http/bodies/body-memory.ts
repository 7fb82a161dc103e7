/**
 * Memory of request bodies. It is reserved as bytes arrive, not when they are announced, with
 * limits in total and per account; when it is short, the slowest body of the account with the most
 * memory is aborted.
 */
import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';

/** Memory is reserved in blocks of this size. */
export const BLOCK_BYTES = 64 * 1024;

/** The body of one request. */
export interface HeldBody {
  /**
   * Reserves nothing. Throws `overloaded` to the account with the most memory if this many bytes
   * would not fit: reading them would be wasted work.
   */
  expect(bytes: number): void;
  /** Reserves `bytes` more, before they are kept. Throws `overloaded`. */
  add(bytes: number): void;
  /** The body is complete and can no longer be aborted. */
  arrived(): void;
  /** Call when the request has ended. Idempotent. */
  release(): void;
}

interface Held {
  readonly accountId: number;
  readonly since: number;
  bytes: number;
  /** Stops reading with this error; null: the body has arrived. */
  cut: ((error: AppError) => void) | null;
  isOver: boolean;
}

export class BodyMemory {
  readonly #maxBytes: number;
  readonly #clock: Pick<Clock, 'monotonic'>;
  #bytes = 0;
  readonly #byAccount = new Map<number, number>();
  /** Incomplete bodies, which may be aborted. */
  readonly #arriving = new Set<Held>();

  constructor(maxBytes: number, clock: Pick<Clock, 'monotonic'>) {
    this.#maxBytes = maxBytes;
    this.#clock = clock;
  }

  /**
   * Nothing is reserved yet. `cut` is called at most once, when the memory is needed for others: it
   * must stop reading and discard the bytes read.
   */
  hold(accountId: number, cut: ((error: AppError) => void) | null = null): HeldBody {
    const held: Held = { accountId, since: this.#clock.monotonic(), bytes: 0, cut, isOver: false };
    if (cut !== null) this.#arriving.add(held);
    return {
      expect: (bytes) => {
        if (this.#holdsMost(accountId) && !this.#fits(accountId, bytes)) throw overloaded();
      },
      add: (bytes) => {
        if (held.isOver) throw new AppError('bad_http', 'The client disconnected before its body was read');
        this.#makeRoom(held, bytes);
        this.#count(held, bytes);
      },
      arrived: () => {
        held.cut = null;
        this.#arriving.delete(held);
      },
      release: () => this.#release(held),
    };
  }

  #release(held: Held): void {
    this.#arriving.delete(held);
    if (!held.isOver) this.#count(held, -held.bytes);
    held.isOver = true;
  }

  #count(held: Held, bytes: number): void {
    const { accountId } = held;
    const own = (this.#byAccount.get(accountId) ?? 0) + bytes;
    held.bytes += bytes;
    this.#bytes += bytes;
    if (own === 0) this.#byAccount.delete(accountId);
    else this.#byAccount.set(accountId, own);
  }

  /** Aborts bodies to free memory. Throws `overloaded` if this body would be next. */
  #makeRoom(held: Held, bytes: number): void {
    while (!this.#fits(held.accountId, bytes)) {
      const slowest = this.#slowestFor(held, bytes);
      if (slowest === null || slowest === held) throw overloaded();
      const { cut } = slowest;
      this.#release(slowest);
      cut?.(overloaded());
    }
  }

  #holdsMost(accountId: number): boolean {
    const own = this.#byAccount.get(accountId) ?? 0;
    return own > 0 && own === Math.max(...this.#byAccount.values());
  }

  /** One account may hold no more than it leaves free, so that a new caller finds memory. */
  #fits(accountId: number, bytes: number): boolean {
    const own = this.#byAccount.get(accountId) ?? 0;
    const left = this.#maxBytes - this.#bytes - bytes;
    return left >= 0 && (own === 0 || own + bytes <= left);
  }

  /** The slowest body of the account with the most memory; null: none may be aborted. */
  #slowestFor(held: Held, bytes: number): Held | null {
    const now = this.#clock.monotonic();
    const speed = ({ bytes: arrived, since }: Held) => arrived / Math.max(1, now - since);
    const would = (accountId: number) =>
      (this.#byAccount.get(accountId) ?? 0) + (accountId === held.accountId ? bytes : 0);
    let found: Held | null = null;
    for (const one of this.#arriving) {
      // A body without memory frees nothing.
      if (one.bytes === 0 && one !== held) continue;
      const more = found === null ? 1 : would(one.accountId) - would(found.accountId);
      if (found === null || more > 0 || (more === 0 && speed(one) < speed(found))) found = one;
    }
    if (found === null || would(found.accountId) < would(held.accountId)) return null;
    return found;
  }
}

function overloaded(): AppError {
  return new AppError('overloaded', 'Too many large requests are in progress', {
    hint: 'Send fewer or smaller requests at the same time, or send them faster',
    retryAfterSeconds: 1,
  });
}
