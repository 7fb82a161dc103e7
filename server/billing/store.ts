/** SQL of the ledger. */
import type { Metadata, RowIdOf, Statement } from '../metadata/metadata.ts';

/** One row of the chain, integers as bigint. */
export interface TransferRow {
  readonly seq: bigint;
  readonly id: string;
  readonly debit: string;
  readonly credit: string;
  readonly amountMicro: bigint;
  readonly code: string;
  readonly reference: string;
  readonly createdAt: bigint;
  readonly prevHash: string;
  readonly hash: string;
}

/** An account whose cached balance was read together with the sum of its transfers, in one snapshot. */
export interface BalanceRow {
  readonly accountId: number;
  readonly cachedMicro: bigint;
  readonly summedMicro: bigint;
  readonly cachedHeld: bigint;
  readonly summedHeld: bigint;
}

/** A side of the ledger that is cached in a row of its account. */
export interface Balance {
  readonly kind: 'account' | 'held';
  readonly accountId: number | RowIdOf;
}

export const FIRST_PREV_HASH = '0'.repeat(64);

/**
 * A field of the text that is hashed, as netstring: its length in bytes keeps two fields from running
 * together.
 */
const netstring = (field: string) => `octet_length(${field}) || ':' || ${field} || ','`;

const HASHED_FIELDS = [
  'prev_hash',
  "(seq || '')",
  'id',
  'debit',
  'credit',
  "(amount_micro || '')",
  'code',
  'reference',
  "(created_at || '')",
];

/**
 * Number and hashes are computed where there is one writer, so that no two commits see the same head.
 * An integer in place of a side is the id of an account, for one that this commit itself creates.
 * The hashed text is that of canonicalText() in ledger.ts.
 */
const INSERT_TRANSFER = `
INSERT INTO ledger_transfers
  (seq, id, debit, credit, amount_micro, code, reference, created_at, prev_hash, hash)
SELECT seq, id, debit, credit, amount_micro, code, reference, created_at, prev_hash, sha256_hex(
  ${HASHED_FIELDS.map(netstring).join(' || ')})
FROM (
  SELECT
    coalesce((SELECT max(seq) FROM ledger_transfers), 0) + 1 AS seq,
    coalesce((SELECT hash FROM ledger_transfers ORDER BY seq DESC LIMIT 1), '${FIRST_PREV_HASH}')
      AS prev_hash,
    id,
    CASE typeof(debit) WHEN 'integer' THEN 'account:' || debit ELSE debit END AS debit,
    CASE typeof(credit) WHEN 'integer' THEN 'account:' || credit ELSE credit END AS credit,
    amount_micro, code, reference, created_at
  FROM (SELECT ? AS id, ? AS debit, ? AS credit, ? AS amount_micro, ? AS code, ? AS reference,
    ? AS created_at)
)`;

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
  const params = [id, debit, credit, amountMicro, code, reference, createdAt];
  return { sql: INSERT_TRANSFER, params, expectChanges: 1 };
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
  return { sql: ADD[kind], params: [amountMicro, accountId], expectChanges: 1 };
}

/** Takes from a cached balance. Changes no row when it holds less, or does not exist. */
export function takeFromBalance({ kind, accountId }: Balance, amountMicro: bigint): Statement {
  return { sql: TAKE[kind], params: [amountMicro, accountId, amountMicro], expectChanges: 1 };
}

type Raw = Record<string, string | number | bigint>;

export class LedgerStore {
  readonly #metadata: Metadata;

  constructor(deps: { readonly metadata: Metadata }) {
    this.#metadata = deps.metadata;
  }

  /** Up to `limit` transfers after number `after`, in order. */
  async transfersAfter(after: bigint, limit: number): Promise<TransferRow[]> {
    const rows = await this.#metadata.all<Raw>(
      `SELECT seq, id, debit, credit, amount_micro, code, reference, created_at, prev_hash, hash
       FROM ledger_transfers WHERE seq > ? ORDER BY seq LIMIT ?`,
      after,
      limit,
    );
    return rows.map((row) => ({
      seq: BigInt(row.seq ?? 0),
      id: String(row.id),
      debit: String(row.debit),
      credit: String(row.credit),
      amountMicro: BigInt(row.amount_micro ?? 0),
      code: String(row.code),
      reference: String(row.reference),
      createdAt: BigInt(row.created_at ?? 0),
      prevHash: String(row.prev_hash),
      hash: String(row.hash),
    }));
  }

  /** Up to `limit` accounts after id `after`, in order, each with its cached and its summed balances. */
  async balancesAfter(after: number, limit: number): Promise<BalanceRow[]> {
    const summed = (kind: string) => `coalesce((SELECT sum(amount_micro) FROM ledger_transfers
        WHERE credit = '${kind}:' || accounts.id), 0)
      - coalesce((SELECT sum(amount_micro) FROM ledger_transfers
        WHERE debit = '${kind}:' || accounts.id), 0)`;
    const rows = await this.#metadata.all<Raw>(
      `SELECT id, credits_micro AS cached, ${summed('account')} AS summed,
         coalesce(held_micro, 0) AS cached_held, ${summed('held')} AS summed_held
       FROM accounts LEFT JOIN billing_accounts ON account_id = id WHERE id > ? ORDER BY id LIMIT ?`,
      after,
      limit,
    );
    return rows.map((row) => ({
      accountId: Number(row.id),
      cachedMicro: BigInt(row.cached ?? 0),
      summedMicro: BigInt(row.summed ?? 0),
      cachedHeld: BigInt(row.cached_held ?? 0),
      summedHeld: BigInt(row.summed_held ?? 0),
    }));
  }

  /**
   * Sum of all cached balances less what all transfers moved into them: 0, in one snapshot.
   * `movedMicro` is what those up to number `upTo` moved, so that only later ones are summed here.
   */
  async imbalance(upTo: bigint, movedMicro: bigint): Promise<bigint> {
    const row = await this.#metadata.get<Raw>(
      `SELECT coalesce((SELECT sum(credits_micro) FROM accounts), 0)
         + coalesce((SELECT sum(held_micro) FROM billing_accounts), 0) - coalesce((
         SELECT sum(amount_micro * ((debit LIKE 'system:%') - (credit LIKE 'system:%')))
         FROM ledger_transfers WHERE seq > ?), 0) AS cached`,
      upTo,
    );
    return BigInt(row?.cached ?? 0) - movedMicro;
  }
}
