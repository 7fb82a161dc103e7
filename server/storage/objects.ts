/**
 * Objects and their versions. An object id stands for (bucket, name); each upload is a version. Every change
 * is one commit that also updates the counters; changes of the same name run one at a time, and each commit
 * states its expectations, so that nothing is lost even if that were not enough.
 */
import { type Call, mayTouch, type Principal } from '../calls/principal.ts';
import { BACKGROUND, type Change, type Changes, type Recorder } from '../metadata/change.ts';
import type { Clock } from '../platform/clock.ts';
import { KeyedMutex } from '../platform/concurrency.ts';
import { AppError } from '../platform/errors.ts';
import { newId } from '../platform/ids.ts';
import type { BlobStore } from './blobs.ts';
import type { BucketRow } from './bucket-sql.ts';
import type { Buckets } from './buckets.ts';
import { type Condition, present, presentUpload } from './entries.ts';
import type { HotContents } from './hot-contents.ts';
import { markerOf, type NewVersion, type ObjectRow, type ObjectSql, type VersionRow } from './object-sql.ts';
import type { Deleted, Uploaded } from './schema.ts';
import type { StorageBilling } from './storage-billing.ts';
import { type ReceivedBytes, Upload } from './upload.ts';
import { assertObjectName } from './upload-fields.ts';

export interface ObjectsDeps {
  readonly changes: Changes;
  readonly store: ObjectSql;
  readonly buckets: Buckets;
  readonly blobs: BlobStore;
  readonly clock: Clock;
  readonly wrapKey: (dataKey: Uint8Array) => Uint8Array;
  readonly billing: Pick<StorageBilling, 'assertCredit' | 'bytesKept'>;
  /** Throws `out_of_space` unless that many bytes more may be stored. */
  readonly assertSpace: (bytes: number) => void;
  readonly maxObjectBytes: number;
  readonly hot: HotContents;
  /** Time for which the file of a removed blob is kept, for running downloads. */
  readonly garbageGraceMs: number;
}

/** Name, type and metadata of a version. */
export interface Naming {
  readonly name: string;
  readonly mimeType: string;
  /** Text of a JSON object, or null. */
  readonly metadata: string | null;
}

export interface Publication {
  readonly bucket: BucketRow;
  readonly received: ReceivedBytes;
  readonly naming: Naming;
  readonly condition?: Condition;
}

interface Removal {
  /** Default: the object. */
  readonly versionId?: string | undefined;
  readonly condition?: Condition;
}

interface Removed {
  readonly bucket: BucketRow;
  readonly object: ObjectRow;
  readonly condition: Condition | undefined;
}

interface Pointing {
  readonly next: NewVersion;
  /** Row id of the version that is expected to be current. */
  readonly from: number | null;
  readonly previous: Pick<VersionRow, 'id' | 'blob' | 'size_bytes'> | undefined;
  readonly keeps: boolean;
}

/** The changes of a bucket's counters. */
interface BucketDelta {
  /** Live objects and their bytes. */
  readonly objects: number;
  readonly bytes: number;
  /** Versions with bytes, live ones included. */
  readonly versions: number;
  readonly totalBytes: number;
}

/** Maximum versions of one name removed in one commit: more would delay other commits. */
const REMOVED_AT_ONCE = 64;

export class Objects {
  readonly #deps: ObjectsDeps;
  readonly #locks = new KeyedMutex();

  constructor(deps: ObjectsDeps) {
    this.#deps = deps;
  }

  /** Throws `bucket_not_found`, `insufficient_credits`. The caller must publish or abort the result. */
  async beginUpload(
    principal: Principal,
    bucketName: string,
  ): Promise<{ bucket: BucketRow; upload: Upload }> {
    const bucket = await this.#deps.buckets.find(principal, bucketName);
    this.#deps.buckets.assertNotDeleting(bucket);
    await this.#deps.billing.assertCredit(bucket.account_id);
    const { blobs, wrapKey, assertSpace, maxObjectBytes: maxBytes } = this.#deps;
    return {
      bucket,
      upload: new Upload({
        blobs,
        wrapKey,
        assertSpace,
        owner: bucket.account_id,
        encrypt: bucket.encryption === 1,
        maxBytes,
      }),
    };
  }

