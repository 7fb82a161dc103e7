/** SQL of the ledger. */
import type { RowIdOf, Statement } from '../metadata/metadata.ts';

/** A side of the ledger that is cached in a row of its account. */
export interface Balance {
  readonly kind: 'account' | 'held';
  readonly accountId: number | RowIdOf;
}

export const FIRST_PREV_HASH = '0'.repeat(64);

const HASHED_FIELDS = [
  ...['prev_hash', 'seq', 'id', 'debit', 'credit'],
  ...['amount_micro', 'code', 'reference', 'created_at'],
];

/**
 * What is hashed of a row: previous hash, number, id, debit, credit, amount, code, reference and time, each
 * as netstring, `<bytes in UTF-8>:<text>,`, which keeps two fields from running together; numbers in decimal.
 * concat() makes it in one go, which a chain of || does not.
 */
export const HASHED_TEXT = `concat(${HASHED_FIELDS.map((field) => `octet_length(${field}), ':', ${field}, ','`).join(', ')})`;

/**
 * Number and hashes are computed where there is one writer, so that no two commits see the same head.
 * An integer in place of a side is the id of an account, for one that this commit itself creates.
 */
const INSERT_TRANSFER = `
INSERT INTO ledger_transfers
  (seq, id, debit, credit, amount_micro, code, reference, created_at, prev_hash, hash)
SELECT seq, id, debit, credit, amount_micro, code, reference, created_at, prev_hash, sha256_hex(
  ${HASHED_TEXT})
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
