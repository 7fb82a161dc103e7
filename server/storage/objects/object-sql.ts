/** SQL of objects, versions and blobs. (Buckets: bucket-sql.ts.) */
import { turnAt } from '../../metadata/change.ts';
import type { Awaitable, Reads, RowIdOf, Statement } from '../../metadata/metadata.ts';
import { LOCK_COLUMNS, type LockRow, type LockTime } from './object-lock.ts';
import type {
  ContentRow,
  EntryRow,
  ListedRow,
  NewBlob,
  NewVersion,
  ObjectRow,
  Pointed,
  UploadTarget,
  VersionRow,
} from './object-rows.ts';
import {
  checksumKind,
  checksumOfKind,
  crcOfLock,
  crcOfObject,
  crcOfText,
  insertOf,
} from './version-row-sql.ts';

export type * from './object-rows.ts';

interface TargetRow extends LockRow {
  readonly versioning: number;
  readonly settings: string | null;
  readonly id: number | null;
  readonly object_id: string;
  readonly current: number | null;
  readonly blob: number | null;
  readonly size_bytes: number;
  readonly metadata_bytes: number;
  readonly version_id: string;
  readonly etag: string;
  readonly created_at: number;
  readonly is_null: number;
}

interface StoredListedRow extends Omit<ListedRow, 'checksum'> {
  readonly checksum: string | null;
  readonly checksum_kind: string | null;
}

type PointedRow = Pick<VersionRow, 'id' | 'tags' | 'acl' | keyof LockRow>;

interface Place {
  readonly name: string;
  /** Row id of a version. */
  readonly id: number;
}

/** A part of a version that is replaced separately. */
export type Fact = { readonly tags: string | null } | { readonly acl: string | null };

/** S3's name for the version created while versioning was off or suspended. */
export const NULL_VERSION = 'null';

const VERSION_COLUMNS = `v.id, v.version_id, v.blob, v.size_bytes, v.metadata_bytes, v.etag, v.mime_type,
  v.storage_class, v.metadata, v.created_at, v.last_accessed, v.is_null, v.headers, v.tags, v.checksum, v.acl, ${LOCK_COLUMNS}`;
/** Columns of a version `v` and its object `o`: an EntryRow without is_latest. */
export const ENTRY_COLUMNS = `${VERSION_COLUMNS}, o.id AS object, o.object_id, o.name`;
const IS_LATEST = `CASE WHEN v.id = coalesce(o.current, (SELECT max(l.id) FROM versions l WHERE l.object = o.id))
  THEN 1 ELSE 0 END AS is_latest`;
export const CONTENT_COLUMNS = `${ENTRY_COLUMNS}, 1 AS is_latest, o.bucket_id, b.account_id, a.is_active,
  b.name AS bucket, b.settings, bl.name AS blob_name, bl.data, bl.checksum AS data_crc, bl.wrapped_key, bl.named_key,
  bl.customer, bl.upload, v.row_crc, v.tags_crc, v.acl_crc, v.lock_crc, o.row_crc AS object_crc, v.damaged_at,
  CASE WHEN v.object = o.id AND bl.size_bytes = v.size_bytes THEN 1 ELSE 0 END AS is_linked`;
export const CONTENT_JOINS = `JOIN buckets b ON b.id = o.bucket_id JOIN accounts a ON a.id = b.account_id
  LEFT JOIN blobs bl ON bl.id = v.blob`;

/** Versions and markers of a bucket by name and then oldest first, after a name and row id. */
const IN_ORDER = `FROM objects o JOIN versions v ON v.object = o.id
  WHERE o.bucket_id = ? AND o.name >= ? AND (o.name > ? OR v.id > ?) ORDER BY o.name, v.id LIMIT ?`;

const SET_TAGS = `UPDATE versions SET tags = ?, tags_crc = ?, metadata_bytes = ?
  WHERE id = ? AND metadata_bytes = ?`;
const SET_ACL = `UPDATE versions SET acl = ?, acl_crc = ?, metadata_bytes = ?
  WHERE id = ? AND metadata_bytes = ?`;

