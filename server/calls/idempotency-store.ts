/** SQL of idempotency. */
import type { Awaitable, Reads, Statement } from '../metadata/metadata.ts';
import { ROW_BYTES, TRIMMED_AT_ONCE } from './kept-answers.ts';

export interface IdempotencyRow {
  readonly status: number;
  /** Fingerprint of the request, a newline, the body of its response. */
  readonly sealed_body: Uint8Array;
}

export interface NewIdempotencyRow {
  /** 0: no account, or the operator. */
  readonly accountId: number;
  readonly scope: string;
  readonly key: string;
  readonly status: number;
  readonly sealedBody: Uint8Array;
  readonly createdAt: number;
}

/** A row that was stored before its size was counted. */
export interface UncountedIdempotencyRow {
  readonly scope: string;
  readonly key: string;
  readonly account_id: number;
  /** Length of `sealed_body`. */
  readonly bytes: number;
}

type Name = Pick<NewIdempotencyRow, 'scope' | 'key'>;

/** Bytes that a row counts as. */
export function rowBytes({ scope, key }: Name, bodyBytes: number): number {
  return Buffer.byteLength(scope) + Buffer.byteLength(key) + bodyBytes + ROW_BYTES;
}

export class IdempotencyStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  find(name: { scope: string; key: string }, notBefore: number): Awaitable<IdempotencyRow | undefined> {
    return this.#reads.get(
      'SELECT status, sealed_body FROM idempotency WHERE scope = ? AND key = ? AND created_at > ?',
      name.scope,
      name.key,
      notBefore,
    );
  }

  insert(row: NewIdempotencyRow): Statement {
    return {
      sql: `INSERT INTO idempotency (scope, key, status, sealed_body, created_at, account_id, kept_bytes)
            VALUES (?, ?, ?, ?, ?, ?, ?)`,
      params: [
        ...[row.scope, row.key, row.status, row.sealedBody, row.createdAt, row.accountId],
        rowBytes(row, row.sealedBody.length),
      ],
    };
  }

  /** The oldest rows whose size was never counted. */
  uncounted(limit: number): Awaitable<UncountedIdempotencyRow[]> {
    return this.#reads.all(
      `SELECT scope, key, account_id, length(sealed_body) AS bytes FROM idempotency
       WHERE kept_bytes IS NULL ORDER BY created_at LIMIT ?`,
      limit,
    );
  }

  /** Counts a row; `sealedBody` replaces its body. */
  count({ scope, key, bytes }: UncountedIdempotencyRow, sealedBody?: Uint8Array): Statement {
    const counted = rowBytes({ scope, key }, sealedBody?.length ?? bytes);
    return {
      sql: `UPDATE idempotency SET kept_bytes = ?, sealed_body = coalesce(?, sealed_body)
            WHERE scope = ? AND key = ? AND kept_bytes IS NULL`,
      params: [counted, sealedBody ?? null, scope, key],
    };
  }

  deleteExpired(name: { scope: string; key: string }, notAfter: number): Statement {
    return {
      sql: 'DELETE FROM idempotency WHERE scope = ? AND key = ? AND created_at <= ?',
      params: [name.scope, name.key, notAfter],
    };
  }

  delete(name: { scope: string; key: string }): Statement {
    return { sql: 'DELETE FROM idempotency WHERE scope = ? AND key = ?', params: [name.scope, name.key] };
  }

  /** Deletes all but the `kept` newest of an account; a few more stay if their times are equal. */
  deleteBeyond(accountId: number, kept: number): Statement {
    return {
      sql: `DELETE FROM idempotency WHERE account_id = ? AND created_at <
              (SELECT created_at FROM idempotency WHERE account_id = ?
               ORDER BY created_at DESC LIMIT 1 OFFSET ?)`,
      params: [accountId, accountId, kept - 1],
    };
  }

  /**
   * Deletes the oldest rows of an account beyond `maxBytes`, this many at once; a few more stay if
   * their times are equal.
   */
  deleteBeyondBytes(accountId: number, maxBytes: number): Statement {
    return {
      sql: `DELETE FROM idempotency WHERE (scope, key) IN
              (SELECT scope, key FROM idempotency WHERE account_id = ? AND created_at <
                 (SELECT max(created_at) FROM
                    (SELECT created_at, sum(kept_bytes) OVER (ORDER BY created_at DESC) AS kept
                     FROM idempotency WHERE account_id = ?) AS newest
                  WHERE kept > ?)
               ORDER BY created_at LIMIT ?)`,
      params: [accountId, accountId, maxBytes, TRIMMED_AT_ONCE],
    };
  }

  deleteOlderThan(notAfter: number): Statement {
    return { sql: 'DELETE FROM idempotency WHERE created_at <= ?', params: [notAfter] };
  }
}
