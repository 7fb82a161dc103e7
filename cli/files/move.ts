/** Moves an object within the cloud in one commit, so that exactly one place has it at any time. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Cloud, CloudError } from '../../sdk/index.ts';
import type { RemoteLocation } from './locations.ts';

const ATTEMPTS = 7;
const FIRST_PAUSE_MS = 150;
const LONGEST_PAUSE_MS = 60_000;
const PAGE = 1000;

export interface Movable extends RemoteLocation {
  /** Id of the object; if known, it saves a call. */
  readonly id?: string | undefined;
}

/**
 * The objects of a prefix with their ids, so that moving many takes one call each. undefined: the
 * API does not show them to the caller, but S3 may. Throws CloudError.
 */
export async function movableBelow(
  cloud: Cloud,
  bucket: string,
  prefix: string,
): Promise<AsyncIterable<{ key: string; size: number; etag: string; id: string }> | undefined> {
  const list = cloud.listObjects(bucket, prefix === '' ? {} : { prefix });
  const read = (cursor?: string) => again(() => list.page({ cursor, limit: PAGE }));
  const first = await unless([403, 404], () => read());
  if (first === undefined) return undefined;
  return (async function* () {
    for (let page = first; ; ) {
      for (const { name: key, size, etag, id } of page.items) yield { key, size, etag, id };
      if (page.cursor === null) return;
      page = await read(page.cursor);
    }
  })();
}

/**
 * Moves an object, replacing one with the target name. False: the API does not know the object or one of the
 * buckets, or hides them from the caller. This is the case for a bucket of another account, and for every
 * object of an older cloud; S3 may still copy it. Throws CloudError: an object that may not be removed is not
 * copied either.
 */
export async function moveWithin(cloud: Cloud, from: Movable, to: RemoteLocation): Promise<boolean> {
  const id = from.id ?? (await unless([403, 404], () => findId(cloud, from)));
  if (id === undefined) return false;
  const place = { bucket: to.bucket, name: to.key, overwrite: true };
  // Safe to repeat: the response to the first call may have been lost.
  const options = { idempotencyKey: randomUUID() };
  const moved = await unless([404], () => again(() => cloud.moveObject(id, place, options)));
  return moved !== undefined;
}

async function findId(cloud: Cloud, { bucket, key }: RemoteLocation): Promise<string | undefined> {
  // Longer names with this prefix come later.
  const { items } = await again(() => cloud.listObjects(bucket, { prefix: key }).page({ limit: 1 }));
  const [object] = items;
  return object?.name === key ? object.id : undefined;
}

/** The result, or undefined if refused with one of these statuses. */
async function unless<T>(statuses: readonly number[], work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CloudError && statuses.includes(error.status)) return undefined;
    throw error;
  }
}

const PASSING = new Set([0, 429, 502, 503, 504]);

/** Retries the call after network errors and retryable refusals. */
async function again<T>(call: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof CloudError) || !PASSING.has(error.status) || attempt === ATTEMPTS) throw error;
      const asked = (error.retryAfterSeconds ?? 0) * 1000;
      const random = Math.random() * FIRST_PAUSE_MS * 2 ** attempt;
      await sleep(Math.min(LONGEST_PAUSE_MS, asked + random));
    }
  }
}
