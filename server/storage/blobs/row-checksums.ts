/**
 * Checksums of the rows of objects: what a user gave with the bytes (a name, metadata, headers, tags, an ACL,
 * a lock) has none of its own, so a flipped bit in it would be served as data.
 *
 * The facts that never change have one checksum; tags, ACL and lock change by themselves, and have their own.
 * Row ids, by which a row names its bytes and an object its current version, have none: they are held against
 * the rows that they name.
 * CRC-32, as that of bytes in rows: against accidents, not against a person who can write to the metadata.
 */
import { crc32 } from 'node:zlib';
import type { LockRow } from '../objects/object-lock.ts';
import type { ObjectRow, RowChecksums, VersionChecksums, VersionRow } from '../objects/object-rows.ts';

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

/** A version with its object, as the scrub reads it. */
export interface CheckedRow extends FixedFacts, LockRow, RowChecksums, Pick<ObjectRow, 'object_id' | 'name'> {
  readonly id: number;
  readonly tags: string | null;
  readonly acl: string | null;
  /** Row id. */
  readonly object: number;
  /** 0: the version or the bytes do not belong to this row. */
  readonly is_linked: number;
}

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
