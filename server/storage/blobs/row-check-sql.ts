/** SQL of the checksums of rows, for the scrub. */
import type { Awaitable, Reads, Statement } from '../../metadata/metadata.ts';
import {
  type BucketChecksums,
  CHECKED_COLUMNS,
  type CheckedBucket,
  crcOfBucket,
  crcOfModes,
} from '../buckets/bucket-sql.ts';
import { LOCK_COLUMNS } from '../objects/object-lock.ts';
import { type CheckedRow, checksumKind, checksumsOf, crcOfObject } from '../objects/version-row-sql.ts';

const COLUMNS = `v.id, v.version_id, v.size_bytes, v.etag, v.mime_type, v.storage_class, v.metadata,
  v.created_at, v.is_null, v.headers, v.checksum, v.tags, v.acl, ${LOCK_COLUMNS}, v.row_crc, v.tags_crc,
  v.acl_crc, v.lock_crc, v.damaged_at, o.id AS object, o.object_id, o.name, o.row_crc AS object_crc,
  o.current, o.listed, o.etag AS listed_etag, o.storage_class AS listed_class, o.checksum_kind`;

/** Bytes shared by several rows are not counted: each copy of an object would count all the others. */
const MOST_COUNTED = 1000;
/** A version's bytes have its size, and the count of rows that reference them is right. */
const HAS_ITS_BYTES = `EXISTS (SELECT 1 FROM blobs bl WHERE bl.id = v.blob AND bl.size_bytes = v.size_bytes
  AND (bl.refs > ${MOST_COUNTED} OR bl.refs = (SELECT count(*) FROM (
    SELECT 1 AS one FROM versions x WHERE x.blob = bl.id
    UNION ALL SELECT 1 FROM upload_parts p WHERE p.blob = bl.id LIMIT ${MOST_COUNTED + 1}) AS few)))`;
const IS_LINKED = `CASE WHEN (v.blob IS NULL OR ${HAS_ITS_BYTES}) AND (o.current IS NULL
  OR EXISTS (SELECT 1 FROM versions c WHERE c.id = o.current AND c.object = o.id)) THEN 1 ELSE 0 END AS is_linked`;

const FILL = {
  row: 'UPDATE versions SET row_crc = ? WHERE id = ? AND row_crc IS NULL',
  tags: 'UPDATE versions SET tags_crc = ? WHERE id = ? AND tags_crc IS NULL AND tags = ?',
  acl: 'UPDATE versions SET acl_crc = ? WHERE id = ? AND acl_crc IS NULL AND acl = ?',
  lock: `UPDATE versions SET lock_crc = ? WHERE id = ? AND lock_crc IS NULL AND coalesce(lock_mode, '') = ?
    AND coalesce(retain_until, 0) = ? AND coalesce(legal_hold, 2) = ?`,
  object: 'UPDATE objects SET row_crc = ? WHERE id = ? AND row_crc IS NULL',
} as const;

/** Columns that lists show of a live object: a copy of its version in the row of the object. */
const SET_LISTED = `UPDATE objects SET listed = ?, etag = ?, storage_class = ?, checksum_kind = ?
  WHERE id = ? AND current = ?`;

const BUCKET_COLUMNS = `${CHECKED_COLUMNS}, damaged_at`;
const FILL_BUCKET = {
  row: 'UPDATE buckets SET row_crc = ? WHERE id = ? AND row_crc IS NULL',
  settings: `UPDATE buckets SET settings_crc = ? WHERE id = ? AND settings_crc IS NULL AND versioning = ?
    AND encryption = ? AND coalesce(settings, '') = ?`,
} as const;

/** A version with its object, as the scrub reads it. */
export interface ScrubbedRow extends CheckedRow {
  /** Row id of the object's live version. */
  readonly current: number | null;
  /** Columns that lists show of the object, and the row id of the copied version. */
  readonly listed: number | null;
  readonly listed_etag: string | null;
  readonly listed_class: string | null;
  readonly checksum_kind: string | null;
}

/** The row of a bucket, as the scrub reads it. */
export interface CheckedBucketRow extends CheckedBucket, BucketChecksums {
  readonly id: number;
  readonly damaged_at: number | null;
}

export interface DamagedBucketRow {
  readonly bucket: string;
  readonly account_id: number;
}

