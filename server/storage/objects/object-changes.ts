/**
 * The common steps of all changes of a name: one at a time, the versions added and removed, and the
 * counters.
 */
import { type Call, onlyAppends } from '../../calls/principal.ts';
import type { Change, Changes, Recorder } from '../../metadata/change.ts';
import type { RowIdOf } from '../../metadata/metadata.ts';
import type { Clock } from '../../platform/clock.ts';
import { KeyedMutex } from '../../platform/concurrency.ts';
import { newId } from '../../platform/ids.ts';
import { defaultRetention, settingsOf } from '../buckets/bucket-settings.ts';
import type { BucketRow } from '../buckets/bucket-sql.ts';
import type { Published } from '../listing/entries.ts';
import { type Deleted, VERSIONING } from '../schema.ts';
import type { StorageBilling } from '../storage-billing.ts';
import type { HotContents } from './hot-contents.ts';
import {
  assertMayReplace,
  assertRemovable,
  type LockRow,
  type LockTime,
  newLock,
  sameLock,
  UNLOCKED,
  type WantedLock,
} from './object-lock.ts';
import type { ObjectRow, ObjectSql, Pointed, UploadTarget, VersionRow } from './object-sql.ts';
import { markerOf, metadataBytesOf } from './version-row-sql.ts';

/** Name, type and metadata of a version, and fields that only S3 clients send. */
export interface Naming {
  readonly name: string;
  readonly mimeType: string;
  /** Text of a JSON object, or null. */
  readonly metadata: string | null;
  /** Same as in a VersionRow. */
  readonly headers?: string | null;
  readonly tags?: string | null;
  readonly acl?: string | null;
  /** Default: the bucket's lock. */
  readonly lock?: WantedLock | undefined;
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
  /** Bytes that are already counted for the account; default: 0. */
  readonly countedBytes?: number;
}

export interface ObjectChangesDeps {
  readonly changes: Changes;
  readonly store: ObjectSql;
  readonly clock: Clock;
  readonly billing: Pick<StorageBilling, 'bytesKept' | 'bytesStored'>;
  readonly hot: HotContents;
  /** Time for which the file of a removed blob is kept, for running downloads. */
  readonly garbageGraceMs: number;
  readonly lockTime: () => LockTime;
}

interface PlacedVersion {
  readonly call: Pick<Call, 'principal' | 'data'>;
  readonly bucket: BucketRow;
  readonly naming: Naming;
  readonly content: VersionContent;
  readonly target: UploadTarget;
}

/** An earlier version or marker that becomes the newest of its name. */
export interface PastVersion {
  readonly bucket: BucketRow;
  readonly name: string;
  readonly target: UploadTarget;
  /** Time, labels and lock are kept. */
  readonly past: VersionRow;
  /** null: a marker. */
  readonly content: VersionContent | null;
}

/** Fields of a version that its removal needs. */
type Droppable = Pick<VersionRow, 'id' | 'blob' | 'metadata_bytes' | keyof LockRow>;

/** An object that gets a delete marker. */
interface Marked extends Pick<ObjectRow, 'object_id' | 'current' | 'name'> {
  readonly id: number | RowIdOf;
}

type LoggedBucket = Pick<BucketRow, 'account_id' | 'name' | 'settings'>;

/** The changes of a bucket's counters. */
interface BucketDelta {
  /** Live objects and their bytes. */
  readonly objects: number;
  readonly bytes: number;
  /** Versions with bytes, live ones included. */
  readonly versions: number;
  readonly totalBytes: number;
  /** See version-row-sql.ts; includes markers. */
  readonly metadataBytes: number;
  /** Bytes among them already charged to the account. */
  readonly countedBytes?: number;
  /** The change is a removal: no quota refuses it, even if its delete marker has more bytes. */
  readonly isRemoval?: boolean;
}

/** The common steps of all changes to an object name. */
export class ObjectChanges {
  readonly #deps: ObjectChangesDeps;
  readonly #locks = new KeyedMutex();

  constructor(deps: ObjectChangesDeps) {
    this.#deps = deps;
  }

  /** Builds the change again if another writer was first. */
  inTurn<T>(
    recorder: Recorder,
    { bucketId, name }: { readonly bucketId: number; readonly name: string },
    build: (change: Change) => Promise<T>,
  ): Promise<T> {
    return this.#locks.run(`${bucketId}/${name}`, () => this.#deps.changes.run(recorder, build));
  }

