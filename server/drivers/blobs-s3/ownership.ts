/**
 * The mark that identifies the cloud whose blobs a bucket contains. Nothing is stored in a bucket,
 * or removed from it, before its mark was found to be this cloud's.
 */
import { randomName } from '../../platform/ids.ts';
import { isS3Fault, s3Fault } from '../s3-client/s3-fault.ts';
import { bodyOf, type S3Objects } from '../s3-client/s3-objects.ts';
import type { S3Limits } from '../s3-client/s3-requests.ts';
import { BLOBS } from './sealed-blob.ts';

/** The key of the mark, below the prefix. */
const MARK = 'cloudlet.json';
/** Name prefix of the object that tests the permissions. */
const PROBE = 'cloudlet-probe-';
/** Minimum time between checks of the mark before removals, ms. */
const SEEN_MS = 60_000;

export interface OwnershipDeps {
  readonly objects: S3Objects;
  readonly cloudId: string;
  /** Whether a bucket without a mark may be claimed: not if this cloud's blobs must already be in it. */
  readonly mayMark: boolean;
  /** ms, monotonic. */
  readonly now: () => number;
}

export class Ownership {
  readonly #deps: OwnershipDeps;
  #seenAt = Number.NEGATIVE_INFINITY;

  constructor(deps: OwnershipDeps) {
    this.#deps = deps;
  }

  /**
   * Marks an empty bucket as this cloud's, and tests the operations of a cloud in it. Rejects with
   * a BlobFault: `foreign` if it has another cloud's mark, or blobs and no mark.
   */
  async claim(limits?: S3Limits): Promise<void> {
    const { objects, cloudId, mayMark } = this.#deps;
    const found = await readMark(objects, limits);
    if (found === undefined) {
      if (!mayMark) throw s3Fault('foreign', 'the bucket has no objects of this cloud');
      for await (const _ of objects.list(BLOBS, limits)) {
        throw s3Fault('foreign', `the bucket has blobs, but no ${MARK} that names their cloud`);
      }
      await tryOut(objects, limits);
      const mark = Buffer.from(`${JSON.stringify({ cloud_id: cloudId })}\n`);
      await objects.put(MARK, bodyOf(mark), limits).catch((error: unknown) => {
        // Another cloud was first; the following check reports it.
        if (!isS3Fault(error, 'exists')) throw error;
      });
    } else await tryOut(objects, limits);
    await this.assertOurs(limits);
  }

  /** Rejects with a BlobFault, `foreign` if the mark belongs to another cloud. */
  async assertOurs(limits?: S3Limits): Promise<void> {
    const { objects, cloudId, now } = this.#deps;
    const found = await readMark(objects, limits);
    this.#seenAt = found === cloudId ? now() : Number.NEGATIVE_INFINITY;
    if (found === cloudId) return;
    if (found === undefined)
      throw s3Fault('foreign', `the object ${MARK}, which names the cloud, is missing`);
    throw s3Fault('foreign', `the bucket belongs to the cloud ${found}, and this one is ${cloudId}`);
  }

  /** Like assertOurs(), at most once a minute. */
  async assertStillOurs(limits?: S3Limits): Promise<void> {
    if (this.#deps.now() - this.#seenAt > SEEN_MS) await this.assertOurs(limits);
  }
}

/** The cloud id in the bucket's mark; undefined: no mark. Rejects with a BlobFault. */
export async function readMark(objects: S3Objects, limits?: S3Limits): Promise<string | undefined> {
  const text = await objects.text(MARK, limits);
  if (text === undefined) return undefined;
  try {
    const { cloud_id: id } = JSON.parse(text) as { cloud_id?: unknown };
    return typeof id === 'string' ? id.slice(0, 60) : 'unknown';
  } catch {
    return 'unknown';
  }
}

/** Stores, reads and removes a small object. Rejects with a BlobFault. */
export async function tryOut(objects: S3Objects, limits?: S3Limits): Promise<void> {
  const key = `${PROBE}${randomName(12)}`;
  const content = randomName(64);
  await objects.put(key, bodyOf(Buffer.from(content)), limits);
  const found = await objects.text(key, limits);
  await objects.remove(key, limits);
  if (found !== content) throw s3Fault('refused', 'the bucket returned different bytes than were stored');
  if ((await objects.text(key, limits)) !== undefined) {
    throw s3Fault('refused', 'the bucket still lists an object after its removal');
  }
}
