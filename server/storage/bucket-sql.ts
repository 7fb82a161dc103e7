/** SQL of buckets and the counters kept with them. */
import type { Awaitable, Reads, Statement } from '../metadata/metadata.ts';

export interface BucketRow {
  readonly id: number;
  readonly account_id: number;
  readonly name: string;
  readonly region: string;
  readonly versioning: number;
  readonly encryption: number;
  readonly created_at: number;
  readonly object_count: number;
  readonly size_bytes: number;
  readonly version_count: number;
  readonly total_bytes: number;
}

/** How a commit changes what a bucket holds. */
export interface BucketDelta {
  /** Live objects and their bytes. */
  readonly objects: number;
  readonly bytes: number;
  /** Versions with bytes, live ones included. */
  readonly versions: number;
  readonly totalBytes: number;
}

const COLUMNS = `id, account_id, name, region, versioning, encryption, created_at,
  object_count, size_bytes, version_count, total_bytes`;

export class BucketSql {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  find(accountId: number, name: string): Awaitable<BucketRow | undefined> {
    return this.#reads.get(
      `SELECT ${COLUMNS} FROM buckets WHERE account_id = ? AND name = ?`,
      accountId,
      name,
    );
  }

  /** Oldest first, those after row id `after`. */
  list(accountId: number, after: number, limit: number): Awaitable<BucketRow[]> {
    return this.#reads.all(
      `SELECT ${COLUMNS} FROM buckets WHERE account_id = ? AND id > ? ORDER BY id LIMIT ?`,
      accountId,
      after,
      limit,
    );
  }

  insert(
    bucket: Omit<BucketRow, 'id' | 'object_count' | 'size_bytes' | 'version_count' | 'total_bytes'>,
  ): Statement {
    return {
      sql: `INSERT INTO buckets (account_id, name, region, versioning, encryption, created_at)
            VALUES (?, ?, ?, ?, ?, ?)`,
      params: [
        bucket.account_id,
        bucket.name,
        bucket.region,
        bucket.versioning,
        bucket.encryption,
        bucket.created_at,
      ],
    };
  }

  /** Null leaves a setting as it is. */
  update(id: number, settings: { versioning: number | null; encryption: number | null }): Statement {
    return {
      sql: `UPDATE buckets SET versioning = coalesce(?, versioning), encryption = coalesce(?, encryption)
            WHERE id = ?`,
      params: [settings.versioning, settings.encryption, id],
      expectChanges: 1,
    };
  }

  /** Refuses (foreign key) while any object row is left. */
  delete(id: number): Statement {
    return { sql: 'DELETE FROM buckets WHERE id = ?', params: [id], expectChanges: 1 };
  }

  /** Refuses when the bucket is gone. The account's counter moves in the same commit. */
  count(bucket: Pick<BucketRow, 'id' | 'account_id'>, delta: BucketDelta): Statement[] {
    const statements: Statement[] = [
      {
        sql: `UPDATE buckets SET object_count = object_count + ?, size_bytes = size_bytes + ?,
              version_count = version_count + ?, total_bytes = total_bytes + ? WHERE id = ?`,
        params: [delta.objects, delta.bytes, delta.versions, delta.totalBytes, bucket.id],
        expectChanges: 1,
        sums: [0, 1, 2, 3],
      },
    ];
    if (delta.totalBytes !== 0) {
      statements.push({
        sql: 'UPDATE accounts SET storage_bytes = storage_bytes + ? WHERE id = ?',
        params: [delta.totalBytes, bucket.account_id],
        expectChanges: 1,
        sums: [0],
      });
    }
    return statements;
  }
}
