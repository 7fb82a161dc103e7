/** SQL of the ledger: its transfers, their checks, and the queries of reports. */
import type { Awaitable, Reads, RowIdOf, Statement } from '../../metadata/metadata.ts';
import type { MeterName } from '../metering/meters.ts';
import type { Period } from '../reports/report-period.ts';

/** A side of the ledger whose balance is cached in the row of its account. */
export interface Balance {
  readonly kind: 'account' | 'held';
  readonly accountId: number | RowIdOf;
}

export const FIRST_PREV_HASH = '0'.repeat(64);

const HASHED_FIELDS = [
  ...['prev_hash', 'CAST(seq AS TEXT)', 'id', 'debit', 'credit'],
  ...['CAST(amount_micro AS TEXT)', 'code', 'reference', 'CAST(created_at AS TEXT)'],
];

/**
 * The hashed text of a row: previous hash, number, id, debit, credit, amount, code, reference and
 * time, each as netstring, `<bytes in UTF-8>:<text>,`, which separates the fields unambiguously;
 * numbers in decimal. concat() builds it in one step, which a chain of || does not.
 */
const HASHED_TEXT = `concat(${HASHED_FIELDS.map((field) => `octet_length(${field}), ':', ${field}, ','`).join(', ')})`;

const SIDE = { text: 'CAST(? AS TEXT)', account: "'account:' || CAST(? AS TEXT)" };

/**
 * Number and hashes are computed by the statement itself, from the last row that its commit sees.
 * With one writer, no two commits see the same row. With several, the transaction takes the
 * ledger's lock before its first transfer and keeps it to its end (decisions/0020); without the
 * lock, `seq` and `hash` are unique, and the later commit is refused.
 */
const insertInto = (debit: string, credit: string) => `
INSERT INTO ledger_transfers
  (seq, id, debit, credit, amount_micro, code, reference, created_at, prev_hash, hash)
SELECT seq, id, debit, credit, amount_micro, code, reference, created_at, prev_hash, sha256_hex(
  ${HASHED_TEXT})
FROM (
  SELECT
    coalesce((SELECT max(seq) FROM ledger_transfers), 0) + 1 AS seq,
    coalesce((SELECT hash FROM ledger_transfers ORDER BY seq DESC LIMIT 1), '${FIRST_PREV_HASH}')
      AS prev_hash,
    CAST(? AS TEXT) AS id, ${debit} AS debit, ${credit} AS credit, CAST(? AS BIGINT) AS amount_micro,
    CAST(? AS TEXT) AS code, CAST(? AS TEXT) AS reference, CAST(? AS BIGINT) AS created_at
) AS transfer`;
const INSERT_TRANSFER = insertInto(SIDE.text, SIDE.text);
/** For an account inserted earlier in the same commit. */
const INSERT_FROM_NEW = insertInto(SIDE.account, SIDE.text);
const INSERT_TO_NEW = insertInto(SIDE.text, SIDE.account);

export interface NewTransferRow {
  readonly id: string;
  readonly debit: string | RowIdOf;
  readonly credit: string | RowIdOf;
  readonly amountMicro: bigint;
  readonly code: string;
  readonly reference: string;
  readonly createdAt: number;
}

export function insertTransfer(row: NewTransferRow): Statement {
  const { id, debit, credit, amountMicro, code, reference, createdAt } = row;
  const fromNew = typeof debit === 'string' ? null : INSERT_FROM_NEW;
  const sql = fromNew ?? (typeof credit === 'string' ? INSERT_TRANSFER : INSERT_TO_NEW);
  return { sql, params: [id, debit, credit, amountMicro, code, reference, createdAt], expectChanges: 1 };
}

const ADD = {
  account: 'UPDATE accounts SET credits_micro = credits_micro + ? WHERE id = ?',
  held: 'UPDATE billing_accounts SET held_micro = held_micro + ? WHERE account_id = ?',
};
const TAKE = {
  account: 'UPDATE accounts SET credits_micro = credits_micro - ? WHERE id = ? AND credits_micro >= ?',
  held: `UPDATE billing_accounts SET held_micro = held_micro - ?
         WHERE account_id = ? AND held_micro >= ?`,
};

/** Adds to a cached balance. Changes no row when the account does not exist. */
export function addToBalance({ kind, accountId }: Balance, amountMicro: bigint): Statement {
  return { sql: ADD[kind], params: [amountMicro, accountId], expectChanges: 1, ...tells(accountId) };
}

/** Subtracts from a cached balance. Changes no row if the balance is too low or does not exist. */
export function takeFromBalance({ kind, accountId }: Balance, amountMicro: bigint): Statement {
  const params = [amountMicro, accountId, amountMicro];
  return { sql: TAKE[kind], params, expectChanges: 1, ...tells(accountId) };
}

/** An account created by this commit has no watchers yet. */
function tells(accountId: Balance['accountId']): Pick<Statement, 'tells'> {
  if (typeof accountId !== 'number') return {};
  return { tells: { accountId, kind: 'balance', id: String(accountId) } };
}

type Int = number | bigint;

export interface HashedRow {
  readonly seq: Int;
  readonly debit: string;
  readonly credit: string;
  readonly amount_micro: Int;
  readonly hash: string;
  /** The hashed text; begins with the hash of the previous row. */
  readonly text: string;
}

