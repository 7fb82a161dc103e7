/** Removes objects and versions; versioned buckets keep the bytes behind a delete marker. */
import type { Call, Principal } from '../../calls/principal.ts';
import { BACKGROUND, type Change } from '../../metadata/change.ts';
import type { Statement } from '../../metadata/metadata.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { BucketRow } from '../buckets/bucket-sql.ts';
import type { Buckets } from '../buckets/buckets.ts';
import type { Condition } from '../listing/entries.ts';
import type { Deleted } from '../schema.ts';
import { VERSIONING } from '../schema.ts';
import { nothingSince, type ObjectChanges } from './object-changes.ts';
import { assertMayRemove } from './object-lock.ts';
import { NULL_VERSION, type ObjectRow, type ObjectSql, type VersionRow } from './object-sql.ts';
import { notFound, type Objects } from './objects.ts';
import { markerBytesOf } from './version-row-sql.ts';

export interface RemovalsDeps {
  readonly objects: Objects;
  readonly objectChanges: ObjectChanges;
  readonly store: ObjectSql;
  readonly buckets: Buckets;
  readonly clock: Clock;
}

/** Names and selects the version to remove. */
interface Removal {
  /** `null`: the null version. Default: the object. */
  readonly versionId?: string | undefined;
  readonly condition?: Condition | undefined;
  /** A delete without a version id adds a marker if versioning is or was enabled, as in S3. */
  readonly isStrict?: boolean;
  /** Despite retention in the mode GOVERNANCE. */
  readonly bypass?: boolean;
}

/** The outcome of a removal. */
export interface RemovedNamed {
  readonly answer: Deleted;
  /** The removed version was a delete marker. */
  readonly wasMarker: boolean;
}

/** Versions of one name removed by lifecycle rules. */
export interface Expired {
  /** The live version; older versions; a delete marker without versions. */
  readonly kind: 'current' | 'noncurrent' | 'marker';
  /** Version ids, at most 64. */
  readonly ids: readonly string[];
  /** Checked again for each version in the commit. */
  readonly isDue: (bucket: BucketRow, version: VersionRow & { readonly name: string }) => boolean;
  /** For the commit that removes this many. */
  readonly note: (count: number) => Statement;
}

interface Removed {
  readonly bucket: BucketRow;
  readonly object: ObjectRow;
  readonly condition: Condition | undefined;
}

/** Maximum versions of one name removed in one commit: more would delay other commits. */
const REMOVED_AT_ONCE = 64;

export class Removals {
  readonly #deps: RemovalsDeps;

  constructor(deps: RemovalsDeps) {
    this.#deps = deps;
  }

  /**
   * Without a version id: in a versioned bucket adds a delete marker, elsewhere removes the object
   * (if older versions remain, they stay behind a marker). With one: removes that version or marker
   * permanently. `condition` is checked against the version to remove. Throws `object_not_found`,
   * `version_not_found`, `object_locked`, and `scope_required` for a key that may only append if
   * this could not be undone.
   */
  async remove(call: Call, objectId: string, removal: Removal = {}): Promise<Deleted> {
    const { principal } = call;
    const found = await this.#deps.objects.findFor(principal, objectId);
    return this.#deps.objectChanges.inTurn(
      call,
      { bucketId: found.bucket_id, name: found.name },
      async (change) => {
        const object = await this.#deps.objects.findFor(principal, objectId);
        const bucket = await this.#deps.buckets.find(principal, object.bucket);
        assertMayRemove(principal, bucket, removal.versionId);
        if (removal.versionId === undefined && object.current === null) throw notFound(objectId);
        return (await this.#remove(change, { call, bucket, object }, removal)).answer;
      },
    );
  }

  /** Deletes a live object within a change that has its turn. Throws `object_locked`, `scope_required`. */
  async removeWithin(
    change: Change,
    call: Call,
    object: ObjectRow & { readonly bucket: string },
  ): Promise<void> {
    const bucket = await this.#deps.buckets.find(call.principal, object.bucket);
    assertMayRemove(call.principal, bucket, undefined);
    await this.#remove(change, { call, bucket, object }, {});
  }

