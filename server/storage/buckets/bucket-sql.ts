/** SQL of buckets and the counters kept with them. */
import type { Awaitable, Reads, Statement } from '../../metadata/metadata.ts';
import { type BucketChecksums, type BucketModes, crcOfBucket, crcOfModes } from './bucket-checksums.ts';

export interface BucketRow extends BucketChecksums {
  readonly id: number;
  readonly account_id: number;
  readonly name: string;
  readonly region: string;
  /** One of VERSIONING. */
  readonly versioning: number;
  readonly encryption: number;
  readonly created_at: number;
  readonly object_count: number;
  readonly size_bytes: number;
  readonly version_count: number;
  readonly total_bytes: number;
  /** See metadata-bytes.ts. */
  readonly metadata_bytes: number;
  /** See bucket-settings.ts. */
  readonly settings: string | null;
}

/** A bucket with its owner. */
export interface HeldBucketRow extends BucketRow {
  readonly owner_id: string;
  readonly owner_name: string;
  /** 0: the account is suspended. */
  readonly owner_is_active: number;
}

/** The counters of a new bucket. */
export const NO_CONTENT = {
  object_count: 0,
  size_bytes: 0,
  version_count: 0,
  total_bytes: 0,
  metadata_bytes: 0,
};

function modesOf({ id, versioning, encryption, settings }: Pick<BucketRow, 'id'> & BucketModes) {
  return [id, versioning, encryption, settings ?? ''];
}

export const BUCKET_COLUMNS = `id, account_id, name, region, versioning, encryption, created_at,
  object_count, size_bytes, version_count, total_bytes, metadata_bytes, settings, row_crc, settings_crc`;

/** Buckets of accounts that are not closed, with their owners. */
const WITH_OWNER = `SELECT ${BUCKET_COLUMNS.replace(/\w+/g, 'b.$&')}, a.canonical_id AS owner_id,
  a.username AS owner_name, a.is_active AS owner_is_active
  FROM buckets b JOIN accounts a ON a.id = b.account_id WHERE a.closed_at IS NULL`;

export class BucketSql {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  find(accountId: number, name: string): Awaitable<BucketRow | undefined> {
    return this.#reads.get(
      `SELECT ${BUCKET_COLUMNS} FROM buckets WHERE account_id = ? AND name = ?`,
      accountId,
      name,
    );
  }

  /** The bucket that other accounts reach by that name, unless its owner's account is closed. */
  holder(name: string): Awaitable<HeldBucketRow | undefined> {
    return this.#reads.get(`${WITH_OWNER} AND b.global_name = ?`, name);
  }

  /** The bucket of an account; `id`: its row's, or its canonical one. */
  ofAccount(id: number | string, name: string): Awaitable<HeldBucketRow | undefined> {
    const column = typeof id === 'number' ? 'id' : 'canonical_id';
    return this.#reads.get(`${WITH_OWNER} AND b.name = ? AND a.${column} = ?`, name, id);
  }

  /**
   * When the account was closed whose bucket has that name globally; null: it is open; undefined: no bucket
   * has it.
   */
  async heldBy(name: string): Promise<number | null | undefined> {
    const found = await this.#reads.get<{ closed_at: number | null }>(
      'SELECT closed_at FROM buckets b JOIN accounts a ON a.id = b.account_id WHERE b.global_name = ?',
      name,
    );
    return found?.closed_at;
  }

  /** Takes a global name from the bucket of a closed account, which nobody reaches. */
  freeName(name: string): Statement {
    return {
      sql: `UPDATE buckets SET global_name = NULL WHERE global_name = ?
            AND account_id IN (SELECT id FROM accounts WHERE closed_at IS NOT NULL)`,
      params: [name],
      expectChanges: 1,
    };
  }

  /** Buckets after row id `after`, oldest first. */
  list(accountId: number, after: number, limit: number): Awaitable<BucketRow[]> {
    return this.#reads.all(
      `SELECT ${BUCKET_COLUMNS} FROM buckets WHERE account_id = ? AND id > ? ORDER BY id LIMIT ?`,
      accountId,
      after,
      limit,
    );
  }

  insert(
    bucket: Omit<BucketRow, 'id' | keyof typeof NO_CONTENT | keyof BucketChecksums>,
    globalName: string | null,
  ): Statement {
    return {
      sql: `INSERT INTO buckets (account_id, name, region, versioning, encryption, created_at, settings,
              global_name, row_crc, settings_crc)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      params: [
        bucket.account_id,
        bucket.name,
        bucket.region,
        bucket.versioning,
        bucket.encryption,
        bucket.created_at,
        bucket.settings,
        globalName,
        crcOfBucket(bucket),
        crcOfModes(bucket),
      ],
    };
  }

  /** Refuses unless versioning, encryption and settings are still those of `before`. */
  update(before: Pick<BucketRow, 'id'> & BucketModes, after: Omit<BucketModes, 'settings'>): Statement {
    return {
      sql: `UPDATE buckets SET versioning = ?, encryption = ?, settings_crc = ?
            WHERE id = ? AND versioning = ? AND encryption = ? AND COALESCE(settings, '') = ?`,
      params: [after.versioning, after.encryption, crcOfModes({ ...before, ...after }), ...modesOf(before)],
      expectChanges: 1,
    };
  }

  /** Refuses like update(). */
  configure(before: Pick<BucketRow, 'id'> & BucketModes, after: string | null): Statement {
    return {
      sql: `UPDATE buckets SET settings = ?, settings_crc = ?
            WHERE id = ? AND versioning = ? AND encryption = ? AND COALESCE(settings, '') = ?`,
      params: [after, crcOfModes({ ...before, settings: after }), ...modesOf(before)],
      expectChanges: 1,
    };
  }

  /** Has the rules run from the start, from `due` on; null: there are none. */
  scheduleLifecycle(id: number, due: number | null): Statement {
    return {
      sql: 'UPDATE buckets SET lifecycle_due = ?, lifecycle_cursor = NULL WHERE id = ?',
      params: [due, id],
      expectChanges: 1,
    };
  }

  /** Refuses while any object row is left (foreign key) or an upload is open. */
  delete(id: number): Statement {
    return {
      sql: `DELETE FROM buckets WHERE id = ?
            AND NOT EXISTS (SELECT 1 FROM uploads WHERE bucket_id = ? AND state = 0)`,
      params: [id, id],
      expectChanges: 1,
    };
  }
}