/** Read at one moment; `seq` is the number of the last transfer at that moment. */
export interface CachedRow {
  readonly account_id: number;
  readonly credits_micro: Int;
  readonly held_micro: Int;
  readonly seq: Int;
}

const LAST = 'SELECT coalesce(max(seq), 0) FROM ledger_transfers';

export interface UsedRow {
  /** Days since 1970. */
  readonly day: number;
  readonly meter: MeterName;
  readonly resource_id: string;
  readonly name: string;
  readonly price_nano: Int;
  /** The sum of the quantities is high × 2^32 + low: a month of much storage exceeds 64 bits. */
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
  /** Net of refunds. */
  readonly amount_micro: Int;
}

const ENTRY = 'seq, id, debit, credit, amount_micro, code, reference, created_at, hash';
const DAY_MS = 86_400_000;

export class LedgerStore {
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

  /** The number of the last transfer; 0 if there is none. */
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

  /** Total cost of all windows of an account. */
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

  /** An account whose held balance differs from the sum of its holds. */
  unequalHolds(): Awaitable<{ account_id: number; held_micro: Int; holds_micro: Int } | undefined> {
    return this.#reads.get(
      `SELECT account_id, held_micro, holds_micro FROM (
         SELECT account_id, held_micro, (SELECT coalesce(sum(amount_micro), 0) FROM holds
           WHERE holds.account_id = billing_accounts.account_id) AS holds_micro FROM billing_accounts) AS compared
       WHERE held_micro <> holds_micro LIMIT 1`,
    );
  }

  /** A machine that runs without metering, or is metered without running. */
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

  /** Accounts with a machine running since before `before` that was not rated since, ms since 1970. */
  async unratedSince(before: number): Promise<number[]> {
    const rows = await this.#reads.all<{ account_id: number }>(
      `SELECT DISTINCT vms.account_id FROM vms JOIN billing_accounts USING (account_id)
       WHERE started_at < ? AND settled_at < ?`,
      before,
      before,
    );
    return rows.map((row) => row.account_id);
  }

  /** Usage of an account by day, resource and price, oldest day first. */
  usedOf(accountId: number, { from, to }: Period): Awaitable<UsedRow[]> {
    return this.#reads.all(
      `SELECT window_start / ${DAY_MS} AS day, meter, resource_id, name, price_nano,
         sum(quantity >> 32) AS high, sum(quantity & 4294967295) AS low, sum(cost_micro) AS cost_micro
       FROM usage_windows WHERE account_id = ? AND window_start >= ? AND window_start < ?
       GROUP BY day, resource_id, meter, price_nano, name
       ORDER BY day, resource_id, meter, max(window_start)`,
      accountId,
      from,
      to,
    );
  }

  /**
   * Totals of all time, from the ledger. Grants are all credits except those from the account's own
   * holds and refunds of services, less deductions by an administrator.
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

  /** Available and held balance of an account after transfer `seq`, summed from its transfers. */
  async balanceAfter(accountId: number, seq: bigint): Promise<bigint> {
    const summed = (role: string) => `(SELECT coalesce(sum(amount_micro), 0) FROM ledger_transfers
      WHERE ${role} IN (?, ?) AND seq <= ?)`;
    const params = [`account:${accountId}`, `held:${accountId}`, seq];
    const row = await this.#reads.get<{ micro: Int }>(
      `SELECT ${summed('credit')} - ${summed('debit')} AS micro`,
      ...params,
      ...params,
    );
    return BigInt(row?.micro ?? 0);
  }

  /**
   * Up to `limit` transfers of an account before number `before`, newest first; including those between its
   * available and its held balance.
   */
  entriesBefore(accountId: number, before: bigint, limit: number): Awaitable<EntryRow[]> {
    const part = (role: string) => `SELECT * FROM (SELECT ${ENTRY} FROM ledger_transfers
      WHERE ${role} = ? AND seq < ? ORDER BY seq DESC LIMIT ?) AS part`;
    const account = `account:${accountId}`;
    const held = `held:${accountId}`;
    return this.#reads.all(
      `${['debit', 'debit', 'credit', 'credit'].map(part).join(' UNION ')} ORDER BY seq DESC LIMIT ?`,
      ...[account, before, limit, held, before, limit, account, before, limit, held, before, limit],
      limit,
    );
  }

  /** Charges, refunds and write-offs of services, by day. */
  revenueOf({ from, to }: Period): Awaitable<RevenueRow[]> {
    const part = (role: string, sign: string) => `SELECT created_at / ${DAY_MS} AS day, ${role} AS side,
        ${sign}sum(amount_micro) AS amount_micro FROM ledger_transfers
      WHERE created_at >= ? AND created_at < ? AND (${role} LIKE 'system:revenue-%'
        OR ${role} = 'system:write-offs') GROUP BY day, side`;
    return this.#reads.all(`${part('credit', '')} UNION ALL ${part('debit', '-')}`, from, to, from, to);
  }

  async hasPlan(name: string): Promise<boolean> {
    return (await this.#reads.get('SELECT 1 FROM plans WHERE name = ?', name)) !== undefined;
  }
}