  /**
   * Removes by name, as S3 does: a missing object is no error, and if versioning is or was enabled
   * a delete without a version id always adds a marker. null: there was no object. Throws
   * `version_not_found`, `object_locked`, and `scope_required` if the key's limits do not cover the
   * name or it may only append.
   */
  async removeNamed(
    call: Call,
    bucketName: string,
    { name, ...removal }: Removal & { readonly name: string },
  ): Promise<RemovedNamed | null> {
    const { store, buckets, clock } = this.#deps;
    const { id: bucketId } = await buckets.find(call.principal, bucketName);
    return this.#deps.objectChanges.inTurn(call, { bucketId, name }, async (change) => {
      const bucket = await buckets.find(call.principal, bucketName);
      this.#deps.objects.assertMayWrite(call.principal, bucket, name);
      assertMayRemove(call.principal, bucket, removal.versionId);
      const object = await store.named(bucketId, name);
      if (object !== undefined)
        return this.#remove(change, { call, bucket, object }, { ...removal, isStrict: true });
      removal.condition?.(undefined);
      if (removal.versionId !== undefined || bucket.versioning === VERSIONING.off) return null;
      buckets.assertNotDeleting(bucket);
      const objectId = newId('obj', clock);
      const id = change.add(store.insertObject({ objectId, bucketId, name }), 'retry');
      const marked = { id, object_id: objectId, current: null, name };
      const answer = this.#deps.objectChanges.addMarker(change, marked, bucket);
      this.#deps.objectChanges.logWrite(change, call, bucket, name);
      await this.#deps.objectChanges.countMetadata(change, bucket, markerBytesOf(name));
      return { answer, wasMarker: false };
    });
  }

  async #remove(
    change: Change,
    { call, bucket, object }: Omit<Removed, 'condition'> & { readonly call: Call },
    { versionId, condition, isStrict = false, bypass = false }: Removal,
  ): Promise<RemovedNamed> {
    this.#deps.objectChanges.forgetAfter(change, object.object_id);
    this.#deps.objectChanges.logWrite(change, call, bucket, object.name);
    const removed = { bucket, object, condition };
    if (versionId !== undefined) return this.#removeVersion(change, { ...removed, versionId, bypass });
    return { answer: await this.#removeCurrent(change, removed, isStrict), wasMarker: false };
  }

  async #removeCurrent(
    change: Change,
    { bucket, object, condition }: Removed,
    isStrict: boolean,
  ): Promise<Deleted> {
    const { store, clock } = this.#deps;
    const { id, object_id, current } = object;
    const marker = await this.#deps.objectChanges.expectNewest(change, object);
    const live = current === null ? undefined : await this.#versionOf(current, object_id);
    condition?.(live, marker);
    const { versioning } = bucket;
    const target = { object, previous: live, versioning };
    const dropped = await this.#deps.objectChanges.replaced(target);
    const isOldest = (await store.newestVersion(id, dropped?.id ?? 0)) === undefined;
    const isMarked = versioning === VERSIONING.on || !isOldest || (isStrict && versioning !== VERSIONING.off);
    if (dropped && isMarked) this.#deps.objectChanges.dropVersion(change, dropped);
    let deleted: Deleted = { id: object_id, deleted: true, version_id: null, is_delete_marker: false };
    if (isMarked) deleted = this.#deps.objectChanges.addMarker(change, object, bucket);
    else {
      change.add(store.setCurrent(id, current, nothingSince(clock.now())), 'retry');
      if (dropped) this.#deps.objectChanges.dropVersion(change, dropped);
      change.add(store.deleteObject(id), 'retry');
    }
    await this.#deps.objectChanges.count(change, bucket, {
      objects: live ? -1 : 0,
      bytes: -(live?.size_bytes ?? 0),
      versions: dropped === undefined || dropped.blob === null ? 0 : -1,
      totalBytes: -(dropped?.size_bytes ?? 0),
      metadataBytes: (isMarked ? markerBytesOf(object.name) : 0) - (dropped?.metadata_bytes ?? 0),
      isRemoval: live !== undefined,
    });
    return deleted;
  }

  async #removeVersion(
    change: Change,
    { bucket, object, versionId, condition, bypass }: Removed & { versionId: string; bypass: boolean },
  ): Promise<RemovedNamed> {
    const { store } = this.#deps;
    const version =
      versionId === NULL_VERSION
        ? await store.nullVersion(object.id)
        : await store.versionById(object.id, versionId);
    if (!version) throw new AppError('version_not_found', `The object has no version ${versionId}`);
    if (version.blob === null) condition?.(undefined, version);
    else condition?.(version);
    const before = object.current === null ? undefined : await store.version(object.current);
    const isOlder = before !== undefined && before.id !== version.id;
    const rest = isOlder ? before : await store.newestVersion(object.id, version.id);
    // The newest remaining version becomes live, unless it is a marker.
    const current = rest === undefined || rest.blob === null ? null : rest.id;
    const after = current === null ? undefined : rest;
    // Another node may remove the rest at once, which would be current without being there.
    const newest = { newest: rest?.id ?? 0, except: version.id };
    if (isOlder) change.add(store.expectCurrent(object), 'retry');
    else change.addAll(store.expectNewest(object, newest), 'retry');
    if (current !== object.current) {
      const at = rest?.created_at ?? this.#deps.clock.now();
      const pointed = { version: current, sizeBytes: after?.size_bytes ?? 0, at, listed: after ?? null };
      change.add(store.setCurrent(object.id, object.current, pointed), 'retry');
    }
    this.#deps.objectChanges.dropVersion(change, version, bypass);
    if (!rest) change.add(store.deleteObject(object.id), 'retry');
    await this.#deps.objectChanges.count(change, bucket, {
      objects: Number(after !== undefined) - Number(before !== undefined),
      bytes: (after?.size_bytes ?? 0) - (before?.size_bytes ?? 0),
      versions: version.blob === null ? 0 : -1,
      totalBytes: -version.size_bytes,
      metadataBytes: -version.metadata_bytes,
    });
    const { version_id } = version;
    const answer = { id: object.object_id, deleted: true, version_id, is_delete_marker: false } as const;
    return { answer, wasMarker: version.blob === null };
  }

  /**
   * Removes the oldest versions and markers of an object permanently, many in one commit, and with the last
   * of them the object. Throws `object_not_found`, and `object_locked` if one of these may not be removed.
   */
  async removeOldest(principal: Principal, objectId: string): Promise<void> {
    const { store, buckets, clock } = this.#deps;
    const found = await this.#deps.objects.findFor(principal, objectId);
    await this.#deps.objectChanges.inTurn(
      BACKGROUND,
      { bucketId: found.bucket_id, name: found.name },
      async (change) => {
        const object = await this.#deps.objects.findFor(principal, objectId);
        const bucket = await buckets.findAny(principal, object.bucket);
        const oldest = await store.oldestVersions(object.id, REMOVED_AT_ONCE + 1);
        const removed = oldest.slice(0, REMOVED_AT_ONCE);
        // The current version is the newest, so it is removed last, with the object.
        const live = removed.find(({ id }) => id === object.current);
        this.#deps.objectChanges.forgetAfter(change, objectId);
        change.add(store.expectCurrent(object), 'retry');
        if (live) change.add(store.setCurrent(object.id, live.id, nothingSince(clock.now())), 'retry');
        for (const version of removed) this.#deps.objectChanges.dropVersion(change, version);
        if (removed.length === oldest.length) change.add(store.deleteObject(object.id), 'retry');
        await this.#deps.objectChanges.count(change, bucket, {
          objects: live ? -1 : 0,
          bytes: -(live?.size_bytes ?? 0),
          versions: -removed.filter(({ blob }) => blob !== null).length,
          totalBytes: -removed.reduce((sum, version) => sum + version.size_bytes, 0),
          metadataBytes: -removed.reduce((sum, version) => sum + version.metadata_bytes, 0),
        });
      },
    );
  }

  /**
   * Removes what lifecycle rules selected, if it is unchanged: a live version like a delete without
   * a version id, others permanently. Throws `bucket_not_found`, `object_locked`.
   */
  async expire(
    principal: Principal,
    { bucketName, name }: { readonly bucketName: string; readonly name: string },
    { kind, ids, isDue, note }: Expired,
  ): Promise<void> {
    const { store, buckets, objectChanges } = this.#deps;
    const { id: bucketId } = await buckets.find(principal, bucketName);
    return objectChanges.inTurn(BACKGROUND, { bucketId, name }, async (change) => {
      const bucket = await buckets.find(principal, bucketName);
      const object = await store.named(bucketId, name);
      if (object === undefined) return;
      const found = await Promise.all(ids.map((id) => store.versionById(object.id, id)));
      const due = found.filter((version) => version !== undefined && isDue(bucket, { ...version, name }));
      const versions = due as VersionRow[];
      const [first] = versions;
      const newest = await store.newestVersion(object.id, 0);
      if (first === undefined || newest === undefined) return;
      objectChanges.forgetAfter(change, object.object_id);
      const removed = { bucket, object, condition: undefined };
      if (kind === 'noncurrent') {
        const older = versions.filter(({ id }) => id !== newest.id && id !== object.current);
        await this.#dropOlder(change, removed, older);
        change.add(note(older.length));
        return;
      }
      if (first.id !== newest.id) return;
      if (kind === 'current') {
        if (object.current !== first.id) return;
        await this.#removeCurrent(change, removed, true);
      } else {
        const isAlone = (await store.newestVersion(object.id, first.id)) === undefined;
        if (first.blob !== null || !isAlone) return;
        await this.#removeVersion(change, { ...removed, versionId: first.version_id, bypass: false });
      }
      change.add(note(1));
    });
  }

  /** Removes older versions, so the live version does not change. */
  async #dropOlder(
    change: Change,
    { bucket, object }: Removed,
    versions: readonly VersionRow[],
  ): Promise<void> {
    // One of these versions is live by now if another node has removed the newer ones.
    change.add(this.#deps.store.expectCurrent(object), 'retry');
    for (const version of versions) this.#deps.objectChanges.dropVersion(change, version);
    await this.#deps.objectChanges.count(change, bucket, {
      objects: 0,
      bytes: 0,
      versions: -versions.filter(({ blob }) => blob !== null).length,
      totalBytes: -versions.reduce((sum, version) => sum + version.size_bytes, 0),
      metadataBytes: -versions.reduce((sum, version) => sum + version.metadata_bytes, 0),
    });
  }

  async #versionOf(id: number, objectId: string): Promise<VersionRow> {
    const version = await this.#deps.store.version(id);
    if (!version) throw notFound(objectId);
    return version;
  }
}
