/**
 * Objects and their versions. An object id stands for (bucket, name); each upload is a version. Every change
 * is one commit that also updates the counters; changes of the same name run one at a time, and each commit
 * states its expectations, so that nothing is lost even if that were not enough.
 */
import { type Call, mayTouch, type Principal } from '../calls/principal.ts';
import type { Change, Changes, Recorder } from '../metadata/change.ts';
import type { RowIdOf } from '../metadata/metadata.ts';
import type { Clock } from '../platform/clock.ts';
import { KeyedMutex } from '../platform/concurrency.ts';
import { AppError } from '../platform/errors.ts';
import { newId } from '../platform/ids.ts';
import { assertMayReplace } from './append-only.ts';
import type { BlobStore } from './blobs.ts';
import type { BucketRow } from './bucket-sql.ts';
import type { Buckets } from './buckets.ts';
import { type Condition, type Published, present, presentUpload } from './entries.ts';
import type { HotContents } from './hot-contents.ts';
import {
  markerOf,
  type ObjectRow,
  type ObjectSql,
  type Pointed,
  type UploadTarget,
  type VersionRow,
} from './object-sql.ts';
import { type Deleted, type Uploaded, VERSIONING } from './schema.ts';
import type { StorageBilling } from './storage-billing.ts';
import { type ReceivedBytes, Upload } from './upload.ts';

export interface ObjectsDeps {
  readonly changes: Changes;
  readonly objectChanges: ObjectChanges;
  readonly store: ObjectSql;
  readonly buckets: Buckets;
  readonly blobs: BlobStore;
  readonly wrapKey: (dataKey: Uint8Array) => Uint8Array;
  readonly billing: Pick<StorageBilling, 'assertCredit'>;
  /** Throws `out_of_space` unless that many bytes more may be stored. */
  readonly assertSpace: (bytes: number) => void;
  readonly maxObjectBytes: number;
}

/** Name, type and metadata of a version, and what only S3 clients send. */
export interface Naming {
  readonly name: string;
  readonly mimeType: string;
  /** Text of a JSON object, or null. */
  readonly metadata: string | null;
  /** Same as in a VersionRow. */
  readonly headers?: string | null;
  readonly tags?: string | null;
}

/** The bytes of a new version. */
export interface VersionContent {
  readonly sizeBytes: number;
  readonly etag: string;
  /** Same as in a VersionRow. */
  readonly checksum?: string | null;
  /** Adds the statements that store or share the bytes; returns the row of the blob. */
  readonly addBlob: (
    change: Change,
    version: { readonly versionId: string; readonly isNull: boolean },
  ) => number | RowIdOf;
  /** Bytes that were counted for the account before; default: none. */
  readonly countedBytes?: number;
}

export interface Publication {
  readonly bucket: BucketRow;
  readonly content: VersionContent;
  readonly naming: Naming;
  readonly condition?: Condition;
}

