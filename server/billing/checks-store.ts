/** SQL of the checks: the chain as it is hashed, and what must agree with it. */
import type { Awaitable, Reads } from '../metadata/metadata.ts';
import { HASHED_TEXT } from './store.ts';

type Int = number | bigint;

export interface HashedRow {
  readonly seq: Int;
  readonly debit: string;
  readonly credit: string;
  readonly amount_micro: Int;
  readonly hash: string;
  /** What its hash must be of; begins with the hash of the row before it. */
  readonly text: string;
}

/** Read at one moment, at which `seq` was the last transfer's number. */
export interface CachedRow {
  readonly account_id: number;
  readonly credits_micro: Int;
  readonly held_micro: Int;
  readonly seq: Int;
}

const LAST = 'SELECT coalesce(max(seq), 0) FROM ledger_transfers';

export class CheckStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** Up to `limit` transfers from number `from` on, in order. */
  hashedFrom(from: number, limit: number): Awaitable<HashedRow[]> {
    return this.#reads.all(
      `SELECT seq, debit, credit, amount_micro, hash, ${HASHED_TEXT} AS text
       FROM ledger_transfers WHERE seq >= ? ORDER BY seq LIMIT ?`,
      from,
      limit,
    );
  }

  /** The number of the last transfer; 0 when there is none. */
  async lastSeq(): Promise<Int> {
    return (await this.#reads.get<{ seq: Int }>(`SELECT (${LAST}) AS seq`))?.seq ?? 0;
  }

  /** Up to `limit` accounts after id `after`, in order. */
  cachedAfter(after: number, limit: number): Awaitable<CachedRow[]> {
    return this.#reads.all(
      `SELECT id AS account_id, credits_micro, coalesce(held_micro, 0) AS held_micro,
         (${LAST}) AS seq
       FROM accounts LEFT JOIN billing_accounts ON billing_accounts.account_id = id
       WHERE id > ? ORDER BY id LIMIT ?`,
      after,
      limit,
    );
  }

  /** The sum of all cached balances. */
  async allCached(): Promise<{ readonly micro: bigint; readonly seq: Int }> {
    const row = await this.#reads.get<{ micro: Int; seq: Int }>(
      `SELECT (SELECT coalesce(sum(credits_micro), 0) FROM accounts)
         + (SELECT coalesce(sum(held_micro), 0) FROM billing_accounts) AS micro, (${LAST}) AS seq`,
    );
    return { micro: BigInt(row?.micro ?? 0), seq: row?.seq ?? 0 };
  }

  /** What all windows of an account cost. */
  async usedBy(accountId: number): Promise<{ readonly micro: bigint; readonly seq: Int }> {
    const row = await this.#reads.get<{ micro: Int; seq: Int }>(
      `SELECT coalesce(sum(cost_micro), 0) AS micro, (${LAST}) AS seq
       FROM usage_windows WHERE account_id = ?`,
      accountId,
    );
    return { micro: BigInt(row?.micro ?? 0), seq: row?.seq ?? 0 };
  }

  /** Ids of accounts after `after`, in order. */
  async accountsAfter(after: number, limit: number): Promise<number[]> {
    const rows = await this.#reads.all<{ id: number }>(
      'SELECT id FROM accounts WHERE id > ? ORDER BY id LIMIT ?',
      after,
      limit,
    );
    return rows.map(({ id }) => id);
  }

  /** An account that holds more or less than its holds say. */
  unequalHolds(): Awaitable<{ account_id: number; held_micro: Int; holds_micro: Int } | undefined> {
    return this.#reads.get(
      `SELECT account_id, held_micro, holds_micro FROM (
         SELECT account_id, held_micro, (SELECT coalesce(sum(amount_micro), 0) FROM holds
           WHERE holds.account_id = billing_accounts.account_id) AS holds_micro FROM billing_accounts)
       WHERE held_micro <> holds_micro LIMIT 1`,
    );
  }

  /** A machine that runs and is not metered, or is metered and does not run. */
  mismetered(): Awaitable<{ readonly vm_id: string; readonly runs: number } | undefined> {
    return this.#reads.get(
      `SELECT vm_id, 1 AS runs FROM vms WHERE started_at IS NOT NULL AND NOT EXISTS (
         SELECT 1 FROM usage_lines WHERE meter = 'vm.time' AND resource_id = vm_id AND level = 1)
       UNION ALL
       SELECT resource_id, 0 FROM usage_lines WHERE meter = 'vm.time' AND level <> 0 AND NOT EXISTS (
         SELECT 1 FROM vms WHERE vm_id = resource_id AND started_at IS NOT NULL)
       LIMIT 1`,
    );
  }

  /** Accounts with a machine that runs since before `before` and was not settled since, ms since 1970. */
  async unsettledSince(before: number): Promise<number[]> {
    const rows = await this.#reads.all<{ account_id: number }>(
      `SELECT DISTINCT vms.account_id FROM vms JOIN billing_accounts USING (account_id)
       WHERE started_at < ? AND settled_at < ?`,
      before,
      before,
    );
    return rows.map((row) => row.account_id);
  }
}
