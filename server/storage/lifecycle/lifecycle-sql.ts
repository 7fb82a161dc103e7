/** SQL of lifecycle runs: buckets with rules that are due, and their versions in order. */
import { increment } from '../../metadata/change.ts';
import type { Awaitable, Reads, Statement } from '../../metadata/metadata.ts';
import { BUCKET_COLUMNS, type BucketRow } from '../buckets/bucket-sql.ts';
import { LOCK_COLUMNS, type LockRow } from '../objects/object-lock.ts';

/** A bucket whose rules are due. */
export interface DueRow extends BucketRow {
  readonly lifecycle_due: number;
  /** JSON of a position; null: at the start. */
  readonly lifecycle_cursor: string | null;
}

/** A version as seen by the rules. */
export interface AgedRow extends LockRow {
  /** Row id of the object. */
  readonly object: number;
  readonly name: string;
  readonly id: number;
  readonly version_id: string;
  /** null: a delete marker. */
  readonly blob: number | null;
  readonly size_bytes: number;
  readonly created_at: number;
  readonly tags: string | null;
}

export class LifecycleSql {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** At most one due bucket per account, ordered by account, after `after`. */
  due(now: number, after: number, limit: number): Awaitable<DueRow[]> {
    return this.#reads.all(
      `SELECT ${BUCKET_COLUMNS}, lifecycle_due, lifecycle_cursor FROM buckets WHERE id IN (
         SELECT min(id) FROM buckets WHERE lifecycle_due <= ? AND account_id > ?
         GROUP BY account_id ORDER BY account_id LIMIT ?)
       ORDER BY account_id`,
      now,
      after,
      limit,
    );
  }

  /** By name and then newest first: the rest of the name after that row id, then later names. */
  versions(
    bucketId: number,
    after: { readonly name: string; readonly id: number },
    limit: number,
  ): Awaitable<AgedRow[]> {
    return this.#reads.all(
      `SELECT o.id AS object, o.name, v.id, v.version_id, v.blob, v.size_bytes, v.created_at, v.tags, ${LOCK_COLUMNS}
       FROM objects o JOIN versions v ON v.object = o.id
       WHERE o.bucket_id = ? AND o.name >= ? AND (o.name > ? OR v.id < ?) ORDER BY o.name, v.id DESC LIMIT ?`,
      bucketId,
      after.name,
      after.name,
      after.id,
      limit,
    );
  }

  /** For the commit of a removal whose event comes later. */
  noteRemoved(bucketId: number, count: number): Statement {
    return increment({ table: 'buckets', id: bucketId, add: { lifecycle_removed: count } });
  }

  /** Number of removals not reported by an event. */
  async untold(bucketId: number): Promise<number> {
    const found = await this.#reads.get<{ lifecycle_removed: number }>(
      'SELECT lifecycle_removed FROM buckets WHERE id = ?',
      bucketId,
    );
    return found?.lifecycle_removed ?? 0;
  }

  /** For the commit of the event. Refuses if another node has reported them. */
  noteTold(bucketId: number, count: number): Statement {
    return {
      sql: `UPDATE buckets SET lifecycle_removed = lifecycle_removed - ?
            WHERE id = ? AND lifecycle_removed >= ?`,
      params: [count, bucketId, count],
      expectChanges: 1,
    };
  }

  /**
   * Continues at `cursor`, or at the start if it is null, from `due` on. Refuses if the rules were
   * changed.
   */
  advance(
    { id, lifecycle_due, lifecycle_cursor }: Pick<DueRow, 'id' | 'lifecycle_due' | 'lifecycle_cursor'>,
    due: number | null,
    cursor: string | null,
  ): Statement {
    return {
      sql: `UPDATE buckets SET lifecycle_due = ?, lifecycle_cursor = ?
            WHERE id = ? AND lifecycle_due = ? AND coalesce(lifecycle_cursor, '') = ?`,
      params: [due, cursor, id, lifecycle_due, lifecycle_cursor ?? ''],
      expectChanges: 1,
    };
  }
}
