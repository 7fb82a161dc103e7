/** Deletes a bucket with its contents, a batch of versions at a time, each an ordinary durable commit. */
import type { Call, Principal } from '../../calls/principal.ts';
import { isAppError } from '../../platform/errors.ts';
import { assertRemovable, type LockTime } from '../objects/object-lock.ts';
import type { ObjectSql } from '../objects/object-sql.ts';
import type { Removals } from '../objects/removals.ts';
import type { Bucket } from '../schema.ts';
import type { PartUploads } from '../uploads/part-uploads.ts';
import { limitedKey } from './bucket-errors.ts';
import { settingsOf } from './bucket-settings.ts';
import type { BucketRow } from './bucket-sql.ts';
import { isSoundBucket } from './bucket-sql.ts';
import type { Buckets } from './buckets.ts';

interface BucketEmptierDeps {
  readonly buckets: Buckets;
  readonly removals: Removals;
  readonly partUploads: PartUploads;
  readonly store: ObjectSql;
  readonly lockTime: () => LockTime;
}

/** Objects removed concurrently. */
const AT_ONCE = 64;
const TRIES = 10;
/** Versions whose locks are checked in one read. */
const LOCKS_AT_ONCE = 1000;

export class BucketEmptier {
  readonly #deps: BucketEmptierDeps;

  constructor(deps: BucketEmptierDeps) {
    this.#deps = deps;
  }

  /**
   * Empties and removes the bucket, while uploads to it are refused. Throws the errors of empty();
   * nothing is removed if a version is locked.
   */
  async remove(call: Call, bucketName: string): Promise<Bucket> {
    const { principal } = call;
    const { buckets } = this.#deps;
    const bucket = await buckets.findAny(principal, bucketName);
    if (principal.bucketLimits === null) await this.#assertUnlocked(bucket);
    return this.#remove(call, bucket, () => this.empty(principal, bucketName));
  }

  #remove(call: Call, bucket: BucketRow, prepare: () => Promise<void>): Promise<Bucket> {
    const { buckets } = this.#deps;
    return buckets.whileLeaving(bucket, async () => {
      for (let tries = 1; ; tries++) {
        await prepare();
        try {
          return await buckets.removeEmpty(call, bucket.name);
        } catch (error) {
          // An upload was being committed already.
          if (!isAppError(error, 'bucket_not_empty') || tries === TRIES) throw error;
        }
      }
    });
  }

  /** Removes an empty bucket; uploads in progress end. Throws `bucket_not_empty`. */
  async removeEmpty(call: Call, bucketName: string): Promise<Bucket> {
    const { buckets, partUploads, store } = this.#deps;
    const bucket = await buckets.findAny(call.principal, bucketName);
    const isEmpty = (await store.objectIds(bucket.id, 1)).length === 0;
    if (!isEmpty || call.principal.bucketLimits !== null) return buckets.removeEmpty(call, bucketName);
    return this.#remove(call, bucket, () => partUploads.abortAll(call.principal, bucket));
  }

  /** Throws `object_locked`. The commit that removes a version detects a lock that was set later. */
  async #assertUnlocked(bucket: BucketRow): Promise<void> {
    // The settings of a damaged row may be wrong, so the locks of all versions are checked.
    if (isSoundBucket(bucket) && settingsOf(bucket).lock === undefined) return;
    const { store, lockTime } = this.#deps;
    let last = { name: '', id: 0 };
    for (;;) {
      const rows = await store.locks(bucket.id, last, LOCKS_AT_ONCE);
      const time = lockTime();
      for (const row of rows) assertRemovable(row, time, false);
      const end = rows.at(-1);
      if (rows.length < LOCKS_AT_ONCE || end === undefined) return;
      last = { name: end.name, id: end.id };
      // Reads are synchronous: other requests run between pages.
      await new Promise(setImmediate);
    }
  }

  /**
   * May be called again after an interruption. Throws `bucket_not_found`, `scope_required`, `object_locked`.
   */
  async empty(principal: Principal, bucketName: string): Promise<void> {
    const { buckets, removals, partUploads, store } = this.#deps;
    // A limited key could not delete names outside its limits, so it is refused before the first delete.
    if (principal.bucketLimits !== null) throw limitedKey();
    const bucket = await buckets.findAny(principal, bucketName);
    for (;;) {
      const rows = await store.objectIds(bucket.id, AT_ONCE);
      if (rows.length === 0) return partUploads.abortAll(principal, bucket);
      await Promise.all(rows.map((row) => removals.removeOldest(principal, row.object_id).catch(ignoreGone)));
    }
  }
}

/** Ignores an object that another request deleted first. */
function ignoreGone(error: unknown): void {
  if (!isAppError(error, 'object_not_found')) throw error;
}
