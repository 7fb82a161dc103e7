/** Limits the responses of an account that wait in memory until they are read. */
import type { ServerResponse } from 'node:http';
import { AppError } from '../platform/errors.ts';

/** Smaller responses are not counted: the requests for them take as much. */
const COUNTED_BYTES = 64 * 1024;

export class UnreadResponses {
  readonly #maxBytes: number;
  readonly #waiting = new Map<number, number>();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Counts a response until it was read or its connection is gone. Throws `overloaded`. */
  add(accountId: number, bytes: number, response: ServerResponse): void {
    if (bytes < COUNTED_BYTES || response.destroyed) return;
    const waiting = this.#waiting.get(accountId) ?? 0;
    if (waiting > 0 && waiting + bytes > this.#maxBytes) {
      throw new AppError('overloaded', 'Too many large responses wait for you to read them', {
        hint: 'Read what earlier calls returned, or close their connections',
        retryAfterSeconds: 1,
      });
    }
    this.#waiting.set(accountId, waiting + bytes);
    response.once('close', () => {
      const rest = (this.#waiting.get(accountId) ?? 0) - bytes;
      if (rest > 0) this.#waiting.set(accountId, rest);
      else this.#waiting.delete(accountId);
    });
  }
}