function listedAnew(row: ScrubbedRow): Statement[] {
  const { id, current, etag, storage_class } = row;
  const kind = checksumKind(row.checksum);
  const isRight =
    row.listed === id &&
    row.listed_etag === etag &&
    row.listed_class === storage_class &&
    row.checksum_kind === kind;
  if (current !== id || isRight) return [];
  return [{ sql: SET_LISTED, params: [id, etag, storage_class, kind, row.object, id] }];
}

export class RowCheckSql {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** Versions and delete markers with their objects, by row id, after `after`. */
  page(after: number, limit: number): Awaitable<ScrubbedRow[]> {
    return this.#reads.all(
      `SELECT ${COLUMNS}, ${IS_LINKED} FROM versions v JOIN objects o ON o.id = v.object
       WHERE v.id > ? ORDER BY v.id LIMIT ?`,
      after,
      limit,
    );
  }

  /** One row of page(), as currently stored. */
  row(id: number): Awaitable<ScrubbedRow | undefined> {
    return this.#reads.get(
      `SELECT ${COLUMNS}, ${IS_LINKED} FROM versions v JOIN objects o ON o.id = v.object WHERE v.id = ?`,
      id,
    );
  }

  setDamaged(id: number, at: number | null): Statement {
    return { sql: 'UPDATE versions SET damaged_at = ? WHERE id = ?', params: [at, id] };
  }

  /**
   * Adds missing checksums to a row of an earlier version, from its current values, and what lists show of it
   * where that is missing or altered.
   */
  fillIn(row: ScrubbedRow): Statement[] {
    const { row_crc, tags_crc, acl_crc, lock_crc } = checksumsOf(row);
    const statements: Statement[] = [...listedAnew(row)];
    const fill = (sql: string, ...params: (string | number | null)[]) => statements.push({ sql, params });
    if (row.row_crc === null) fill(FILL.row, row_crc, row.id);
    // The change that altered the value also stored its checksum.
    if (row.tags_crc !== tags_crc) fill(FILL.tags, tags_crc, row.id, row.tags);
    if (row.acl_crc !== acl_crc) fill(FILL.acl, acl_crc, row.id, row.acl);
    if (row.lock_crc !== lock_crc)
      fill(FILL.lock, lock_crc, row.id, row.lock_mode ?? '', row.retain_until ?? 0, row.legal_hold ?? 2);
    if (row.object_crc === null) fill(FILL.object, crcOfObject(row), row.object);
    return statements;
  }

  /** Buckets by row id, after `after`. */
  buckets(after: number, limit: number): Awaitable<CheckedBucketRow[]> {
    return this.#reads.all(
      `SELECT ${BUCKET_COLUMNS} FROM buckets WHERE id > ? ORDER BY id LIMIT ?`,
      after,
      limit,
    );
  }

  /** One row of buckets(), as currently stored. */
  bucket(id: number): Awaitable<CheckedBucketRow | undefined> {
    return this.#reads.get(`SELECT ${BUCKET_COLUMNS} FROM buckets WHERE id = ?`, id);
  }

  setBucketDamaged(id: number, at: number | null): Statement {
    return { sql: 'UPDATE buckets SET damaged_at = ? WHERE id = ?', params: [at, id] };
  }

  /** Like fillIn(). */
  fillInBucket(row: CheckedBucketRow): Statement[] {
    const { id, versioning, encryption, settings } = row;
    const modes = [versioning, encryption, settings ?? ''];
    return [
      ...(row.row_crc === null ? [{ sql: FILL_BUCKET.row, params: [crcOfBucket(row), id] }] : []),
      ...(row.settings_crc === null
        ? [{ sql: FILL_BUCKET.settings, params: [crcOfModes(row), id, ...modes] }]
        : []),
    ];
  }

  damagedBuckets(limit: number): Awaitable<DamagedBucketRow[]> {
    return this.#reads.all(
      `SELECT name AS bucket, account_id FROM buckets WHERE damaged_at IS NOT NULL ORDER BY id LIMIT ?`,
      limit,
    );
  }

  async countDamagedBuckets(): Promise<number> {
    const sql = 'SELECT count(*) AS count FROM buckets WHERE damaged_at IS NOT NULL';
    return (await this.#reads.get<{ count: number }>(sql))?.count ?? 0;
  }

  async countDamaged(): Promise<number> {
    const sql = 'SELECT count(*) AS count FROM versions WHERE damaged_at IS NOT NULL';
    return (await this.#reads.get<{ count: number }>(sql))?.count ?? 0;
  }
}
