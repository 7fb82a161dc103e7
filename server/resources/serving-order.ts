/**
 * The order of attempts. Accounts served least recently go first, and within an account its
 * receiver served least recently. Slow receivers occupy slots for long, so slow accounts share half
 * of the slots: addresses that never respond, of however many accounts, cost others little.
 */
import type { Clock } from '../platform/clock.ts';

/** The next delivery of a receiver. */
export interface DueRow {
  /** A webhook, or the account that gets the mail. */
  readonly receiver: number;
  readonly account_id: number;
  readonly next_at: number;
}

/** Maximum concurrent attempts: in total, per account, and of slow accounts. */
const MAX_BUSY = 16;
const MAX_BUSY_OF_ACCOUNT = 4;
const MAX_BUSY_SLOW = 8;
/** A longer attempt marks its account as slow for this long. */
const SLOW_MS = 2000;
const SLOW_FOR_MS = 600_000;
/** Maximum remembered turns, except those of waiting receivers. */
const MAX_TURNS = 10_000;

interface Attempt {
  readonly accountId: number;
  /** Monotonic. */
  readonly beganAt: number;
}

export class ServingOrder {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #running = new Set<Attempt>();
  /** Account → number of its latest attempt; likewise for receivers. */
  readonly #accounts = new Map<number, number>();
  readonly #receivers = new Map<number, number>();
  /** Account → until when it counts as slow, monotonic. */
  readonly #slow = new Map<number, number>();
  #attempts = 0;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Yields deliveries of `due` that may begin now; the caller calls begin() for each. */
  *next(waiting: readonly DueRow[], due: readonly DueRow[]): Generator<DueRow> {
    this.#forget(waiting);
    const left = new Set(due);
    while (this.#running.size < MAX_BUSY) {
      let first: DueRow | undefined;
      for (const row of left) {
        if (first !== undefined && this.#compare(row, first) >= 0) continue;
        if (this.#hasPlace(row.account_id)) first = row;
      }
      if (first === undefined) return;
      left.delete(first);
      yield first;
    }
  }

  /** Call the result at the attempt's end. */
  begin({ receiver, account_id: accountId }: DueRow): () => void {
    const attempt = { accountId, beganAt: this.#clock.monotonic() };
    this.#attempts++;
    this.#accounts.set(accountId, this.#attempts);
    this.#receivers.set(receiver, this.#attempts);
    this.#running.add(attempt);
    return () => {
      this.#running.delete(attempt);
      if (this.#isLong(attempt)) this.#slow.set(accountId, this.#clock.monotonic() + SLOW_FOR_MS);
    };
  }

  #hasPlace(accountId: number): boolean {
    const running = [...this.#running];
    if (running.filter((one) => one.accountId === accountId).length >= MAX_BUSY_OF_ACCOUNT) return false;
    const slow = running.filter((one) => this.#isLong(one) || this.#isSlow(one.accountId));
    return slow.length < MAX_BUSY_SLOW || !this.#isSlow(accountId);
  }

  #isLong({ beganAt }: Attempt): boolean {
    return this.#clock.monotonic() - beganAt > SLOW_MS;
  }

  #isSlow(accountId: number): boolean {
    return (this.#slow.get(accountId) ?? 0) > this.#clock.monotonic();
  }

  #compare(a: DueRow, b: DueRow): number {
    const [ofA, ofB] = [this.#accounts.get(a.account_id) ?? 0, this.#accounts.get(b.account_id) ?? 0];
    if (ofA !== ofB) return ofA - ofB;
    const byReceiver = (this.#receivers.get(a.receiver) ?? 0) - (this.#receivers.get(b.receiver) ?? 0);
    return byReceiver || a.next_at - b.next_at;
  }

  #forget(waiting: readonly DueRow[]): void {
    const now = this.#clock.monotonic();
    for (const [accountId, until] of this.#slow) if (until <= now) this.#slow.delete(accountId);
    keepOnly(this.#receivers, waiting, ({ receiver }) => receiver);
    keepOnly(this.#accounts, waiting, ({ account_id }) => account_id);
  }
}

function keepOnly(turns: Map<number, number>, rows: readonly DueRow[], idOf: (row: DueRow) => number): void {
  if (turns.size <= MAX_TURNS) return;
  const kept = new Set(rows.map(idOf));
  for (const id of turns.keys()) if (!kept.has(id)) turns.delete(id);
}
