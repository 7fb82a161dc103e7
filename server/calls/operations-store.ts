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
  /** The node that runs or ran it; '': a cloud of one process, or a node that was set up again since. */
  readonly node: string;
  readonly is_cancellable: number;
  /** JSON from another node; null: it reports none. */
  readonly progress: string | null;
}

/** An operation without its outcome, for lists. */
export type OperationHead = Omit<OperationRow, 'sealed_body' | 'is_cancellable' | 'progress'>;

export type NewOperation = Omit<OperationRow, 'ended_at' | 'status' | 'sealed_body' | 'progress'>;

export interface OperationEnd {
  readonly accountId: number;
  readonly endedAt: number;
  readonly status: number;
  readonly sealedBody: Uint8Array;
}

/** An ended operation stored before sizes were counted. */
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

  /** Operations with an id below `before`, newest first; `credentialId`: only of this caller. */
  listBefore(
    accountId: number,
    { before, limit, credentialId }: { before: string; limit: number; credentialId: string | undefined },
  ): Awaitable<OperationHead[]> {
    const own = credentialId === undefined ? [] : [credentialId];
    return this.#reads.all(
      `SELECT operation_id, account_id, credential_id, name, created_at, ended_at, status, node FROM operations
       WHERE account_id = ? AND operation_id < ? ${own.length > 0 ? 'AND credential_id = ?' : ''}
       ORDER BY operation_id DESC LIMIT ?`,
      accountId,
      before,
      ...own,
      limit,
    );
  }

  insert(row: NewOperation): Statement {
    const { operation_id: id, account_id, credential_id, name, created_at, node, is_cancellable } = row;
    return {
      sql: `INSERT INTO operations
              (operation_id, account_id, credential_id, name, created_at, node, is_cancellable)
            VALUES (?, ?, ?, ?, ?, ?, ?)`,
      params: [id, account_id, credential_id, name, created_at, node, is_cancellable],
      tells: tellsOf(id, account_id),
    };
  }

  /** Progress for other nodes; changes nothing after the end. */
  setProgress(operationId: string, progress: string): Statement {
    return {
      sql: 'UPDATE operations SET progress = ? WHERE operation_id = ? AND ended_at IS NULL',
      params: [progress, operationId],
    };
  }

  /** Asks the node that runs the operation to cancel it. */
  askToCancel(operationId: string): Statement {
    return {
      sql: 'UPDATE operations SET cancel_asked = 1 WHERE operation_id = ? AND ended_at IS NULL',
      params: [operationId],
    };
  }

  /** Operations of `node` that should be cancelled. */
  async toCancel(node: string): Promise<string[]> {
    const rows = await this.#reads.all<{ operation_id: string }>(
      'SELECT operation_id FROM operations WHERE node = ? AND cancel_asked = 1 AND ended_at IS NULL',
      node,
    );
    return rows.map((row) => row.operation_id);
  }

  /** The process that ran operations of `node` has ended: they are interrupted. */
  disown(node: string): Statement {
    return {
      sql: "UPDATE operations SET node = '' WHERE node = ? AND ended_at IS NULL",
      params: [node],
    };
  }

  /** Nodes with running operations at least this old. */
  async nodesOf(notAfter: number): Promise<string[]> {
    const rows = await this.#reads.all<{ node: string }>(
      'SELECT DISTINCT node FROM operations WHERE created_at <= ? AND ended_at IS NULL',
      notAfter,
    );
    return rows.map(({ node }) => node);
  }

  /** Stores an outcome, unless one is already stored. */
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
   * Deletes the oldest ended operations of an account beyond `maxBytes`, this many at once; a few
   * more stay if their times are equal.
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

  /** The oldest ended operations whose size was not counted yet. */
  uncounted(limit: number): Awaitable<UncountedOperation[]> {
    return this.#reads.all(
      `SELECT operation_id, account_id, status, length(sealed_body) AS bytes FROM operations
       WHERE kept_bytes IS NULL AND ended_at IS NOT NULL ORDER BY created_at LIMIT ?`,
      limit,
    );
  }

  /** Counts an operation; `sealedBody` replaces its body. */
  count({ operation_id: id, bytes }: UncountedOperation, sealedBody?: Uint8Array): Statement {
    return {
      sql: `UPDATE operations SET kept_bytes = ?, sealed_body = coalesce(?, sealed_body)
            WHERE operation_id = ? AND kept_bytes IS NULL`,
      params: [(sealedBody?.length ?? bytes) + ROW_BYTES, sealedBody ?? null, id],
    };
  }

  /** Deletes old operations except running ones: `running`, and unfinished ones of `nodes`. */
  deleteOlderThan(
    notAfter: number,
    { running, nodes }: { readonly running: readonly string[]; readonly nodes: readonly string[] },
  ): Statement {
    const marks = (list: readonly string[]) => list.map(() => '?').join(', ');
    const but = running.length > 0 ? `AND operation_id NOT IN (${marks(running)})` : '';
    const others = nodes.length > 0 ? `AND (ended_at IS NOT NULL OR node NOT IN (${marks(nodes)}))` : '';
    return {
      sql: `DELETE FROM operations WHERE created_at <= ? ${but} ${others}`,
      params: [notAfter, ...running, ...nodes],
    };
  }
}

function tellsOf(id: string, accountId: number): ResourceChange {
  return { accountId, kind: 'operation', id };
}
