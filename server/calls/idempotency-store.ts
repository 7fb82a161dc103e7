/** SQL of idempotency. */
import type { Awaitable, Reads, Statement } from '../metadata/metadata.ts';

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
      sql: `INSERT INTO idempotency (scope, key, status, sealed_body, created_at, account_id)
            VALUES (?, ?, ?, ?, ?, ?)`,
      params: [row.scope, row.key, row.status, row.sealedBody, row.createdAt, row.accountId],
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

  deleteOlderThan(notAfter: number): Statement {
    return { sql: 'DELETE FROM idempotency WHERE created_at <= ?', params: [notAfter] };
  }
}
