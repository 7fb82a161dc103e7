/** Limits the bodies that are in memory at the same time: of everybody together, and of each account. */
import { AppError } from '../platform/errors.ts';

/** Smaller bodies are not counted: their connections take as much. */
export const COUNTED_BODY_BYTES = 16 * 1024;

/** The body of one request. */
export interface HeldBody {
  /** Counts so many bytes more, before they are read. Throws `overloaded`. */
  add(bytes: number): void;
  /** The request is over. Called again, it does nothing. */
  release(): void;
}

export class BodyRoom {
  readonly #maxBytes: number;
  #bytes = 0;
  readonly #byAccount = new Map<number, number>();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Nothing of it is counted yet. */
  hold(accountId: number): HeldBody {
    let held = 0;
    let isOver = false;
    return {
      add: (bytes) => {
        if (isOver) throw new AppError('bad_http', 'The client went away before its body was read');
        this.#take(accountId, bytes);
        held += bytes;
      },
      release: () => {
        if (!isOver && held > 0) this.#take(accountId, -held);
        isOver = true;
      },
    };
  }

  #take(accountId: number, bytes: number): void {
    const own = this.#byAccount.get(accountId) ?? 0;
    if (bytes > 0 && !this.#hasRoom(own, bytes)) {
      throw new AppError('overloaded', 'Too many large requests are under way', {
        hint: 'Send fewer at the same time, or smaller ones',
        retryAfterSeconds: 1,
      });
    }
    this.#bytes += bytes;
    if (own + bytes === 0) this.#byAccount.delete(accountId);
    else this.#byAccount.set(accountId, own + bytes);
  }

  /** An account may hold no more than is left for the others then: whoever comes next finds room. */
  #hasRoom(own: number, bytes: number): boolean {
    const left = this.#maxBytes - this.#bytes - bytes;
    return left >= 0 && (own === 0 || own + bytes <= left);
  }
}
