/**
 * Accounts that use much processor time: their next processes start with low priority, since a start takes a
 * tenth of a second or more of processor time, and all of them leave one processor free.
 */
import type { Clock } from '../../platform/clock.ts';

/** How long a long-running statement is remembered. */
const LONG_MS = 5000;
/** Maximum starts within that time before an account counts as heavy. */
const USUAL_STARTS = 4;
const STARTS_MS = 5000;

interface Account {
  /** End of the account's last long-running statement; monotonic time. */
  longAt: number;
  starts: number[];
}

export class HeavyAccounts {
  readonly #clock: Clock;
  readonly #accounts = new Map<number, Account>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A statement of the account computes for long. */
  noteLong(accountId: number): void {
    this.#of(accountId).longAt = this.#clock.monotonic();
  }

  /** Whether a statement of the account computed for long a moment ago. */
  computes(accountId: number): boolean {
    return (
      (this.#accounts.get(accountId)?.longAt ?? Number.NEGATIVE_INFINITY) > this.#clock.monotonic() - LONG_MS
    );
  }

  /** Records a start, and returns whether it gets low priority. */
  startsLast(accountId: number): boolean {
    const now = this.#clock.monotonic();
    this.#forget(now);
    const account = this.#of(accountId);
    account.starts.push(now);
    return this.computes(accountId) || account.starts.length > USUAL_STARTS;
  }

  #of(accountId: number): Account {
    const account = this.#accounts.get(accountId) ?? { longAt: Number.NEGATIVE_INFINITY, starts: [] };
    this.#accounts.set(accountId, account);
    return account;
  }

  #forget(now: number): void {
    for (const [id, account] of this.#accounts) {
      account.starts = account.starts.filter((at) => at > now - STARTS_MS);
      if (account.starts.length === 0 && account.longAt <= now - LONG_MS) this.#accounts.delete(id);
    }
  }
}
