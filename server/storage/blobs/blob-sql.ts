/** SQL of blobs themselves, for the sweeper and the scrubber. */
import type { Awaitable, Reads, Statement } from '../../metadata/metadata.ts';

export interface GarbageRow {
  readonly blob: number;
  /** null: its bytes are the parts of `upload`. */
  readonly name: string | null;
  readonly upload: number | null;
}

export interface BlobRow {
  readonly id: number;
  readonly name: string | null;
  readonly size_bytes: number;
  readonly data: Uint8Array | null;
  readonly checksum: number | null;
  readonly wrapped_key: Uint8Array | null;
  readonly named_key: number | null;
  readonly damaged_at: number | null;
}

/** A referenced blob that is in the blob store, not in a row. */
export interface NamedBlobRow {
  readonly id: number;
  readonly name: string;
  readonly size_bytes: number;
  readonly wrapped_key: Uint8Array | null;
  readonly named_key: number | null;
  readonly damaged_at: number | null;
}

/** A blob, with the etag of a version or of a part that has exactly its bytes. */
export interface SampledBlobRow {
  readonly name: string;
  readonly size_bytes: number;
  readonly wrapped_key: Uint8Array | null;
  readonly named_key: number | null;
  /** 0 or 1. */
  readonly has_customer_key: number;
  readonly etag: string | null;
}

/** An object version whose bytes, or row, are damaged. */
export interface DamageRow {
  readonly object_id: string;
  readonly version_id: string;
  readonly bucket: string;
  readonly name: string;
  readonly account_id: number;
}

export class BlobSql {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** Unreferenced blobs whose grace period is over. */
  dueGarbage(now: number, limit: number): Awaitable<GarbageRow[]> {
    return this.#reads.all(
      `SELECT g.blob, b.name, b.upload FROM blob_garbage g JOIN blobs b ON b.id = g.blob AND b.refs = 0
       WHERE g.not_before <= ? ORDER BY g.not_before LIMIT ?`,
      now,
      limit,
    );
  }

  /** Refuses unless the blob is unreferenced. */
  deleteGarbage(blob: number): Statement[] {
    return [
      { sql: 'DELETE FROM blob_garbage WHERE blob = ?', params: [blob], expectChanges: 1 },
      { sql: 'DELETE FROM blobs WHERE id = ? AND refs = 0', params: [blob], expectChanges: 1 },
    ];
  }

  /** True if a blob of this cloud is in the blob store, not in a row. */
  async hasNamed(): Promise<boolean> {
    const sql = 'SELECT 1 AS known FROM blobs WHERE name IS NOT NULL LIMIT 1';
    return (await this.#reads.get(sql)) !== undefined;
  }

  /** Number and total bytes of the blobs that namedPage() returns. */
  async namedTotal(): Promise<{ blobs: number; bytes: number }> {
    const total = await this.#reads.get<{ blobs: number; bytes: number }>(
      `SELECT count(*) AS blobs, coalesce(sum(size_bytes), 0) AS bytes FROM blobs
       WHERE refs > 0 AND name IS NOT NULL`,
    );
    return total ?? { blobs: 0, bytes: 0 };
  }

  /** By row id, after `after`. */
  namedPage(after: number, limit: number): Awaitable<NamedBlobRow[]> {
    return this.#reads.all(
      `SELECT id, name, size_bytes, wrapped_key, named_key, damaged_at FROM blobs
       WHERE id > ? AND refs > 0 AND name IS NOT NULL ORDER BY id LIMIT ?`,
      after,
      limit,
    );
  }

  sampled(name: string): Awaitable<SampledBlobRow | undefined> {
    return this.#reads.get(
      `SELECT name, size_bytes, wrapped_key, named_key, customer IS NOT NULL AS has_customer_key,
         coalesce((SELECT etag FROM versions WHERE blob = blobs.id LIMIT 1),
           (SELECT etag FROM upload_parts WHERE blob = blobs.id LIMIT 1)) AS etag
       FROM blobs WHERE name = ? AND refs > 0`,
      name,
    );
  }

  async isKnown(name: string): Promise<boolean> {
    return (await this.#reads.get('SELECT 1 AS known FROM blobs WHERE name = ?', name)) !== undefined;
  }

  /** Referenced blobs with bytes of their own, by row id, after `after`. */
  page(after: number, limit: number): Awaitable<BlobRow[]> {
    return this.#reads.all(
      `SELECT id, name, size_bytes, data, checksum, wrapped_key, named_key, damaged_at FROM blobs
       WHERE id > ? AND refs > 0 AND upload IS NULL ORDER BY id LIMIT ?`,
      after,
      limit,
    );
  }

  async stillNamed(id: number): Promise<boolean> {
    return (
      (await this.#reads.get('SELECT 1 AS named FROM blobs WHERE id = ? AND refs > 0', id)) !== undefined
    );
  }

  setDamaged(id: number, at: number | null): Statement {
    return { sql: 'UPDATE blobs SET damaged_at = ? WHERE id = ?', params: [at, id] };
  }

  async countDamaged(): Promise<number> {
    const row = await this.#reads.get<{ count: number }>(
      'SELECT count(*) AS count FROM blobs WHERE damaged_at IS NOT NULL AND refs > 0',
    );
    return row?.count ?? 0;
  }

  /** Each version once, however many of its parts are damaged. */
  damage(limit: number): Awaitable<DamageRow[]> {
    return this.#reads.all(
      `SELECT o.object_id, v.version_id, k.name AS bucket, o.name, k.account_id
       FROM versions v JOIN objects o ON o.id = v.object JOIN buckets k ON k.id = o.bucket_id
       WHERE v.blob IN (
         SELECT id FROM blobs WHERE damaged_at IS NOT NULL
         UNION ALL SELECT w.id FROM blobs w WHERE w.upload IN (
           SELECT p.upload FROM blobs b JOIN upload_parts p ON p.blob = b.id WHERE b.damaged_at IS NOT NULL))
         OR v.id IN (SELECT id FROM versions WHERE damaged_at IS NOT NULL)
       ORDER BY v.id LIMIT ?`,
      limit,
    );
  }
}
