/** The contents of a bucket in a recovery point, in the order and portions of the restore. */
import type { Reads } from '../../metadata/metadata.ts';
import { AppError } from '../../platform/errors.ts';
import type { Sealer } from '../../platform/master-key.ts';
import type { BlobStore } from '../blobs/blobs.ts';
import type { BucketRow } from '../buckets/bucket-sql.ts';
import { type EntryRow, ObjectSql } from '../objects/object-sql.ts';
import type { LeftOut, NewBucketRestore } from '../schema.ts';

/** Verified bytes of a point's objects. */
export type PointBlobs = Pick<BlobStore, 'read'>;

/** A recovery point while it is open. */
export interface OpenPoint {
  /** Its metadata. */
  readonly reads: Reads;
  /** Master keys of the point. */
  readonly sealer: Pick<Sealer, 'unseal'>;
  /** Finds the files with these names. Throws `data_corrupted`, `target_unavailable`. */
  blobs(names: readonly string[]): Promise<PointBlobs>;
}

export interface StoragePoints {
  /** The intact points, newest first; times in ms. */
  points(): Promise<readonly { readonly pointId: string; readonly createdAt: number }[]>;
  /**
   * Opens an intact point while `work` runs. Throws `overloaded`, `out_of_space`, `data_corrupted`,
   * `target_unavailable`.
   */
  during<T>(pointId: string, work: (point: OpenPoint) => Promise<T>): Promise<T>;
  /** Whether another restore waits for the recovery point. */
  readonly isWanted: boolean;
}

export interface Source {
  readonly point: OpenPoint;
  readonly bucket: BucketRow;
}

const PAGE = 500;
/** Versions whose files are looked up together: each look-up reads the list of all files. */
const BATCH = 1000;
const BATCH_BYTES = 16 * 2 ** 30;
/** Versions that are compared together. */
const COMPARED = 5000;
/** Maximum refused objects that the response names. */
const NAMED = 20;

/** A position in the steps of a restore. */
export interface Place {
  readonly name: string;
  /** Row id of the version in the point. */
  readonly id: number;
  /** Row id of the last live version in both histories; `newest`: both are equal. */
  readonly met: number | 'newest';
  /** Whether the live history differs. */
  readonly isOther: boolean;
}

export interface Step {
  readonly entry: EntryRow;
  /** `same` and `keep` store nothing and are only counted. */
  readonly kind: 'new' | 'replace' | 'same' | 'keep';
  /** Bytes freed because the new version replaces an unversioned one. */
  readonly freedBytes: number;
  /** The version of a history that it follows, see Objects.append(). */
  readonly after?: string | null;
  readonly place: Place;
}

/** False: no bytes of the version are copied. */
export function isCopied({ kind }: Step): boolean {
  return kind === 'new' || kind === 'replace';
}

/** Counts of a restore, or of its preview. */
export class Tally {
  objects = 0;
  markers = 0;
  bytes = 0;
  /** See version-row-sql.ts. */
  metadataBytes = 0;
  /** Versions with bytes that were processed, restored or not, and their bytes. */
  seen = 0;
  seenBytes = 0;
  freedBytes = 0;
  same = 0;
  kept = 0;
  replaced = 0;
  refused = 0;
  readonly refusals: { name: string; code: string; reason: string }[] = [];
  /** By reason. */
  readonly leftOut = new Map<string, LeftOut>();

  leaveOut(what: LeftOut['what'], reason: string, count = 1): void {
    const before = this.leftOut.get(reason)?.count ?? 0;
    this.leftOut.set(reason, { what, count: before + count, reason });
  }

  see({ entry }: Step): void {
    if (entry.blob === null) return;
    this.seen++;
    this.seenBytes += entry.size_bytes;
  }

  count({ entry, kind, freedBytes }: Step): void {
    if (kind === 'same') this.same++;
    else if (kind === 'keep') this.kept++;
    else if (entry.blob === null) {
      this.markers++;
      this.metadataBytes += entry.metadata_bytes;
    } else {
      this.objects++;
      this.bytes += entry.size_bytes;
      this.metadataBytes += entry.metadata_bytes;
      this.freedBytes += freedBytes;
      if (kind === 'replace') this.replaced++;
    }
  }

  refuse(name: string, { code, message }: AppError): void {
    this.refused++;
    if (this.refusals.length < NAMED) this.refusals.push({ name, code, reason: message });
  }
}

/** Versions of the point, by name, after the name `after`. Throws `object_not_found`, `version_not_found`. */
export async function entriesIn(
  { point, bucket }: Source,
  { name, version_id: versionId, prefix = '' }: NewBucketRestore,
  after: string | undefined,
): Promise<AsyncIterable<EntryRow> | readonly EntryRow[]> {
  const store = new ObjectSql(point.reads);
  if (name === undefined) return pages(store, bucket.id, { prefix, after });
  if (after !== undefined) return [];
  const object = await store.named(bucket.id, name);
  if (object === undefined || (versionId === undefined && object.current === null)) {
    throw new AppError('object_not_found', `The recovery point has no object ${name} in ${bucket.name}`);
  }
  const version =
    versionId === undefined
      ? await store.version(object.current ?? 0)
      : await store.versionById(object.id, versionId);
  if (version === undefined || version.blob === null) {
    throw new AppError('version_not_found', `The recovery point has no version ${versionId} of ${name}`);
  }
  return [{ ...version, name, object: object.id, object_id: object.object_id, is_latest: 0 }];
}

/** Live objects of a bucket in the recovery point whose names begin with `prefix`. */
async function* pages(
  store: ObjectSql,
  bucketId: number,
  { prefix, after }: { readonly prefix: string; readonly after: string | undefined },
): AsyncGenerator<EntryRow> {
  for (let from = { name: after ?? prefix, after: after !== undefined }; ; ) {
    const rows = await store.liveEntries(bucketId, from, PAGE);
    for (const row of rows) {
      if (!row.name.startsWith(prefix)) return;
      yield row;
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return;
    from = { name: last.name, after: true };
    // Reads are synchronous: other requests run between pages.
    await new Promise(setImmediate);
  }
}

/** The next steps, few enough to bound memory. `isLast`: no more follow. */
export async function batchOf(
  steps: AsyncIterable<Step>,
): Promise<{ readonly batch: Step[]; readonly isLast: boolean }> {
  const batch: Step[] = [];
  let copies = 0;
  let bytes = 0;
  for await (const step of steps) {
    batch.push(step);
    if (isCopied(step)) {
      copies++;
      bytes += step.entry.size_bytes;
    }
    const isFull = copies === BATCH || bytes >= BATCH_BYTES || batch.length === COMPARED;
    if (isFull) return { batch, isLast: false };
  }
  return { batch, isLast: true };
}