  /** Like inTurn(), for several names in one commit. */
  inTurns<T>(
    recorder: Recorder,
    places: readonly { readonly bucketId: number; readonly name: string }[],
    build: (change: Change) => Promise<T>,
  ): Promise<T> {
    // Always in the same order, to avoid deadlocks.
    const keys = [...new Set(places.map(({ bucketId, name }) => `${bucketId}/${name}`))].sort();
    const work = () => this.#deps.changes.run(recorder, build);
    return keys.reduceRight<() => Promise<T>>((inner, key) => () => this.#locks.run(key, inner), work)();
  }

  /**
   * Adds a version and makes it current; without versioning it replaces the null version. Throws
   * `scope_required` where the principal may only append.
   */
  async place(change: Change, { call, bucket, target, naming, content }: PlacedVersion): Promise<Published> {
    const { store, clock, lockTime } = this.#deps;
    const { object, previous, versioning } = target;
    const { sizeBytes, etag, checksum = null } = content;
    if (object !== undefined) await this.expectNewest(change, object);
    const replaced = await this.replaced(target);
    if (onlyAppends(call.principal)) assertMayReplace(target, replaced);
    const objectId = object?.object_id ?? newId('obj', clock);
    const { name, mimeType, metadata, headers = null, tags = null, acl = null } = naming;
    const version = {
      versionId: newId('ver', clock),
      createdAt: clock.now(),
      isNull: versioning !== VERSIONING.on,
    };
    const labels = { mimeType, metadata, headers, tags, checksum, acl, storageClass: 'STANDARD' };
    const metadataBytes = metadataBytesOf({ name, mime_type: mimeType, metadata, headers, tags, acl });
    const isPlain = naming.lock === undefined && target.settings === null;
    const lock = isPlain ? UNLOCKED : newLock(naming.lock ?? {}, defaultRetention(target), lockTime());
    if (object !== undefined) this.forgetAfter(change, objectId);
    const blob = content.addBlob(change, version);
    const row =
      object?.id ?? change.add(store.insertObject({ objectId, bucketId: bucket.id, name }), 'retry');
    const added = { ...version, ...labels, lock, object: row, blob, sizeBytes, metadataBytes, etag };
    const versionRow = change.add(store.insertVersion(added), 'retry');
    const listed = { etag, storage_class: labels.storageClass, checksum };
    const pointed = { version: versionRow, sizeBytes, at: version.createdAt, listed };
    change.add(store.setCurrent(row, object?.current ?? null, pointed), 'retry');
    if (replaced) this.dropVersion(change, replaced);
    this.logWrite(change, call, { ...bucket, settings: target.settings }, name);
    await this.count(change, bucket, {
      objects: previous ? 0 : 1,
      bytes: sizeBytes - (previous?.size_bytes ?? 0),
      versions: replaced === undefined || replaced.blob === null ? 1 : 0,
      totalBytes: sizeBytes - (replaced?.size_bytes ?? 0),
      metadataBytes: metadataBytes - (replaced?.metadata_bytes ?? 0),
      countedBytes: content.countedBytes ?? 0,
    });
    return { objectId, bucket, name, sizeBytes, etag, ...version, ...labels };
  }

  /** Adds a version or marker unchanged to the history of a name, without removing any. Returns its id. */
  async append(change: Change, { bucket, name, target, past, content }: PastVersion): Promise<string> {
    const { store, clock, lockTime } = this.#deps;
    const { object, previous } = target;
    const versionId = newId('ver', clock);
    const [createdAt, isNull] = [past.created_at, past.is_null === 1];
    const objectId = object?.object_id ?? newId('obj', clock);
    if (object !== undefined) this.forgetAfter(change, objectId);
    const blob = content === null ? null : content.addBlob(change, { versionId, isNull });
    const row =
      object?.id ?? change.add(store.insertObject({ objectId, bucketId: bucket.id, name }), 'retry');
    const { mime_type: mimeType, storage_class: storageClass, metadata, headers, tags, acl } = past;
    const { sizeBytes = 0, etag = '', checksum = null } = content ?? {};
    const lock = sameLock(past, lockTime());
    const labels = { mimeType, storageClass, metadata, headers, tags, acl, checksum };
    const metadataBytes = metadataBytesOf({ ...past, name });
    const added = {
      ...labels,
      metadataBytes,
      versionId,
      object: row,
      blob,
      sizeBytes,
      etag,
      createdAt,
      isNull,
      lock,
    };
    const version = change.add(store.insertVersion(added), 'retry');
    const listed = { etag, storage_class: storageClass, checksum };
    const pointed =
      content === null ? nothingSince(createdAt) : { version, sizeBytes, at: createdAt, listed };
    change.add(store.setCurrent(row, object?.current ?? null, pointed), 'retry');
    await this.count(change, bucket, {
      objects: (content === null ? 0 : 1) - (previous ? 1 : 0),
      bytes: sizeBytes - (previous?.size_bytes ?? 0),
      versions: content === null ? 0 : 1,
      totalBytes: sizeBytes,
      metadataBytes,
    });
    return versionId;
  }

  /** The version or marker that a new null version replaces. */
  async replaced({
    object,
    previous,
    versioning,
  }: Omit<UploadTarget, 'settings'>): Promise<(Droppable & Pick<VersionRow, 'size_bytes'>) | undefined> {
    if (object === undefined || versioning === VERSIONING.on) return undefined;
    if (previous?.is_null === 1 || versioning === VERSIONING.off) return previous;
    return this.#deps.store.nullVersion(object.id);
  }

  /**
   * For a change that adds a version or marker, before its reads of other versions. Behind a marker the
   * pointer stays the same when another node adds one more. Resolves to the newest version or marker, if it
   * is read.
   */
  async expectNewest(
    change: Change,
    object: Pick<ObjectRow, 'id' | 'current'>,
  ): Promise<VersionRow | undefined> {
    if (object.current !== null) return undefined;
    const { store } = this.#deps;
    const newest = await store.newestVersion(object.id, 0);
    change.addAll(store.expectNewest(object, { newest: newest?.id ?? 0, except: 0 }), 'retry');
    return newest;
  }

  addMarker(change: Change, { id, object_id, current, name }: Marked, { versioning }: BucketRow): Deleted {
    const { store, clock } = this.#deps;
    const isNull = versioning !== VERSIONING.on;
    const marker = { versionId: newId('ver', clock), createdAt: clock.now(), isNull };
    change.add(store.setCurrent(id, current, nothingSince(marker.createdAt)), 'retry');
    change.add(store.insertVersion(markerOf({ object: id, name }, marker)), 'retry');
    return { id: object_id, deleted: true, version_id: marker.versionId, is_delete_marker: true };
  }

  /**
   * Every removal of a version ends here. `bypass`: despite GOVERNANCE. Throws `object_locked`
   * while object lock protects it, which the commit checks too.
   */
  dropVersion(change: Change, version: Droppable, bypass = false): void {
    const { store, clock, garbageGraceMs, lockTime } = this.#deps;
    const time = lockTime();
    assertRemovable(version, time, bypass);
    change.add(store.deleteVersion(version, time, bypass), 'retry');
    if (version.blob === null) return;
    change.addAll(store.releaseBlob(version.blob, clock.now() + garbageGraceMs), 'retry');
  }

  /** Adds an audit log entry if the bucket's setting requires it. */
  // biome-ignore lint/complexity/useMaxParams: who wrote what, and where
  logWrite(change: Change, { data }: Pick<Call, 'data'>, bucket: LoggedBucket, name: string): void {
    if (data === undefined || bucket.settings === null || !settingsOf(bucket).dataEvents) return;
    change.addAll(data.wrote({ accountId: bucket.account_id, bucket: bucket.name, name }));
  }

  /** Updates the counters of bucket and account, and the usage. */
  async count(
    change: Change,
    bucket: Pick<BucketRow, 'id' | 'account_id'>,
    delta: BucketDelta,
  ): Promise<void> {
    const { id, account_id } = bucket;
    const {
      objects,
      bytes,
      versions,
      totalBytes,
      metadataBytes,
      countedBytes = 0,
      isRemoval = false,
    } = delta;
    const kept = totalBytes + metadataBytes - countedBytes;
    const add = {
      object_count: objects,
      size_bytes: bytes,
      version_count: versions,
      total_bytes: totalBytes,
      metadata_bytes: metadataBytes,
    };
    change.increment({ table: 'buckets', id, add }, 'retry');
    if (kept === 0) return;
    change.increment({ table: 'accounts', id: account_id, add: { storage_bytes: kept } }, 'retry');
    const { billing } = this.#deps;
    change.addAll(await billing.bytesKept(bucket, kept, { isRemoval }), 'retry');
    change.after(() => billing.bytesStored(account_id, kept));
  }

  /** Counts the bytes of changed metadata; nothing else changes. */
  countMetadata(
    change: Change,
    bucket: Pick<BucketRow, 'id' | 'account_id'>,
    metadataBytes: number,
  ): Promise<void> {
    return this.count(change, bucket, { objects: 0, bytes: 0, versions: 0, totalBytes: 0, metadataBytes });
  }

  /** Removes the object from the cache after the commit, even if its outcome is unknown. */
  forgetAfter(change: Change, objectId: string): void {
    change.after(() => this.#deps.hot.forget(objectId));
  }
}

/** The state of an object without a live version. */
export const nothingSince = (at: number): Pointed => ({ version: null, sizeBytes: 0, at, listed: null });
