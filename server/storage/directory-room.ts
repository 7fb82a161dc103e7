/** Limits the memory for directories of zips that are being sent, of one account and of all together. */
import { AppError } from '../platform/errors.ts';

const SHARES = 4;

export interface Held {
  /** Raises the reservation to `bytes`, if it is smaller. Throws `overloaded`. */
  atLeast(bytes: number): void;
  release(): void;
}

export class DirectoryRoom {
  readonly #shareBytes: number;
  readonly #ofAccounts = new Map<number, number>();
  #total = 0;

  constructor(shareBytes: number) {
    this.#shareBytes = shareBytes;
  }

  hold(accountId: number): Held {
    let held = 0;
    return {
      atLeast: (bytes) => {
        if (bytes <= held) return;
        this.#add(accountId, bytes - held);
        held = bytes;
      },
      release: () => {
        this.#add(accountId, -held);
        held = 0;
      },
    };
  }

  #add(accountId: number, bytes: number): void {
    const own = (this.#ofAccounts.get(accountId) ?? 0) + bytes;
    const total = this.#total + bytes;
    if (bytes > 0 && (own > this.#shareBytes || total > this.#shareBytes * SHARES)) {
      throw new AppError('overloaded', 'Too many large folders are being downloaded at once', {
        hint: 'Wait until another download has ended',
        retryAfterSeconds: 10,
      });
    }
    this.#total = total;
    if (own === 0) this.#ofAccounts.delete(accountId);
    else this.#ofAccounts.set(accountId, own);
  }
}
