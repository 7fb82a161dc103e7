/** Deletes a bucket with all in it, some versions at a time, each step an ordinary durable commit. */
import type { Call, Principal } from '../calls/principal.ts';
import { isAppError } from '../platform/errors.ts';
import { type Buckets, limitedKey } from './buckets.ts';
import type { ObjectSql } from './object-sql.ts';
import type { Objects } from './objects.ts';
import type { Bucket } from './schema.ts';

const AT_ONCE = 64;
const TRIES = 10;

export class BucketEmptier {
  readonly #deps: { buckets: Buckets; objects: Objects; store: ObjectSql };

  constructor(deps: { buckets: Buckets; objects: Objects; store: ObjectSql }) {
    this.#deps = deps;
  }

  /** Empties and removes the bucket, in which nothing is stored meanwhile. Throws what empty() does. */
  async remove(call: Call, bucketName: string): Promise<Bucket> {
    const { principal } = call;
    const { buckets } = this.#deps;
    return buckets.whileLeaving(await buckets.find(principal, bucketName), async () => {
      for (let tries = 1; ; tries++) {
        await this.empty(principal, bucketName);
        try {
          return await buckets.removeEmpty(call, bucketName);
        } catch (error) {
          // An upload was being committed already.
          if (!isAppError(error, 'bucket_not_empty') || tries === TRIES) throw error;
        }
      }
    });
  }

  /** Interrupted, it may be called again. Throws `bucket_not_found`, `scope_required`. */
  async empty(principal: Principal, bucketName: string): Promise<void> {
    const { buckets, objects, store } = this.#deps;
    // A limited key could not delete the names beyond its limits, so it is refused before the first delete.
    if (principal.bucketLimits !== null) throw limitedKey();
    const bucket = await buckets.find(principal, bucketName);
    for (;;) {
      const rows = await store.objectIds(bucket.id, AT_ONCE);
      if (rows.length === 0) return;
      await Promise.all(rows.map((row) => objects.removeOldest(principal, row.object_id).catch(ignoreGone)));
    }
  }
}

/** Someone else deleted it first. */
function ignoreGone(error: unknown): void {
  if (!isAppError(error, 'object_not_found')) throw error;
}
