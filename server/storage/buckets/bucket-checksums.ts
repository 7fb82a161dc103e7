/**
 * Checksums of the rows of buckets, as row-checksums.ts has them for objects. A flipped bit in a policy, or
 * in what says whether versions are kept, would give or destroy what nobody meant to, so a damaged row is
 * refused.
 */
import { crc32 } from 'node:zlib';
import { AppError } from '../../platform/errors.ts';

/** These stay as the bucket was made. */
interface BucketFacts {
  readonly name: string;
  readonly region: string;
  readonly created_at: number;
}

/** Its owner changes these, always together with the checksum. */
export interface BucketModes {
  readonly versioning: number;
  readonly encryption: number;
  readonly settings: string | null;
}

export interface BucketChecksums {
  /** Null: a row of an earlier version, which the scrub has not seen. */
  readonly row_crc: number | null;
  readonly settings_crc: number | null;
}

export type CheckedBucket = BucketFacts & BucketModes & BucketChecksums;

export const crcOfBucket = ({ name, region, created_at }: BucketFacts) =>
  crc32(JSON.stringify([name, region, created_at]));

export const crcOfModes = ({ versioning, encryption, settings }: BucketModes) =>
  crc32(settings ?? '', crc32(`${versioning},${encryption},`));

/** False: a value of the row is not what was written. A missing checksum proves nothing. */
export function isSoundBucket(row: CheckedBucket): boolean {
  const { row_crc, settings_crc } = row;
  return (
    (row_crc === null || row_crc === crcOfBucket(row)) &&
    (settings_crc === null || settings_crc === crcOfModes(row))
  );
}

/** The refusal of a row that is damaged. */
export function damagedBucket(row: Pick<BucketFacts, 'name'>): AppError {
  return new AppError('data_corrupted', `The settings of the bucket ${row.name} are damaged`, {
    hint: 'List and download its objects over the REST API, store them in a new bucket, then delete this one; or restore it from an earlier recovery point',
  });
}
