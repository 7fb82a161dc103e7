/** Running work in an account's server, by Cloudlet and its users. */
import { QueryFailed } from '../../../databases/engine.ts';
import type { Clock } from '../../../platform/clock.ts';
import { AppError, isAppError } from '../../../platform/errors.ts';
import { displaced } from '../../engine-children/displaced.ts';

export class ServerWork {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #pending = 0;
  /** Pending work that must not be ended for another account: dumps, changes. */
  #held = 0;
  /** Why the sessions were last ended. */
  #ended: AppError | null = null;
  /** Last use of the server, monotonic ms. */
  usedAt: number;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
    this.usedAt = clock.monotonic();
  }

  get pending(): number {
    return this.#pending;
  }

  /** Whether running work must be finished. */
  get isHeld(): boolean {
    return this.#held > 0;
  }

  /**
   * Counts the work as pending until it is done. `isStatement`: a user's statement, which may be
   * ended for another account. If sessions were ended in the meantime, it rejects with that reason.
   */
  async run<T>(work: () => Promise<T>, isStatement: boolean): Promise<T> {
    const held = isStatement ? 0 : 1;
    const before = this.#ended;
    this.#pending++;
    this.#held += held;
    try {
      return await work();
    } catch (error) {
      const isEnded = this.#ended !== before && !(error instanceof QueryFailed);
      throw isEnded ? this.#ended : error;
    } finally {
      this.#pending--;
      this.#held -= held;
      this.usedAt = this.#clock.monotonic();
    }
  }

  /** All statements are about to be ended; the oldest began at `since`. Returns the words for their owner. */
  displace(since: number | null, why: string): string {
    const now = this.#clock.monotonic();
    const seconds = Math.round((now - (since ?? now)) / 1000);
    const words = `Statements were ended, the longest after ${seconds} s: ${why}`;
    this.end(displaced(new Error(words)));
    return words;
  }

  /** Sessions are about to be ended, for that reason. */
  end(why: AppError): void {
    this.#ended = why;
  }
}

export function startFailed(): AppError {
  return new AppError('engine_unavailable', 'The database server failed to start', {
    hint: 'Cloudlet retries within a minute; the reason is in the log of the server',
    retryAfterSeconds: 5,
  });
}

/** The API's error for a server that failed during our own work, instead of the engine's message. */
export function asUnavailable(title: string) {
  return (error: unknown): never => {
    if (isAppError(error)) throw error;
    throw new AppError(
      'engine_unavailable',
      `${title} ended or refused the connection before the work was done`,
      {
        hint: 'try again in a moment; the operator finds the reason in the log of the server',
        retryAfterSeconds: 5,
        cause: error,
      },
    );
  };
}