export class Objects {
  readonly #deps: ObjectsDeps;

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
    return { bucket, upload: this.receive(bucket) };
  }

  /**
   * Takes the bytes of an object or a part in. `encryption` is the bucket's, or that of a multipart upload.
   */
  receive({ account_id: owner, encryption }: Pick<BucketRow, 'account_id' | 'encryption'>): Upload {
    const { blobs, wrapKey, assertSpace, maxObjectBytes: maxBytes } = this.#deps;
    return new Upload({ blobs, wrapKey, assertSpace, owner, encrypt: encryption === 1, maxBytes });
  }

  /** Throws `scope_required` when the key's limits do not cover the name. */
  assertMayWrite(principal: Principal, bucket: BucketRow, name: string): void {
    if (mayTouch(principal, bucket.name, name)) return;
    throw new AppError('scope_required', `This key's limits do not cover ${name} in ${bucket.name}`);
  }

  /**
   * Makes the bytes the current version of a name. The change is durable when this resolves to what `answer`
   * makes of it. Throws what the condition throws, and `scope_required` for a key that may only append.
   */
  publish<T>(
    call: Call,
    { bucket, content, naming, condition }: Publication,
    answer: (version: Published) => T,
  ): Promise<T> {
    const { store, buckets, objectChanges } = this.#deps;
    return objectChanges.inTurn(call, { bucketId: bucket.id, name: naming.name }, async (change) => {
      buckets.assertNotDeleting(bucket);
      const target = await store.target(bucket.id, naming.name);
      if (!target) throw new AppError('bucket_not_found', `The bucket ${bucket.name} was deleted`);
      condition?.(target.previous);
      const { principal } = call;
      return answer(await objectChanges.place(change, { principal, bucket, target, naming, content }));
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
    const { principal } = call;
    const { store, buckets, billing, objectChanges } = this.#deps;
    const found = await this.findFor(principal, objectId);
    return objectChanges.inTurn(call, { bucketId: found.bucket_id, name: found.name }, async (change) => {
      const object = await this.findFor(principal, objectId);
      const bucket = await buckets.find(principal, object.bucket);
      buckets.assertNotDeleting(bucket);
      await billing.assertCredit(bucket.account_id);
      const current = object.current === null ? undefined : await store.version(object.current);
      const chosen = await choose(object, current);
      const { blob, metadata, mime_type: mimeType, headers, tags } = chosen;
      const isCurrent = chosen.id === current?.id;
      const isSame = isCurrent && metadata === current.metadata && mimeType === current.mime_type;
      if (isSame || blob === null) return present(bucket, object, chosen);
      const target = { object, previous: current, versioning: bucket.versioning };
      const naming = { name: object.name, mimeType, metadata, headers, tags };
      const content = this.shared({ ...chosen, blob });
      const placed = { principal, bucket, target, naming, content };
      return presentUpload(await objectChanges.place(change, placed));
    });
  }

  /** Replaces the tags of a version. Throws `version_not_found` if it is gone. */
  setTags(
    call: Call,
    version: Pick<ObjectRow, 'object_id'> & Pick<VersionRow, 'id'>,
    tags: string | null,
  ): Promise<void> {
    const { store, changes, objectChanges } = this.#deps;
    return changes.run(call, (change) => {
      objectChanges.forgetAfter(change, version.object_id);
      change.expect(
        store.setTags(version.id, tags),
        () => new AppError('version_not_found', 'The version was removed meanwhile'),
      );
    });
  }

  /** The bytes of an existing version, for a new one. */
  shared(version: Pick<VersionRow, 'size_bytes' | 'etag' | 'checksum'> & { blob: number }): VersionContent {
    const { size_bytes: sizeBytes, etag, checksum, blob } = version;
    const addBlob = (change: Change) => {
      change.add(this.#deps.store.shareBlob(blob), 'retry');
      return blob;
    };
    return { sizeBytes, etag, checksum, addBlob };
  }

  /** The bytes that an upload received. */
  received(
    { sizeBytes, md5: etag, blob, keep }: ReceivedBytes,
    checksum: string | null = null,
  ): VersionContent {
    const addBlob = (change: Change) => {
      change.after(keep);
      return change.add(this.#deps.store.insertBlob(blob), 'retry');
    };
    return { sizeBytes, etag, checksum, addBlob };
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
}

export interface ObjectChangesDeps {
  readonly changes: Changes;
  readonly store: ObjectSql;
  readonly clock: Clock;
  readonly billing: Pick<StorageBilling, 'bytesKept'>;
  readonly hot: HotContents;
  /** Time for which the file of a removed blob is kept, for running downloads. */
  readonly garbageGraceMs: number;
}

interface PlacedVersion {
  readonly principal: Principal;
  readonly bucket: BucketRow;
  readonly naming: Naming;
  readonly content: VersionContent;
  readonly target: UploadTarget;
}

/** The changes of a bucket's counters. */
interface BucketDelta {
  /** Live objects and their bytes. */
  readonly objects: number;
  readonly bytes: number;
  /** Versions with bytes, live ones included. */
  readonly versions: number;
  readonly totalBytes: number;
  /** Bytes among them that the account was charged for before. */
  readonly countedBytes?: number;
}

/** The common steps of all changes of a name. */
export class ObjectChanges {
  readonly #deps: ObjectChangesDeps;
  readonly #locks = new KeyedMutex();

  constructor(deps: ObjectChangesDeps) {
    this.#deps = deps;
  }

  /** Builds the change again if another writer came first. */
  inTurn<T>(
    recorder: Recorder,
    { bucketId, name }: { readonly bucketId: number; readonly name: string },
    build: (change: Change) => Promise<T>,
  ): Promise<T> {
    return this.#locks.run(`${bucketId}/${name}`, () => this.#deps.changes.run(recorder, build));
  }

  /**
   * Adds a version and makes it current; without versioning it replaces the null version. Throws
   * `scope_required` where the principal may only append.
   */
  async place(
    change: Change,
    { principal, bucket, target, naming, content }: PlacedVersion,
  ): Promise<Published> {
    const { store, clock } = this.#deps;
    const { object, previous, versioning } = target;
    const { sizeBytes, etag, checksum = null } = content;
    const replaced = await this.replaced(target);
    assertMayReplace(principal, target, replaced);
    const objectId = object?.object_id ?? newId('obj', clock);
    const { name, mimeType, metadata, headers = null, tags = null } = naming;
    const version = {
      versionId: newId('ver', clock),
      createdAt: clock.now(),
      isNull: versioning !== VERSIONING.on,
    };
    const labels = { mimeType, metadata, headers, tags, checksum, storageClass: 'STANDARD' };
    this.forgetAfter(change, objectId);
    const blob = content.addBlob(change, version);
    const row =
      object?.id ?? change.add(store.insertObject({ objectId, bucketId: bucket.id, name }), 'retry');
    const added = { ...version, ...labels, object: row, blob, sizeBytes, etag };
    const versionRow = change.add(store.insertVersion(added), 'retry');
    const pointed = { version: versionRow, sizeBytes, at: version.createdAt };
    change.add(store.setCurrent(row, object?.current ?? null, pointed), 'retry');
    if (replaced) this.dropVersion(change, replaced);
    await this.count(change, bucket, {
      objects: previous ? 0 : 1,
      bytes: sizeBytes - (previous?.size_bytes ?? 0),
      versions: replaced === undefined || replaced.blob === null ? 1 : 0,
      totalBytes: sizeBytes - (replaced?.size_bytes ?? 0),
      countedBytes: content.countedBytes ?? 0,
    });
    return { objectId, bucket, name, sizeBytes, etag, ...version, ...labels };
  }

  /** The version or marker that a new null version takes the place of. */
  async replaced({
    object,
    previous,
    versioning,
  }: UploadTarget): Promise<Pick<VersionRow, 'id' | 'blob' | 'size_bytes'> | undefined> {
    if (object === undefined || versioning === VERSIONING.on) return undefined;
    if (previous?.is_null === 1 || versioning === VERSIONING.off) return previous;
    return this.#deps.store.nullVersion(object.id);
  }

  addMarker(
    change: Change,
    {
      id,
      object_id,
      current,
    }: { readonly id: number | RowIdOf; readonly object_id: string; readonly current: number | null },
    { versioning }: BucketRow,
  ): Deleted {
    const { store, clock } = this.#deps;
    const isNull = versioning !== VERSIONING.on;
    const marker = { versionId: newId('ver', clock), createdAt: clock.now(), isNull };
    change.add(store.setCurrent(id, current, nothingSince(marker.createdAt)), 'retry');
    change.add(store.insertVersion(markerOf(id, marker)), 'retry');
    return { id: object_id, deleted: true, version_id: marker.versionId, is_delete_marker: true };
  }

  dropVersion(change: Change, version: Pick<VersionRow, 'id' | 'blob'>): void {
    const { store, clock, garbageGraceMs } = this.#deps;
    change.add(store.deleteVersion(version.id), 'retry');
    if (version.blob === null) return;
    change.addAll(store.releaseBlob(version.blob, clock.now() + garbageGraceMs), 'retry');
  }

  /** Updates the counters of bucket and account, and the usage. */
  async count(change: Change, bucket: BucketRow, delta: BucketDelta): Promise<void> {
    const { id, account_id } = bucket;
    const { objects, bytes, versions, totalBytes, countedBytes = 0 } = delta;
    const kept = totalBytes - countedBytes;
    const add = {
      object_count: objects,
      size_bytes: bytes,
      version_count: versions,
      total_bytes: totalBytes,
    };
    change.increment({ table: 'buckets', id, add }, 'retry');
    if (kept === 0) return;
    change.increment({ table: 'accounts', id: account_id, add: { storage_bytes: kept } }, 'retry');
    change.addAll(await this.#deps.billing.bytesKept(bucket, kept), 'retry');
  }

  /** Removes the object from the cache after the commit, also if its outcome is unknown. */
  forgetAfter(change: Change, objectId: string): void {
    change.after(() => this.#deps.hot.forget(objectId));
  }
}

/** The state of an object without a live version. */
export const nothingSince = (at: number): Pointed => ({ version: null, sizeBytes: 0, at });

/** One text for a missing object and for another account's. */
export function notFound(objectId: string): AppError {
  return new AppError('object_not_found', `There is no object ${objectId}`);
}
