/** SQL of idempotency. */
import type { Awaitable, Reads, Statement } from '../metadata/metadata.ts';

export interface IdempotencyRow {
  readonly status: number;
  /** Fingerprint of the request, a line end, the body of its answer. */
  readonly sealed_body: Uint8Array;
}

export interface NewIdempotencyRow {
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
      sql: 'INSERT INTO idempotency (scope, key, status, sealed_body, created_at) VALUES (?, ?, ?, ?, ?)',
      params: [row.scope, row.key, row.status, row.sealedBody, row.createdAt],
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

  deleteOlderThan(notAfter: number): Statement {
    return { sql: 'DELETE FROM idempotency WHERE created_at <= ?', params: [notAfter] };
  }
}
