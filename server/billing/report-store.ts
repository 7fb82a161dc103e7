/** SQL of reports: what an account used, what the ledger booked for it, what the cloud took. */
import type { Awaitable, Reads } from '../metadata/metadata.ts';
import type { MeterName } from './meters.ts';
import type { Period } from './report-period.ts';

type Int = number | bigint;

export interface UsedRow {
  /** Days since 1970. */
  readonly day: number;
  readonly meter: MeterName;
  readonly resource_id: string;
  readonly name: string;
  readonly price_nano: Int;
  /** The sum of the quantities is high × 2^32 + low: a month of much storage is beyond 64 bits. */
  readonly high: Int;
  readonly low: Int;
  readonly cost_micro: Int;
}

/** All in micro-credits. */
export interface TotalsRow {
  readonly plan: string;
  readonly credits_micro: Int;
  readonly held_micro: Int;
  readonly granted_micro: Int;
  readonly written_off_micro: Int;
}

export interface EntryRow {
  readonly seq: Int;
  readonly id: string;
  readonly debit: string;
  readonly credit: string;
  readonly amount_micro: Int;
  readonly code: string;
  readonly reference: string;
  readonly created_at: number;
  readonly hash: string;
}

export interface RevenueRow {
  readonly day: number;
  /** A system side. */
  readonly side: string;
  /** Less what was given back. */
  readonly amount_micro: Int;
}

const ENTRY = 'seq, id, debit, credit, amount_micro, code, reference, created_at, hash';
const DAY_MS = 86_400_000;

export class ReportStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** What an account used, by day, resource and price, the oldest day first. */
  usedOf(accountId: number, { from, to }: Period): Awaitable<UsedRow[]> {
    return this.#reads.all(
      `SELECT window_start / ${DAY_MS} AS day, meter, resource_id, name, price_nano,
         sum(quantity >> 32) AS high, sum(quantity & 4294967295) AS low, sum(cost_micro) AS cost_micro
       FROM usage_windows WHERE account_id = ? AND window_start >= ? AND window_start < ?
       GROUP BY day, resource_id, meter, price_nano`,
      accountId,
      from,
      to,
    );
  }

  /**
   * Of all time, from the ledger. Grants are what came from anywhere but the account's own holds and what
   * services gave back, less what an administrator took away.
   */
  totalsOf(accountId: number): Awaitable<TotalsRow | undefined> {
    return this.#reads.get(
      `SELECT plan, credits_micro, held_micro,
         (SELECT coalesce(sum(amount_micro), 0) FROM ledger_transfers
          WHERE credit = 'account:' || billing_accounts.account_id AND debit NOT LIKE 'held:%'
            AND debit NOT LIKE 'system:revenue-%')
         - (SELECT coalesce(sum(amount_micro), 0) FROM ledger_transfers
            WHERE credit = 'system:grants' AND debit = 'account:' || billing_accounts.account_id)
           AS granted_micro,
         written_off_micro
       FROM billing_accounts JOIN accounts ON id = billing_accounts.account_id
       WHERE billing_accounts.account_id = ?`,
      accountId,
    );
  }

  /** What an account may spend and what it holds after transfer `seq`, by its transfers up to then. */
  async balanceAfter(accountId: number, seq: bigint): Promise<bigint> {
    const summed = (side: string, role: string) => `(SELECT coalesce(sum(amount_micro), 0)
      FROM ledger_transfers WHERE ${role} = '${side}:' || account_id AND seq <= up_to)`;
    const row = await this.#reads.get<{ micro: Int }>(
      `SELECT ${summed('account', 'credit')} - ${summed('account', 'debit')}
         + ${summed('held', 'credit')} - ${summed('held', 'debit')} AS micro
       FROM (SELECT ? AS account_id, ? AS up_to)`,
      accountId,
      seq,
    );
    return BigInt(row?.micro ?? 0);
  }

  /**
   * Up to `limit` transfers of an account before number `before`, the newest first; also those between what
   * it may spend and what it holds.
   */
  entriesBefore(accountId: number, before: bigint, limit: number): Awaitable<EntryRow[]> {
    const part = (role: string) => `SELECT * FROM (SELECT ${ENTRY} FROM ledger_transfers
      WHERE ${role} = ? AND seq < ? ORDER BY seq DESC LIMIT ?)`;
    const account = `account:${accountId}`;
    const held = `held:${accountId}`;
    return this.#reads.all(
      `${['debit', 'debit', 'credit', 'credit'].map(part).join(' UNION ')} ORDER BY seq DESC LIMIT ?`,
      ...[account, before, limit, held, before, limit, account, before, limit, held, before, limit],
      limit,
    );
  }

  /** What services took and gave back, and what was written off, by day. */
  revenueOf({ from, to }: Period): Awaitable<RevenueRow[]> {
    const part = (role: string, sign: string) => `SELECT created_at / ${DAY_MS} AS day, ${role} AS side,
        ${sign}sum(amount_micro) AS amount_micro FROM ledger_transfers
      WHERE created_at >= ? AND created_at < ? AND (${role} GLOB 'system:revenue-*'
        OR ${role} = 'system:write-offs') GROUP BY day, side`;
    return this.#reads.all(`${part('credit', '')} UNION ALL ${part('debit', '-')}`, from, to, from, to);
  }

  async hasPlan(name: string): Promise<boolean> {
    return (await this.#reads.get('SELECT 1 FROM plans WHERE name = ?', name)) !== undefined;
  }
}
