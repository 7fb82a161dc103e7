/** SQL of multipart uploads and their parts. */
import type { Awaitable, Reads, RowIdOf, Statement } from '../../metadata/metadata.ts';

/** States of an upload; the parts of an aborted one are removed a few at a time. */
export const UPLOAD_STATE = { open: 0, completed: 1, aborted: 2 } as const;

export interface PartUploadRow {
  readonly id: number;
  readonly upload_id: string;
  readonly bucket_id: number;
  readonly account_id: number;
  readonly name: string;
  /** One of UPLOAD_STATE. */
  readonly state: number;
  /** Sum over all parts. */
  readonly size_bytes: number;
  /** See version-row-sql.ts; with the rows of its parts, and counted while the upload is open. */
  readonly metadata_bytes: number;
  /** Grows with each change of the parts. */
  readonly changes: number;
  readonly encryption: number;
  /** Same as in a ContentRow. */
  readonly named_key: number | null;
  readonly customer: Uint8Array | null;
  readonly mime_type: string;
  readonly metadata: string | null;
  readonly headers: string | null;
  readonly tags: string | null;
  /**
   * The access control list of the future object; also names the `initiator` if it is not the
   * bucket's owner.
   */
  readonly acl: string | null;
  /** JSON: algorithm and type of the checksums that the client announced. */
  readonly checksum: string | null;
  /** JSON of a WantedLock; null: the bucket's lock. */
  readonly lock: string | null;
  readonly created_at: number;
  /** JSON of a Completed. */
  readonly result: string | null;
}

export interface PartRow {
  readonly number: number;
  readonly blob: number;
  readonly size_bytes: number;
  /** Hex; see ReceivedBytes. */
  readonly etag: string;
  /** Base64, in the algorithm of the upload. */
  readonly checksum: string | null;
  readonly created_at: number;
}

/** A part with the facts for reading its bytes. */
export interface PartBlobRow {
  readonly number: number;
  readonly size_bytes: number;
  readonly blob: number;
  readonly blob_name: string | null;
  readonly wrapped_key: Uint8Array | null;
  readonly named_key: number | null;
  readonly customer: Uint8Array | null;
  /** Same as in a PartRow. */
  readonly checksum: string | null;
}

const UPLOAD_COLUMNS = `id, upload_id, bucket_id, account_id, name, state, size_bytes, metadata_bytes, changes, encryption,
  named_key, customer, mime_type, metadata, headers, tags, acl, checksum, lock, created_at, result`;
const PART_COLUMNS = 'number, blob, size_bytes, etag, checksum, created_at';

export class PartUploadSql {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  find(uploadId: string): Awaitable<PartUploadRow | undefined> {
    return this.#reads.get(`SELECT ${UPLOAD_COLUMNS} FROM uploads WHERE upload_id = ?`, uploadId);
  }

