/** Rows of objects and versions, as read and written by ObjectSql. */
import type { RowIdOf } from '../../metadata/metadata.ts';
import type { LockRow } from './object-lock.ts';

/** Null: nothing to cover, or the row is older than the checksums. */
export interface VersionChecksums {
  /** CRC-32 of the fields that never change. */
  readonly row_crc: number | null;
  readonly tags_crc: number | null;
  readonly acl_crc: number | null;
  readonly lock_crc: number | null;
}

/** Checksums of a version and its object; see version-row-sql.ts. */
export interface RowChecksums extends VersionChecksums {
  readonly object_crc: number | null;
  /** Time when the row was found damaged, ms. */
  readonly damaged_at: number | null;
}

/** An object's identity and its current version. */
export interface ObjectRow {
  readonly id: number;
  readonly object_id: string;
  readonly bucket_id: number;
  readonly name: string;
  /** Row id of the live version; null behind a delete marker. */
  readonly current: number | null;
}

export interface VersionRow extends LockRow {
  readonly id: number;
  readonly version_id: string;
  /** Row id of the blob; null for a delete marker. */
  readonly blob: number | null;
  readonly size_bytes: number;
  /** See version-row-sql.ts. */
  readonly metadata_bytes: number;
  readonly etag: string;
  readonly mime_type: string;
  readonly storage_class: string;
  readonly metadata: string | null;
  readonly created_at: number;
  readonly last_accessed: number | null;
  /** 1: created while versioning was off or suspended. An object has at most one such version or marker. */
  readonly is_null: number;
  /** JSON object of further response headers, by their names in lower case. */
  readonly headers: string | null;
  /** JSON object. */
  readonly tags: string | null;
  /** JSON of a StoredChecksum. */
  readonly checksum: string | null;
  /** JSON of an Acl; null: only the bucket's owner. */
  readonly acl: string | null;
}

/** A checksum that an S3 client requested besides the MD5. */
export interface StoredChecksum {
  readonly algorithm: string;
  /** Covers all bytes, or the checksums of the parts. */
  readonly type: 'FULL_OBJECT' | 'COMPOSITE';
  /** Base64; a composite one of N parts ends in `-N`. */
  readonly value: string;
}

export interface UploadTarget {
  readonly versioning: number;
  /** Same as in a BucketRow. */
  readonly settings: string | null;
  readonly object: Pick<ObjectRow, 'id' | 'object_id' | 'current'> | undefined;
  /** The live version. */
  readonly previous: LiveVersion | undefined;
}

/** Facts of the live version that a change replaces. */
export type LiveVersion = Pick<
  VersionRow,
  | 'id'
  | 'blob'
  | 'size_bytes'
  | 'metadata_bytes'
  | 'version_id'
  | 'etag'
  | 'created_at'
  | 'is_null'
  | keyof LockRow
>;

/** A version with its object, as shown in listings. */
export interface EntryRow extends VersionRow {
  /** Row id of the object. */
  readonly object: number;
  readonly object_id: string;
  readonly name: string;
  /** 1 when no later version or marker exists. */
  readonly is_latest: number;
}

/** Everything a download needs, in one read. */
export interface ContentRow extends EntryRow, RowChecksums {
  readonly bucket_id: number;
  readonly account_id: number;
  readonly is_active: number;
  readonly bucket: string;
  /** The bucket's. */
  readonly settings: string | null;
  readonly blob_name: string | null;
  readonly data: Uint8Array | null;
  /** CRC-32 of `data`. */
  readonly data_crc: number | null;
  readonly wrapped_key: Uint8Array | null;
  /** Row id of the named key that wraps the data key. */
  readonly named_key: number | null;
  /** Record of the client's key: see customer-key.ts. */
  readonly customer: Uint8Array | null;
  /** Row id of the multipart upload whose parts are the bytes. */
  readonly upload: number | null;
  /** 0: the version or the bytes belong to a damaged row. */
  readonly is_linked: number;
}

/** A delete marker that is the newest entry of an object. */
export type MarkerRow = Pick<VersionRow, 'version_id' | 'is_null' | 'created_at'>;

export interface NewBlob {
  readonly name: string | null;
  readonly sizeBytes: number;
  readonly data: Uint8Array | null;
  readonly checksum: number | null;
  readonly wrappedKey: Uint8Array | null;
  readonly namedKey: number | null;
  readonly customer: Uint8Array | null;
}

export interface NewVersion {
  readonly versionId: string;
  readonly object: number | RowIdOf;
  readonly blob: number | RowIdOf | null;
  readonly sizeBytes: number;
  readonly metadataBytes: number;
  readonly etag: string;
  readonly mimeType: string;
  readonly storageClass: string;
  readonly metadata: string | null;
  readonly createdAt: number;
  readonly isNull: boolean;
  readonly headers: string | null;
  readonly tags: string | null;
  readonly checksum: string | null;
  /** JSON of an Acl; null: only the bucket's owner. */
  readonly acl: string | null;
  readonly lock: LockRow;
}

/** The current version of an object. */
export interface Pointed {
  /** Row id; null: deleted. */
  readonly version: number | RowIdOf | null;
  readonly sizeBytes: number;
  /** Creation of the version or deletion of the object, ms. */
  readonly at: number;
  /** Columns that lists show of the version; null: deleted. */
  readonly listed: Pick<VersionRow, 'etag' | 'storage_class' | 'checksum'> | null;
}

/** A live object as S3's lists show it. */
export interface ListedRow
  extends Pick<EntryRow, 'name' | 'size_bytes' | 'created_at' | 'etag' | 'storage_class'> {
  readonly checksum: Pick<StoredChecksum, 'algorithm' | 'type'> | null;
}
