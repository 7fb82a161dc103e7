/** The ledger entries of one account: the change of its balance by each, and the balance after it. */
import { formatTime } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import type { EntryRow, LedgerStore } from '../ledger/ledger-store.ts';
import { creditsOf, type Figure, formatMonth, type Period } from './report-period.ts';

export interface Entry {
  readonly id: string;
  readonly code: string;
  /** The purpose. */
  readonly reference: string;
  /** The other side of the transfer. */
  readonly counterpart: string;
  /** Change of the balance, available and held. */
  readonly amount: Figure;
  /** Change of the held balance. */
  readonly held: Figure;
  readonly balance: Figure;
  readonly created_at: string;
  readonly hash: string;
}

export interface Statement {
  readonly account_id: number;
  readonly month: string;
  readonly opening_balance: Figure;
  /** Oldest first. */
  readonly entries: Entry[];
  readonly closing_balance: Figure;
}

const PAGE_ENTRIES = 500;
/** Greater than every transfer number. */
const END = 2n ** 62n;

export class LedgerReports {
  readonly #store: LedgerStore;

  constructor(deps: { readonly store: LedgerStore }) {
    this.#store = deps.store;
  }

  /**
   * Newest first, before transfer `before` (0: all); each with its number for a cursor. A limit bounds how
   * many are read.
   */
  async *list(
    accountId: number,
    page: { readonly before: number; readonly limit: number },
  ): AsyncGenerator<{ readonly seq: bigint; readonly entry: Entry }> {
    let before = page.before === 0 ? END : BigInt(page.before);
    let balance: bigint | undefined;
    for (let left = page.limit; left > 0; ) {
      const size = Math.min(left, PAGE_ENTRIES);
      const rows = await this.#store.entriesBefore(accountId, before, size);
      for (const row of rows) {
        const seq = BigInt(row.seq);
        balance ??= await this.#store.balanceAfter(accountId, seq);
        yield { seq, entry: describeEntry(accountId, row, balance) };
        balance -= changeOf(accountId, row).amount;
        before = seq;
      }
      if (rows.length < size) return;
      left -= size;
    }
  }

  /** The statement of a calendar month (UTC), by the times of the transfers. Throws `account_not_found`. */
  async statement(accountId: number, month: Period): Promise<Statement> {
    const totals = await this.#store.totalsOf(accountId);
    if (totals === undefined) throw new AppError('account_not_found', 'There is no such account');
    let opening = 0n;
    const found: EntryRow[] = [];
    // All entries: after a change of the wall clock a transfer may be older than its predecessors.
    for (let before = END; ; ) {
      const rows = await this.#store.entriesBefore(accountId, before, PAGE_ENTRIES);
      for (const row of rows) {
        if (row.created_at < month.from) opening += changeOf(accountId, row).amount;
        else if (row.created_at < month.to) found.push(row);
        before = BigInt(row.seq);
      }
      if (rows.length < PAGE_ENTRIES) break;
      await new Promise((resolve) => setImmediate(resolve));
    }
    let balance = opening;
    const entries = found.reverse().map((row) => {
      balance += changeOf(accountId, row).amount;
      return describeEntry(accountId, row, balance);
    });
    return {
      account_id: accountId,
      month: formatMonth(month.from),
      opening_balance: creditsOf(opening),
      entries,
      closing_balance: creditsOf(balance),
    };
  }
}

/** The change of an account by a transfer, micro-credits. */
function changeOf(accountId: number, row: EntryRow): { amount: bigint; held: bigint } {
  const micro = BigInt(row.amount_micro);
  const of = (side: string) => (row.credit === side ? micro : 0n) - (row.debit === side ? micro : 0n);
  const held = of(`held:${accountId}`);
  return { amount: of(`account:${accountId}`) + held, held };
}

function describeEntry(accountId: number, row: EntryRow, balance: bigint): Entry {
  const { amount, held } = changeOf(accountId, row);
  const isOurs = (side: string) => side === `account:${accountId}` || side === `held:${accountId}`;
  return {
    id: row.id,
    code: row.code,
    reference: row.reference,
    counterpart: isOurs(row.debit) ? row.credit : row.debit,
    amount: creditsOf(amount),
    held: creditsOf(held),
    balance: creditsOf(balance),
    created_at: formatTime(row.created_at),
    hash: row.hash,
  };
}
