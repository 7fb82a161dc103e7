/**
 * Schedules restores from recovery points: one restore of an account at a time, four of all
 * accounts. Others wait in line, for a minute at most, and then fail with the reason. A restore in
 * portions waits in line for each, so that a long one does not block the others until it ends.
 */
import { Semaphore } from '../platform/concurrency.ts';
import { AppError } from '../platform/errors.ts';
import { plural } from '../platform/plural.ts';

/** Each reads as fast as the target allows. */
const AT_ONCE = 4;
/** Accounts that restore or wait. */
const MAX_ACCOUNTS = 32;
const WAIT_SECONDS = 60;

/** Runs a portion in turn. Only the first one may be refused, with `overloaded`. */
export type Turn = <T>(portion: () => Promise<T>) => Promise<T>;

const NEVER = new AbortController().signal;

export interface RestoreTurnsOptions {
  /** Plural name of the restored resources. */
  readonly what: string;
  readonly waitSeconds?: number;
}

export class RestoreTurns {
  readonly #options: RestoreTurnsOptions;
  readonly #accounts = new Set<number>();
  readonly #slots = new Semaphore(AT_ONCE);

  constructor(options: RestoreTurnsOptions) {
    this.#options = options;
  }

  /** Another restore waits for its turn. */
  get isWanted(): boolean {
    return this.#slots.waiting > 0;
  }

  /** A restore in one portion. Throws the errors of inPortions(). */
  run<T>(accountId: number, work: () => Promise<T>): Promise<T> {
    return this.inPortions(accountId, NEVER, (turn) => turn(work));
  }

  /**
   * Throws `overloaded` while the account has a restore, while too many wait, and after a minute in
   * line; and the signal's reason if it aborts the wait for a turn.
   */
  async inPortions<T>(accountId: number, signal: AbortSignal, work: (turn: Turn) => Promise<T>): Promise<T> {
    const { what } = this.#options;
    if (this.#accounts.has(accountId)) {
      throw busy(
        `Your account is already restoring ${what} from a recovery point`,
        'Try again when that restore has ended',
      );
    }
    if (this.#accounts.size >= MAX_ACCOUNTS) {
      throw busy(`${MAX_ACCOUNTS} accounts are restoring ${what}, or waiting to`, 'Try again in a minute');
    }
    this.#accounts.add(accountId);
    try {
      let isFirst = true;
      return await work((portion) => {
        const patience = isFirst ? AbortSignal.any([signal, this.#patience()]) : signal;
        isFirst = false;
        return this.#slots.run(patience, portion);
      });
    } finally {
      this.#accounts.delete(accountId);
    }
  }

  #patience(): AbortSignal {
    const { what, waitSeconds = WAIT_SECONDS } = this.#options;
    const waiting = new AbortController();
    const tooLate = () => {
      const detail = `${plural(AT_ONCE, 'other account')} are restoring ${what}, and no slot became free in ${waitSeconds} s`;
      waiting.abort(busy(detail, 'Try again later; the restore has not begun'));
    };
    setTimeout(tooLate, waitSeconds * 1000).unref();
    return waiting.signal;
  }
}

function busy(detail: string, hint: string): AppError {
  return new AppError('overloaded', detail, { hint, retryAfterSeconds: 10 });
}
