/**
 * The row of a version: its SQL, the bytes it counts as, and its checksums. A new column concerns all three.
 *
 * Rows without contents fill a disk too, so quotas and charges include names, metadata and ROW_BYTES for each
 * row. Migration 38 has the same sum in SQL, without ROW_BYTES: a row is counted with the value of its column
 * `metadata_bytes` until it is removed.
 *
 * The user's fields (name, metadata, headers, tags, ACL, lock) are stored nowhere else, so a flipped bit in
 * them would be served as data. The fields that never change share one checksum; tags, ACL and lock change
 * independently, and have their own. Row ids, by which a row refers to its bytes and an object to its current
 * version, have none: they are compared with the rows that they refer to.
 */
import { crc32 } from 'node:zlib';
import type { RowIdOf, Statement } from '../../metadata/metadata.ts';
import { type LockRow, UNLOCKED } from './object-lock.ts';
import type {
  ListedRow,
  NewVersion,
  ObjectRow,
  RowChecksums,
  StoredChecksum,
  VersionChecksums,
  VersionRow,
} from './object-rows.ts';

const COLUMNS = [
  ...['version_id', 'size_bytes', 'etag', 'mime_type', 'storage_class', 'metadata', 'created_at', 'is_null'],
  ...['headers', 'checksum', 'tags', 'acl', 'lock_mode', 'retain_until', 'locked_until', 'legal_hold'],
  ...['row_crc', 'tags_crc', 'acl_crc', 'lock_crc', 'metadata_bytes'],
] as const;
const SQL = `INSERT INTO versions (object, blob, ${COLUMNS.join(', ')})
  VALUES (?, ?${', ?'.repeat(COLUMNS.length)})`;

export function insertOf(version: NewVersion): Statement {
  const facts = {
    version_id: version.versionId,
    size_bytes: version.sizeBytes,
    etag: version.etag,
    mime_type: version.mimeType,
    storage_class: version.storageClass,
    metadata: version.metadata,
    created_at: version.createdAt,
    is_null: Number(version.isNull),
    headers: version.headers,
    checksum: version.checksum,
    tags: version.tags,
    acl: version.acl,
    ...version.lock,
  };
  const row = { ...facts, ...checksumsOf(facts), metadata_bytes: version.metadataBytes };
  const params = [version.object, version.blob, ...COLUMNS.map((column) => row[column])];
  // Row ids are the order of an object's versions. A new object has no others.
  return typeof version.object === 'number' ? { sql: SQL, params, isLatest: true } : { sql: SQL, params };
}

/**
 * Counted for each version, delete marker, open upload and part, besides texts and contents: millions of
 * empty objects with short names would fill the disk below every quota. In SQLite these rows take 440,
 * 150, 130 and 110 bytes, with their indexes.
 */
export const ROW_BYTES = 256;

/** The version row of a delete marker. */
export function markerOf(
  { object, name }: { readonly object: number | RowIdOf; readonly name: string },
  { versionId, createdAt, isNull }: Pick<NewVersion, 'versionId' | 'createdAt' | 'isNull'>,
): NewVersion {
  const nothing = {
    blob: null,
    sizeBytes: 0,
    metadataBytes: markerBytesOf(name),
    etag: '',
    mimeType: '',
    storageClass: 'STANDARD',
    metadata: null,
    headers: null,
    tags: null,
    checksum: null,
    acl: null,
    lock: UNLOCKED,
  };
  return { versionId, object, createdAt, isNull, ...nothing };
}

/** The user-supplied texts of an object. A delete marker has only the name. */
type Texts = { readonly name: string } & Pick<
  VersionRow,
  'mime_type' | 'metadata' | 'headers' | 'tags' | 'acl'
>;

export const markerBytesOf = (name: string) => ROW_BYTES + sizeOfText(name);

/** Bytes of UTF-8. */
const sizeOfText = (text: string | null) => (text === null ? 0 : Buffer.byteLength(text));

export function metadataBytesOf({ name, mime_type, metadata, headers, tags, acl }: Texts): number {
  const texts = [name, mime_type, metadata, headers, tags, acl];
  return texts.reduce((sum, text) => sum + sizeOfText(text), ROW_BYTES);
}

/** The facts of a version that never change. */
type FixedFacts = Pick<
  VersionRow,
  | 'version_id'
  | 'size_bytes'
  | 'etag'
  | 'mime_type'
  | 'storage_class'
  | 'metadata'
  | 'created_at'
  | 'is_null'
  | 'headers'
  | 'checksum'
>;

/** A version with its object, as a check reads it. */
export interface CheckedRow extends FixedFacts, LockRow, RowChecksums, Pick<ObjectRow, 'object_id' | 'name'> {
  readonly id: number;
  readonly tags: string | null;
  readonly acl: string | null;
  /** Row id. */
  readonly object: number;
  /** 0: the version or the bytes do not belong to this row. */
  readonly is_linked: number;
}

/** CRC-32 protects against accidents, not against a person who can write to the metadata. */
const crcOf = (facts: readonly (string | number | null)[]) => crc32(JSON.stringify(facts));

export const crcOfText = (text: string | null) => (text === null ? null : crc32(text));

export const crcOfObject = ({ object_id, name }: Pick<ObjectRow, 'object_id' | 'name'>) =>
  crcOf([object_id, name]);

export function crcOfLock(lock: LockRow): number | null {
  const facts = [lock.lock_mode, lock.retain_until, lock.locked_until, lock.legal_hold];
  return facts.every((fact) => fact === null) ? null : crcOf(facts);
}

function crcOfFacts(version: FixedFacts): number {
  const { version_id, size_bytes, etag, mime_type, storage_class } = version;
  const { metadata, created_at, is_null, headers, checksum } = version;
  const first = [version_id, size_bytes, etag, mime_type, storage_class];
  return crcOf([...first, metadata, created_at, is_null, headers, checksum]);
}

/** The checksums that the row should have. */
export function checksumsOf(row: FixedFacts & LockRow & Pick<VersionRow, 'tags' | 'acl'>): VersionChecksums {
  return {
    row_crc: crcOfFacts(row),
    tags_crc: crcOfText(row.tags),
    acl_crc: crcOfText(row.acl),
    lock_crc: crcOfLock(row),
  };
}

/** False: a value of the row was altered. A missing checksum proves nothing. */
export function isSound(row: CheckedRow): boolean {
  const wanted = checksumsOf(row);
  return (
    row.is_linked !== 0 &&
    fits(row.object_crc, crcOfObject(row)) &&
    fits(row.row_crc, wanted.row_crc) &&
    fits(row.tags_crc, wanted.tags_crc) &&
    fits(row.acl_crc, wanted.acl_crc) &&
    fits(row.lock_crc, wanted.lock_crc)
  );
}

const fits = (stored: number | null, wanted: number | null) => stored === null || stored === wanted;

/** `CRC32 FULL_OBJECT` for the JSON of a StoredChecksum. */
export function checksumKind(json: string | null): string | null {
  if (json === null) return null;
  const { algorithm, type }: StoredChecksum = JSON.parse(json);
  return `${algorithm} ${type}`;
}

export function checksumOfKind(kind: string | null): ListedRow['checksum'] {
  const [algorithm, type] = kind?.split(' ') ?? [];
  return algorithm === undefined ? null : { algorithm, type: type as StoredChecksum['type'] };
}
