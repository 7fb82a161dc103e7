/** SQL of operations. */
import type { Awaitable, Reads, ResourceChange, Statement } from '../metadata/metadata.ts';
import { ROW_BYTES, TRIMMED_AT_ONCE } from './kept-answers.ts';

export interface OperationRow {
  readonly operation_id: string;
  readonly account_id: number;
  readonly credential_id: string;
  readonly name: string;
  readonly created_at: number;
  readonly ended_at: number | null;
  readonly status: number | null;
  readonly sealed_body: Uint8Array | null;
}

/** An operation without its outcome, for lists. */
export type OperationHead = Omit<OperationRow, 'sealed_body'>;

export type NewOperation = Omit<OperationRow, 'ended_at' | 'status' | 'sealed_body'>;

export interface OperationEnd {
  readonly accountId: number;
  readonly endedAt: number;
  readonly status: number;
  readonly sealedBody: Uint8Array;
}

/** An ended operation that was stored before its size was counted. */
export interface UncountedOperation {
  readonly operation_id: string;
  readonly account_id: number;
  readonly status: number;
  /** Length of `sealed_body`. */
  readonly bytes: number;
}

export class OperationsStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  find(operationId: string): Awaitable<OperationRow | undefined> {
    return this.#reads.get('SELECT * FROM operations WHERE operation_id = ?', operationId);
  }

  /** Operations with an id below `before`, newest first; `credentialId`: of this caller alone. */
  listBefore(
    accountId: number,
    { before, limit, credentialId }: { before: string; limit: number; credentialId: string | undefined },
  ): Awaitable<OperationHead[]> {
    const own = credentialId === undefined ? [] : [credentialId];
    return this.#reads.all(
      `SELECT operation_id, account_id, credential_id, name, created_at, ended_at, status FROM operations
       WHERE account_id = ? AND operation_id < ? ${own.length > 0 ? 'AND credential_id = ?' : ''}
       ORDER BY operation_id DESC LIMIT ?`,
      accountId,
      before,
      ...own,
      limit,
    );
  }

  insert(row: NewOperation): Statement {
    return {
      sql: 'INSERT INTO operations (operation_id, account_id, credential_id, name, created_at) VALUES (?, ?, ?, ?, ?)',
      params: [row.operation_id, row.account_id, row.credential_id, row.name, row.created_at],
      tells: tellsOf(row.operation_id, row.account_id),
    };
  }

  /** Stores an outcome, unless one is stored already. */
  end(operationId: string, { accountId, endedAt, status, sealedBody }: OperationEnd): Statement {
    return {
      sql: `UPDATE operations SET ended_at = ?, status = ?, sealed_body = ?, kept_bytes = ?
            WHERE operation_id = ? AND ended_at IS NULL`,
      params: [endedAt, status, sealedBody, sealedBody.length + ROW_BYTES, operationId],
      tells: tellsOf(operationId, accountId),
    };
  }

  /**
   * Deletes all but the `kept` newest ended operations of an account; a few more stay if their times are
   * equal.
   */
  deleteBeyond(accountId: number, kept: number): Statement {
    return {
      sql: `DELETE FROM operations WHERE account_id = ? AND ended_at IS NOT NULL AND created_at <
              (SELECT created_at FROM operations WHERE account_id = ?
               ORDER BY created_at DESC LIMIT 1 OFFSET ?)`,
      params: [accountId, accountId, kept - 1],
    };
  }

  /**
   * Deletes the oldest ended operations of an account beyond `maxBytes`, so many at once; a few more stay if
   * their times are equal.
   */
  deleteBeyondBytes(accountId: number, maxBytes: number): Statement {
    return {
      sql: `DELETE FROM operations WHERE operation_id IN
              (SELECT operation_id FROM operations
               WHERE account_id = ? AND ended_at IS NOT NULL AND created_at <
                 (SELECT max(created_at) FROM
                    (SELECT created_at, sum(kept_bytes) OVER (ORDER BY created_at DESC) AS kept
                     FROM operations WHERE account_id = ?) AS newest
                  WHERE kept > ?)
               ORDER BY created_at LIMIT ?)`,
      params: [accountId, accountId, maxBytes, TRIMMED_AT_ONCE],
    };
  }

  /** The oldest ended operations whose size was never counted. */
  uncounted(limit: number): Awaitable<UncountedOperation[]> {
    return this.#reads.all(
      `SELECT operation_id, account_id, status, length(sealed_body) AS bytes FROM operations
       WHERE kept_bytes IS NULL AND ended_at IS NOT NULL ORDER BY created_at LIMIT ?`,
      limit,
    );
  }

  /** Counts an operation; `sealedBody` takes the place of its own. */
  count({ operation_id: id, bytes }: UncountedOperation, sealedBody?: Uint8Array): Statement {
    return {
      sql: `UPDATE operations SET kept_bytes = ?, sealed_body = coalesce(?, sealed_body)
            WHERE operation_id = ? AND kept_bytes IS NULL`,
      params: [(sealedBody?.length ?? bytes) + ROW_BYTES, sealedBody ?? null, id],
    };
  }

  /** Deletes old operations but those that run. */
  deleteOlderThan(notAfter: number, running: readonly string[]): Statement {
    const but = running.length > 0 ? `AND operation_id NOT IN (${running.map(() => '?').join(', ')})` : '';
    return { sql: `DELETE FROM operations WHERE created_at <= ? ${but}`, params: [notAfter, ...running] };
  }
}

function tellsOf(id: string, accountId: number): ResourceChange {
  return { accountId, kind: 'operation', id };
}
