/**
 * SQL of a new version, or delete marker, of an object, and the number of bytes that its row counts
 * as. Rows without contents use disk space too, so names and metadata count as stored, in quotas
 * and in charges. Migration 38 has the same sum in SQL.
 */
import type { RowIdOf, Statement } from '../../metadata/metadata.ts';
import { checksumsOf } from '../blobs/row-checksums.ts';
import { UNLOCKED } from './object-lock.ts';
import type { NewVersion, VersionRow } from './object-rows.ts';

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
  return { sql: SQL, params: [version.object, version.blob, ...COLUMNS.map((column) => row[column])] };
}

/** The version row of a delete marker. */
export function markerOf(
  { object, name }: { readonly object: number | RowIdOf; readonly name: string },
  { versionId, createdAt, isNull }: Pick<NewVersion, 'versionId' | 'createdAt' | 'isNull'>,
): NewVersion {
  const nothing = {
    blob: null,
    sizeBytes: 0,
    metadataBytes: sizeOfText(name),
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

/** Bytes of UTF-8. */
export const sizeOfText = (text: string | null) => (text === null ? 0 : Buffer.byteLength(text));

export function metadataBytesOf({ name, mime_type, metadata, headers, tags, acl }: Texts): number {
  const texts = [name, mime_type, metadata, headers, tags, acl];
  return texts.reduce((sum, text) => sum + sizeOfText(text), 0);
}