  /** Throws `invalid_object_name`, or `scope_required` when the key's limits do not cover the name. */
  assertMayWrite(principal: Principal, bucket: BucketRow, name: string): void {
    assertObjectName(name);
    if (mayTouch(principal, bucket.name, name)) return;
    throw new AppError('scope_required', `This key's limits do not cover ${name} in ${bucket.name}`);
  }

  /** Makes the received bytes the current version of a name. The change is durable when this resolves. */
  publish(call: Recorder, { bucket, received, naming, condition }: Publication): Promise<Uploaded> {
    const { store, clock, buckets } = this.#deps;
    return this.#inTurn(call, { bucketId: bucket.id, name: naming.name }, async (change) => {
      buckets.assertNotDeleting(bucket);
      const target = await store.target(bucket.id, naming.name);
      if (!target) throw new AppError('bucket_not_found', `The bucket ${bucket.name} was deleted`);
      const { object, previous, versioning: keeps } = target;
      condition?.(previous);
      const version = { versionId: newId('ver', clock), createdAt: clock.now(), ...naming, received };
      const objectId = object?.object_id ?? newId('obj', clock);
      change.after(received.keep);
      this.#forgetAfter(change, objectId);
      const blob = change.add(store.insertBlob(received.blob), 'retry');
      const named = { objectId, bucketId: bucket.id, name: naming.name };
      const row = object?.id ?? change.add(store.insertObject(named), 'retry');
      const { sizeBytes, md5: etag } = received;
      const next = { ...version, object: row, blob, sizeBytes, etag, storageClass: 'STANDARD' };
      await this.#point(change, bucket, { next, from: object?.current ?? null, previous, keeps });
      return presentUpload(bucket, objectId, version);
    });
  }

  /** Makes a new version the current one, and drops the one before unless the bucket keeps it. */
  async #point(change: Change, bucket: BucketRow, { next, from, previous, keeps }: Pointing): Promise<void> {
    const { store } = this.#deps;
    const { object, sizeBytes, createdAt: at } = next;
    const replaced = keeps ? undefined : previous;
    const version = change.add(store.insertVersion(next), 'retry');
    change.add(store.setCurrent(object, from, { version, sizeBytes, at }), 'retry');
    if (replaced) this.#dropVersion(change, replaced);
    await this.#count(change, bucket, {
      objects: previous ? 0 : 1,
      bytes: sizeBytes - (previous?.size_bytes ?? 0),
      versions: replaced ? 0 : 1,
      totalBytes: sizeBytes - (replaced?.size_bytes ?? 0),
    });
  }

  /**
   * Makes an earlier version current again. Does nothing if it is current. Throws `object_not_found`,
   * `version_not_found`, and the errors of an upload.
   */
  restore(
    call: Call,
    { objectId, versionId }: { readonly objectId: string; readonly versionId: string },
  ): Promise<Uploaded> {
    return this.#renew(call, objectId, async (object) => {
      const old = await this.#deps.store.versionById(object.id, versionId);
      if (old !== undefined && old.blob !== null) return old;
      throw new AppError(
        'version_not_found',
        `The object has no version ${versionId} that can be downloaded`,
      );
    });
  }

  /**
   * Changes the type or metadata of the current version. Throws `object_not_found`, what `condition` throws,
   * and the errors of an upload.
   */
  relabel(
    call: Call,
    objectId: string,
    {
      condition,
      ...labels
    }: Partial<Pick<VersionRow, 'mime_type' | 'metadata'>> & { readonly condition?: Condition },
  ): Promise<Uploaded> {
    return this.#renew(call, objectId, async (_object, current) => {
      if (current === undefined) throw notFound(objectId);
      condition?.(current);
      return { ...current, ...labels };
    });
  }

  /** Makes the result of `choose` current, as a new version that references the same bytes. */
  async #renew(
    call: Call,
    objectId: string,
    choose: (object: ObjectRow, current: VersionRow | undefined) => Promise<VersionRow>,
  ): Promise<Uploaded> {
    const { store, buckets, billing, clock } = this.#deps;
    const found = await this.findFor(call.principal, objectId);
    return this.#inTurn(call, { bucketId: found.bucket_id, name: found.name }, async (change) => {
      const object = await this.findFor(call.principal, objectId);
      const bucket = await buckets.find(call.principal, object.bucket);
      buckets.assertNotDeleting(bucket);
      await billing.assertCredit(bucket.account_id);
      const current = object.current === null ? undefined : await store.version(object.current);
      const chosen = await choose(object, current);
      const { blob, metadata, mime_type: mimeType, size_bytes: sizeBytes } = chosen;
      const isSame =
        chosen.id === current?.id && metadata === current.metadata && mimeType === current.mime_type;
      if (isSame || blob === null) return present(bucket, object, chosen);
      const [versionId, createdAt] = [newId('ver', clock), clock.now()];
      const { etag, storage_class: storageClass } = chosen;
      this.#forgetAfter(change, objectId);
      change.add(store.shareBlob(blob), 'retry');
      const labels = { sizeBytes, etag, mimeType, storageClass, metadata };
      const next = { versionId, createdAt, object: object.id, blob, ...labels };
      const keeps = bucket.versioning === 1;
      await this.#point(change, bucket, { next, from: object.current, previous: current, keeps });
      return present(bucket, object, { ...chosen, version_id: versionId, created_at: createdAt });
    });
  }

  #dropVersion(change: Change, version: Pick<VersionRow, 'id' | 'blob'>): void {
    const { store, clock, garbageGraceMs } = this.#deps;
    change.add(store.deleteVersion(version.id), 'retry');
    if (version.blob === null) return;
    change.addAll(store.releaseBlob(version.blob, clock.now() + garbageGraceMs), 'retry');
  }

  /**
   * Without a version id: in a versioned bucket adds a delete marker, elsewhere removes the object (if older
   * versions remain from versioned times, they stay behind a marker). With one: removes that version or
   * marker permanently. `condition` is checked against the version to remove. Throws `object_not_found`,
   * `version_not_found`.
   */
  async remove(call: Call, objectId: string, removal: Removal = {}): Promise<Deleted> {
    const { versionId, condition } = removal;
    const found = await this.findFor(call.principal, objectId);
    return this.#inTurn(call, { bucketId: found.bucket_id, name: found.name }, async (change) => {
      const object = await this.findFor(call.principal, objectId);
      const bucket = await this.#deps.buckets.find(call.principal, object.bucket);
      this.#forgetAfter(change, objectId);
      if (versionId !== undefined)
        return this.#removeVersion(change, { bucket, object, versionId, condition });
      if (object.current === null) throw notFound(objectId);
      return this.#removeCurrent(change, { bucket, object, current: object.current, condition });
    });
  }

  async #removeCurrent(
    change: Change,
    { bucket, object, current, condition }: Removed & { current: number },
  ): Promise<Deleted> {
    const { store } = this.#deps;
    const version = await this.#versionOf(current, object.object_id);
    condition?.(version);
    const older = await store.newestVersion(object.id, current);
    const keeps = bucket.versioning === 1;
    const marker = keeps || older !== undefined;
    const markerId = newId('ver', this.#deps.clock);
    const at = this.#deps.clock.now();
    change.add(store.setCurrent(object.id, current, nothingSince(at)), 'retry');
    if (marker) change.add(store.insertVersion(markerOf(object.id, markerId, at)), 'retry');
    if (!keeps) this.#dropVersion(change, version);
    if (!marker) change.add(store.deleteObject(object.id), 'retry');
    await this.#count(change, bucket, {
      objects: -1,
      bytes: -version.size_bytes,
      versions: keeps ? 0 : -1,
      totalBytes: keeps ? 0 : -version.size_bytes,
    });
    return {
      id: object.object_id,
      deleted: true,
      version_id: marker ? markerId : null,
      is_delete_marker: marker,
    };
  }

  async #removeVersion(
    change: Change,
    { bucket, object, versionId, condition }: Removed & { versionId: string },
  ): Promise<Deleted> {
    const { store } = this.#deps;
    const version = await store.versionById(object.id, versionId);
    if (!version) throw new AppError('version_not_found', `The object has no version ${versionId}`);
    condition?.(version.blob === null ? undefined : version);
    const rest = await store.newestVersion(object.id, version.id);
    // The newest remaining version becomes live, unless it is a marker.
    const current = rest === undefined || rest.blob === null ? null : rest.id;
    const before = object.current === null ? undefined : await store.version(object.current);
    const after = current === null ? undefined : await store.version(current);
    if (current !== object.current) {
      const at = rest?.created_at ?? this.#deps.clock.now();
      const pointed = { version: current, sizeBytes: after?.size_bytes ?? 0, at };
      change.add(store.setCurrent(object.id, object.current, pointed), 'retry');
    }
    this.#dropVersion(change, version);
    if (!rest) change.add(store.deleteObject(object.id), 'retry');
    await this.#count(change, bucket, {
      objects: Number(after !== undefined) - Number(before !== undefined),
      bytes: (after?.size_bytes ?? 0) - (before?.size_bytes ?? 0),
      versions: version.blob === null ? 0 : -1,
      totalBytes: version.blob === null ? 0 : -version.size_bytes,
    });
    return { id: object.object_id, deleted: true, version_id: versionId, is_delete_marker: false };
  }

  /**
   * Removes the oldest versions and markers of an object permanently, many in one commit, and with the last
   * of them the object. Throws `object_not_found`.
   */
  async removeOldest(principal: Principal, objectId: string): Promise<void> {
    const { store, buckets, clock } = this.#deps;
    const found = await this.findFor(principal, objectId);
    await this.#inTurn(BACKGROUND, { bucketId: found.bucket_id, name: found.name }, async (change) => {
      const object = await this.findFor(principal, objectId);
      const bucket = await buckets.find(principal, object.bucket);
      const oldest = await store.oldestVersions(object.id, REMOVED_AT_ONCE + 1);
      const removed = oldest.slice(0, REMOVED_AT_ONCE);
      // The current version is the newest, so it is removed last, with the object.
      const live = removed.find(({ id }) => id === object.current);
      this.#forgetAfter(change, objectId);
      if (live) change.add(store.setCurrent(object.id, live.id, nothingSince(clock.now())), 'retry');
      for (const version of removed) this.#dropVersion(change, version);
      if (removed.length === oldest.length) change.add(store.deleteObject(object.id), 'retry');
      await this.#count(change, bucket, {
        objects: live ? -1 : 0,
        bytes: -(live?.size_bytes ?? 0),
        versions: -removed.filter(({ blob }) => blob !== null).length,
        totalBytes: -removed.reduce((sum, version) => sum + version.size_bytes, 0),
      });
    });
  }

  /** Updates the counters of bucket and account, and the usage. */
  async #count(change: Change, bucket: BucketRow, delta: BucketDelta): Promise<void> {
    const { id, account_id } = bucket;
    const { objects, bytes, versions, totalBytes } = delta;
    const add = {
      object_count: objects,
      size_bytes: bytes,
      version_count: versions,
      total_bytes: totalBytes,
    };
    change.increment({ table: 'buckets', id, add }, 'retry');
    if (totalBytes === 0) return;
    change.increment({ table: 'accounts', id: account_id, add: { storage_bytes: totalBytes } }, 'retry');
    change.addAll(await this.#deps.billing.bytesKept(bucket, totalBytes), 'retry');
  }

  /** Removes the object from the cache after the commit, also if its outcome is unknown. */
  #forgetAfter(change: Change, objectId: string): void {
    change.after(() => this.#deps.hot.forget(objectId));
  }

  async #versionOf(id: number, objectId: string): Promise<VersionRow> {
    const version = await this.#deps.store.version(id);
    if (!version) throw notFound(objectId);
    return version;
  }

  /**
   * The caller's object, live or behind a marker. Throws `object_not_found`, also when it is someone else's.
   */
  async findFor(
    principal: Principal,
    objectId: string,
  ): Promise<ObjectRow & { account_id: number; bucket: string }> {
    const object = await this.#deps.store.findById(objectId);
    if (!object || object.account_id !== principal.accountId) throw notFound(objectId);
    if (!mayTouch(principal, object.bucket, object.name)) throw notFound(objectId);
    return object;
  }

  /** Builds the change again if another writer came first. */
  #inTurn<T>(
    recorder: Recorder,
    { bucketId, name }: { readonly bucketId: number; readonly name: string },
    build: (change: Change) => Promise<T>,
  ): Promise<T> {
    return this.#locks.run(`${bucketId}/${name}`, () => this.#deps.changes.run(recorder, build));
  }
}

const nothingSince = (at: number) => ({ version: null, sizeBytes: 0, at });

/** One text for a missing object and for another account's. */
export function notFound(objectId: string): AppError {
  return new AppError('object_not_found', `There is no object ${objectId}`);
}