export class ObjectSql {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** The target of an upload: the bucket now, and the object with that name, if any. */
  async target(bucketId: number, name: string): Promise<UploadTarget | undefined> {
    const row = await this.#reads.get<TargetRow>(
      `SELECT b.versioning, b.settings, o.id, o.object_id, o.current, v.blob, v.size_bytes, v.metadata_bytes,
         v.version_id, v.etag, v.created_at, v.is_null, ${LOCK_COLUMNS}
       FROM buckets b LEFT JOIN objects o ON o.bucket_id = b.id AND o.name = ?
       LEFT JOIN versions v ON v.id = o.current WHERE b.id = ?`,
      name,
      bucketId,
    );
    if (!row) return undefined;
    const { versioning, settings, id, object_id, current, ...version } = row;
    return {
      versioning,
      settings,
      object: id === null ? undefined : { id, object_id, current },
      previous: current === null ? undefined : { ...version, id: current },
    };
  }

  /** With the bucket's name and owner, for the permission check. */
  findById(objectId: string): Awaitable<(ObjectRow & { account_id: number; bucket: string }) | undefined> {
    return this.#reads.get(
      `SELECT o.id, o.object_id, o.bucket_id, o.name, o.current, b.account_id, b.name AS bucket
       FROM objects o JOIN buckets b ON b.id = o.bucket_id WHERE o.object_id = ?`,
      objectId,
    );
  }

  /** The live content of an object. */
  currentContent(objectId: string): Awaitable<ContentRow | undefined> {
    return this.#reads.get(
      `SELECT ${CONTENT_COLUMNS} FROM objects o JOIN versions v ON v.id = o.current ${CONTENT_JOINS}
       WHERE o.object_id = ? AND v.blob IS NOT NULL`,
      objectId,
    );
  }

  /** An object's current version, by row id, with its changing facts; undefined: none. */
  pointedAt(object: number): Awaitable<PointedRow | undefined> {
    return this.#reads.get(
      `SELECT v.id, v.tags, v.acl, ${LOCK_COLUMNS} FROM objects o JOIN versions v ON v.id = o.current
       WHERE o.id = ?`,
      object,
    );
  }

  /** The content of one version; undefined also for a delete marker. */
  versionContent(objectId: string, versionId: string): Awaitable<ContentRow | undefined> {
    return this.#reads.get(
      `SELECT ${CONTENT_COLUMNS} FROM versions v JOIN objects o ON o.id = v.object ${CONTENT_JOINS}
       WHERE v.version_id = ? AND o.object_id = ? AND v.blob IS NOT NULL`,
      versionId,
      objectId,
    );
  }

  /** The object of a name, live or behind a marker. */
  named(bucketId: number, name: string): Awaitable<ObjectRow | undefined> {
    return this.#reads.get(
      'SELECT id, object_id, bucket_id, name, current FROM objects WHERE bucket_id = ? AND name = ?',
      bucketId,
      name,
    );
  }

  /** The version or marker created while versioning was off or suspended. */
  nullVersion(object: number): Awaitable<VersionRow | undefined> {
    return this.#reads.get(
      `SELECT ${VERSION_COLUMNS} FROM versions v WHERE v.object = ? AND v.is_null = 1
       ORDER BY v.id DESC LIMIT 1`,
      object,
    );
  }

  version(id: number): Awaitable<VersionRow | undefined> {
    return this.#reads.get(`SELECT ${VERSION_COLUMNS} FROM versions v WHERE v.id = ?`, id);
  }

  versionById(object: number, versionId: string): Awaitable<VersionRow | undefined> {
    return this.#reads.get(
      `SELECT ${VERSION_COLUMNS} FROM versions v WHERE v.object = ? AND v.version_id = ?`,
      object,
      versionId,
    );
  }

  /** The newest version or marker of an object other than `except`. */
  newestVersion(object: number, except: number): Awaitable<VersionRow | undefined> {
    return this.#reads.get(
      `SELECT ${VERSION_COLUMNS} FROM versions v WHERE v.object = ? AND v.id <> ? ORDER BY v.id DESC LIMIT 1`,
      object,
      except,
    );
  }

  /** Oldest first, markers included, after row id `after`. */
  oldestVersions(object: number, limit: number, after = 0): Awaitable<VersionRow[]> {
    return this.#reads.all(
      `SELECT ${VERSION_COLUMNS} FROM versions v WHERE v.object = ? AND v.id > ? ORDER BY v.id LIMIT ?`,
      object,
      after,
      limit,
    );
  }

  /** Public ids of objects, live or behind a marker, by name. */
  objectIds(bucketId: number, limit: number): Awaitable<{ object_id: string }[]> {
    return this.#reads.all(
      'SELECT object_id FROM objects WHERE bucket_id = ? ORDER BY name LIMIT ?',
      bucketId,
      limit,
    );
  }

  /** Locks of versions that have or had one, by name and then age, after that name and row id. */
  locks(bucketId: number, { name, id }: Place, limit: number): Awaitable<(LockRow & Place)[]> {
    const sql = `SELECT o.name, v.id, ${LOCK_COLUMNS} ${IN_ORDER}`;
    return this.#reads.all(sql, bucketId, name, name, id, limit);
  }

  /** All versions and markers, by name and then oldest first, after that name and row id. */
  historyEntries(bucketId: number, { name, id }: Place, limit: number): Awaitable<EntryRow[]> {
    const sql = `SELECT ${ENTRY_COLUMNS}, 0 AS is_latest ${IN_ORDER}`;
    return this.#reads.all(sql, bucketId, name, name, id, limit);
  }

  /** Newest first, older than `before` (a row id). Empty unless the object is in that bucket. */
  versionsOf(
    object: Pick<ObjectRow, 'id' | 'bucket_id'>,
    before: number,
    limit: number,
  ): Awaitable<EntryRow[]> {
    return this.#reads.all(
      `SELECT ${ENTRY_COLUMNS}, ${IS_LATEST} FROM versions v JOIN objects o ON o.id = v.object
       WHERE v.object = ? AND o.bucket_id = ? AND v.id < ? ORDER BY v.id DESC LIMIT ?`,
      object.id,
      object.bucket_id,
      before,
      limit,
    );
  }

  /** Live objects by name (UTF-8 byte order), after `after`. */
  liveEntries(
    bucketId: number,
    from: { name: string; after: boolean },
    limit: number,
  ): Awaitable<EntryRow[]> {
    return this.#reads.all(
      `SELECT ${ENTRY_COLUMNS}, 1 AS is_latest FROM objects o JOIN versions v ON v.id = o.current
       WHERE o.bucket_id = ? AND o.current IS NOT NULL AND o.name ${from.after ? '>' : '>='} ?
       ORDER BY o.name LIMIT ?`,
      bucketId,
      from.name,
      limit,
    );
  }

  /**
   * Like liveEntries(), from the rows of objects alone, a fifth of the blocks in PostgreSQL. Versions are
   * read only of objects that earlier code wrote, whose rows lack it.
   */
  async listedEntries(
    bucketId: number,
    from: { name: string; after: boolean },
    limit: number,
  ): Promise<ListedRow[]> {
    const rows = await this.#reads.all<StoredListedRow>(
      `SELECT o.name, coalesce(v.size_bytes, o.size_bytes) AS size_bytes,
         coalesce(v.created_at, o.changed_at) AS created_at, coalesce(v.etag, o.etag) AS etag,
         coalesce(v.storage_class, o.storage_class) AS storage_class, v.checksum,
         CASE WHEN v.id IS NULL THEN o.checksum_kind END AS checksum_kind
       FROM objects o LEFT JOIN versions v ON v.id = CASE WHEN o.listed = o.current THEN NULL ELSE o.current END
       WHERE o.bucket_id = ? AND o.current IS NOT NULL AND o.name ${from.after ? '>' : '>='} ?
       ORDER BY o.name LIMIT ?`,
      bucketId,
      from.name,
      limit,
    );
    return rows.map(({ checksum_kind, ...row }) => ({
      ...row,
      checksum: checksumOfKind(checksum_kind ?? checksumKind(row.checksum)),
    }));
  }

  /** All versions and markers, by name and then newest first; starts with whole names. */
  allEntries(bucketId: number, from: { name: string; after: boolean }, limit: number): Awaitable<EntryRow[]> {
    return this.#reads.all(
      `SELECT ${ENTRY_COLUMNS}, ${IS_LATEST} FROM objects o JOIN versions v ON v.object = o.id
       WHERE o.bucket_id = ? AND o.name ${from.after ? '>' : '>='} ? ORDER BY o.name, v.id DESC LIMIT ?`,
      bucketId,
      from.name,
      limit,
    );
  }

  insertBlob({ name, sizeBytes, data, checksum, wrappedKey, namedKey, customer }: NewBlob): Statement {
    return {
      sql: `INSERT INTO blobs (name, size_bytes, data, checksum, wrapped_key, named_key, customer)
            VALUES (?, ?, ?, ?, ?, ?, ?)`,
      params: [name, sizeBytes, data, checksum, wrappedKey, namedKey, customer],
    };
  }

  insertObject(object: { objectId: string; bucketId: number; name: string }): Statement {
    const { objectId, bucketId, name } = object;
    return {
      sql: 'INSERT INTO objects (object_id, bucket_id, name, row_crc) VALUES (?, ?, ?, ?)',
      params: [objectId, bucketId, name, crcOfObject({ object_id: objectId, name })],
    };
  }

  insertVersion(version: NewVersion): Statement {
    return insertOf(version);
  }

  /** Sets the current version; refuses unless it is still `from`. */
  setCurrent(object: number | RowIdOf, from: number | null, to: Pointed): Statement {
    const { version, listed } = to;
    return {
      sql: `UPDATE objects SET current = ?, size_bytes = ?, changed_at = ?, listed = ?, etag = ?, storage_class = ?,
              checksum_kind = ? WHERE id = ? AND coalesce(current, 0) = ?`,
      params: [
        ...[version, version === null ? null : to.sizeBytes, to.at, version],
        ...[listed?.etag ?? null, listed?.storage_class ?? null, checksumKind(listed?.checksum ?? null)],
        ...[object, from ?? 0],
      ],
      expectChanges: 1,
    };
  }

  /** Refuses unless it is still the current version. */
  expectCurrent({ id, current }: Pick<ObjectRow, 'id' | 'current'>): Statement {
    return {
      sql: 'UPDATE objects SET id = id WHERE id = ? AND coalesce(current, 0) = ?',
      params: [id, current ?? 0],
      expectChanges: 1,
    };
  }

  /**
   * Refuses unless that version or marker is the newest of the object, `except` one (row ids; 0: none), and
   * the current version is the same. Must come before statements that add or remove versions.
   */
  expectNewest(
    { id, current }: Pick<ObjectRow, 'id' | 'current'>,
    { newest, except }: { readonly newest: number; readonly except: number },
  ): Statement[] {
    return [
      // Only the next statement sees a version that another node adds or removes at once.
      turnAt('objects', id),
      {
        sql: `UPDATE objects SET id = id WHERE id = ? AND coalesce(current, 0) = ?
                AND coalesce((SELECT max(id) FROM versions WHERE object = ? AND id <> ?), 0) = ?`,
        params: [id, current ?? 0, id, except, newest],
        expectChanges: 1,
      },
    ];
  }

  /**
   * Refuses while object lock protects it (`bypass`: despite GOVERNANCE), and if its metadata has
   * changed, because the old size was counted.
   */
  deleteVersion(
    { id, metadata_bytes }: Pick<VersionRow, 'id' | 'metadata_bytes'>,
    { wallMs, steadyMs }: LockTime,
    bypass: boolean,
  ): Statement {
    return {
      sql: `DELETE FROM versions WHERE id = ? AND metadata_bytes = ? AND coalesce(legal_hold, 0) = 0 AND (
              (coalesce(retain_until, 0) <= ? AND coalesce(locked_until, 0) <= ?)
              OR (lock_mode = 'GOVERNANCE' AND ? = 1))`,
      params: [id, metadata_bytes, wallMs, steadyMs, Number(bypass)],
      expectChanges: 1,
    };
  }

  /** Refuses unless the version still has the lock `from`. */
  setLock(version: number, from: LockRow, to: LockRow): Statement {
    return {
      sql: `UPDATE versions SET lock_mode = ?, retain_until = ?, locked_until = ?, legal_hold = ?, lock_crc = ?
            WHERE id = ? AND coalesce(lock_mode, '') = ? AND coalesce(retain_until, 0) = ?
            AND coalesce(locked_until, 0) = ? AND coalesce(legal_hold, 2) = ?`,
      params: [
        ...[to.lock_mode, to.retain_until, to.locked_until, to.legal_hold, crcOfLock(to)],
        ...[version, from.lock_mode ?? '', from.retain_until ?? 0, from.locked_until ?? 0],
        from.legal_hold ?? 2,
      ],
      expectChanges: 1,
    };
  }

  /** Refuses (foreign key) while the object still has a version. */
  deleteObject(id: number): Statement {
    return { sql: 'DELETE FROM objects WHERE id = ?', params: [id], expectChanges: 1 };
  }

  /** Adds one to the references of the blob. */
  shareBlob(blob: number): Statement {
    return {
      sql: 'UPDATE blobs SET refs = refs + 1 WHERE id = ? AND refs > 0',
      params: [blob],
      expectChanges: 1,
    };
  }

  /**
   * Removes one reference of the blob. At zero, bytes in the row are deleted at once, a file or parts after
   * `notBefore`.
   */
  releaseBlob(blob: number, notBefore: number): Statement[] {
    return [
      { sql: 'UPDATE blobs SET refs = refs - 1 WHERE id = ?', params: [blob], expectChanges: 1 },
      {
        sql: 'DELETE FROM blobs WHERE id = ? AND refs = 0 AND name IS NULL AND upload IS NULL',
        params: [blob],
      },
      {
        sql: 'INSERT INTO blob_garbage (blob, not_before) SELECT id, ? FROM blobs WHERE id = ? AND refs = 0',
        params: [notBefore, blob],
      },
    ];
  }

  /** Refuses if the version is gone, or the size of its metadata has changed. */
  setFact(version: Pick<VersionRow, 'id' | 'metadata_bytes'>, fact: Fact, sizeBytes: number): Statement {
    const [sql, text] = 'tags' in fact ? [SET_TAGS, fact.tags] : [SET_ACL, fact.acl];
    return {
      sql,
      params: [text, crcOfText(text), sizeBytes, version.id, version.metadata_bytes],
      expectChanges: 1,
    };
  }

  setLastAccessed(version: number, at: number): Statement {
    return { sql: 'UPDATE versions SET last_accessed = ? WHERE id = ?', params: [at, version] };
  }
}