  /** Open uploads of a bucket by name and then age, after that name and row id. */
  openPage(
    bucketId: number,
    after: { readonly name: string; readonly id: number },
    limit: number,
  ): Awaitable<PartUploadRow[]> {
    return this.#reads.all(
      `SELECT ${UPLOAD_COLUMNS} FROM uploads
       WHERE bucket_id = ? AND state = 0 AND (name > ? OR (name = ? AND id > ?)) ORDER BY name, id LIMIT ?`,
      bucketId,
      after.name,
      after.name,
      after.id,
      limit,
    );
  }

  /** True if the bucket has at least that many open uploads. */
  async hasOpen(bucketId: number, count: number): Promise<boolean> {
    const sql =
      'SELECT 1 AS found FROM uploads WHERE bucket_id = ? AND state = 0 ORDER BY name, id LIMIT 1 OFFSET ?';
    return (await this.#reads.get(sql, bucketId, count - 1)) !== undefined;
  }

  /** Open uploads that were begun before `before`, ms. */
  overdue(before: number, limit: number): Awaitable<PartUploadRow[]> {
    return this.#reads.all(
      `SELECT ${UPLOAD_COLUMNS} FROM uploads WHERE state = 0 AND created_at < ? ORDER BY id LIMIT ?`,
      before,
      limit,
    );
  }

  aborted(limit: number): Awaitable<PartUploadRow[]> {
    return this.#reads.all(
      `SELECT ${UPLOAD_COLUMNS} FROM uploads WHERE state = 2 ORDER BY id LIMIT ?`,
      limit,
    );
  }

  part(upload: number, number: number): Awaitable<PartRow | undefined> {
    return this.#reads.get(
      `SELECT ${PART_COLUMNS} FROM upload_parts WHERE upload = ? AND number = ?`,
      upload,
      number,
    );
  }

  /** By number, after that number. */
  parts(upload: number, after: number, limit: number): Awaitable<PartRow[]> {
    return this.#reads.all(
      `SELECT ${PART_COLUMNS} FROM upload_parts WHERE upload = ? AND number > ? ORDER BY number LIMIT ?`,
      upload,
      after,
      limit,
    );
  }

  /** The first parts of a completed upload, in order; default: all. */
  partBlobs(upload: number, limit = 10_000): Awaitable<PartBlobRow[]> {
    return this.#reads.all(
      `SELECT p.number, p.size_bytes, p.blob, b.name AS blob_name, b.wrapped_key, b.named_key, b.customer, p.checksum
       FROM upload_parts p JOIN blobs b ON b.id = p.blob WHERE p.upload = ? ORDER BY p.number LIMIT ?`,
      upload,
      limit,
    );
  }

  /** The bytes of a part that are in its row. */
  inlineBytes(blob: number): Awaitable<{ data: Uint8Array; data_crc: number } | undefined> {
    return this.#reads.get(
      'SELECT data, checksum AS data_crc FROM blobs WHERE id = ? AND data IS NOT NULL',
      blob,
    );
  }

  insert(upload: Omit<PartUploadRow, 'id' | 'state' | 'size_bytes' | 'changes' | 'result'>): Statement {
    return {
      sql: `INSERT INTO uploads (upload_id, bucket_id, account_id, name, encryption, named_key, customer, mime_type,
              metadata, headers, tags, checksum, lock, created_at, acl, metadata_bytes)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      params: [
        upload.upload_id,
        upload.bucket_id,
        upload.account_id,
        upload.name,
        upload.encryption,
        upload.named_key,
        upload.customer,
        upload.mime_type,
        upload.metadata,
        upload.headers,
        upload.tags,
        upload.checksum,
        upload.lock,
        upload.created_at,
        upload.acl,
        upload.metadata_bytes,
      ],
    };
  }

  /** Refuses unless the bucket still exists. */
  holdBucket(bucketId: number): Statement {
    return { sql: 'UPDATE buckets SET id = id WHERE id = ?', params: [bucketId], expectChanges: 1 };
  }

  /** Adds the `bytes` of a part and the `rowBytes` of its row to the upload, which must be open. */
  changePart(upload: number, bytes: number, rowBytes: number): Statement {
    return {
      sql: `UPDATE uploads SET size_bytes = size_bytes + ?, metadata_bytes = metadata_bytes + ?, changes = changes + 1
            WHERE id = ? AND state = 0`,
      params: [bytes, rowBytes, upload],
      expectChanges: 1,
    };
  }

  insertPart(upload: number, part: Omit<PartRow, 'blob'> & { readonly blob: number | RowIdOf }): Statement {
    return {
      sql: `INSERT INTO upload_parts (upload, number, blob, size_bytes, etag, checksum, created_at)
            VALUES (?, ?, ?, ?, ?, ?, ?)`,
      params: [upload, part.number, part.blob, part.size_bytes, part.etag, part.checksum, part.created_at],
    };
  }

  /** Refuses unless the part still has that blob. */
  deletePart(upload: number, { number, blob }: Pick<PartRow, 'number' | 'blob'>): Statement {
    return {
      sql: 'DELETE FROM upload_parts WHERE upload = ? AND number = ? AND blob = ?',
      params: [upload, number, blob],
      expectChanges: 1,
    };
  }

  /** Moves a part to another upload, which is aborted. */
  movePart(from: number, to: RowIdOf, number: number): Statement {
    return {
      sql: 'UPDATE upload_parts SET upload = ? WHERE upload = ? AND number = ?',
      params: [to, from, number],
      expectChanges: 1,
    };
  }

  /** A blob whose bytes are the parts of the upload. */
  insertAssembled(
    { id, named_key, customer }: Pick<PartUploadRow, 'id' | 'named_key' | 'customer'>,
    sizeBytes: number,
  ): Statement {
    return {
      sql: 'INSERT INTO blobs (name, size_bytes, upload, named_key, customer) VALUES (NULL, ?, ?, ?, ?)',
      params: [sizeBytes, id, named_key, customer],
    };
  }

  /** Refuses unless the upload is open and no part has changed since it was read. */
  complete(
    { id, changes }: Pick<PartUploadRow, 'id' | 'changes'>,
    end: { readonly at: number; readonly sizeBytes: number; readonly result: string },
  ): Statement {
    return {
      sql: `UPDATE uploads SET state = 1, ended_at = ?, size_bytes = ?, result = ?
            WHERE id = ? AND state = 0 AND changes = ?`,
      params: [end.at, end.sizeBytes, end.result, id, changes],
      expectChanges: 1,
    };
  }

  /** Refuses like complete(). */
  abort({ id, changes }: Pick<PartUploadRow, 'id' | 'changes'>, at: number): Statement {
    return {
      sql: 'UPDATE uploads SET state = 2, ended_at = ? WHERE id = ? AND state = 0 AND changes = ?',
      params: [at, id, changes],
      expectChanges: 1,
    };
  }

  /** An assembled blob was removed: its parts must be removed. */
  abandon(upload: number): Statement {
    return { sql: 'UPDATE uploads SET state = 2 WHERE id = ? AND state = 1', params: [upload] };
  }

  /** Creates the aborted upload for parts that a completed one does not use. */
  insertLeftover(
    { bucket_id, account_id, name, encryption }: PartUploadRow,
    uploadId: string,
    at: number,
  ): Statement {
    return {
      sql: `INSERT INTO uploads (upload_id, bucket_id, account_id, name, state, encryption, mime_type, created_at, ended_at)
            VALUES (?, ?, ?, ?, 2, ?, '', ?, ?)`,
      params: [uploadId, bucket_id, account_id, name, encryption, at, at],
    };
  }

  /** Refuses (foreign key) while it has parts. */
  delete(upload: number): Statement {
    return { sql: 'DELETE FROM uploads WHERE id = ? AND state = 2', params: [upload], expectChanges: 1 };
  }
}
