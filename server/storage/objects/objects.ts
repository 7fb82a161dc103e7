/**
 * Objects and their versions. An object id identifies (bucket, name); each upload is a version.
 * Every change is one commit that also updates the counters. Changes of the same name run one at a
 * time, and each commit also states its expectations, in case another node changes the name.
 */
import { type Call, mayTouch, type Principal } from '../../calls/principal.ts';
import type { Change, Changes } from '../../metadata/change.ts';
import { AppError } from '../../platform/errors.ts';
import type { BlobStore } from '../blobs/blobs.ts';
import { settingsOf } from '../buckets/bucket-settings.ts';
import type { BucketRow } from '../buckets/bucket-sql.ts';
import type { Buckets } from '../buckets/buckets.ts';
import type { DataKeys, Encryption } from '../keys/encryption.ts';
import { type Condition, type Published, present, presentUpload } from '../listing/entries.ts';
import type { Uploaded } from '../schema.ts';
import type { StorageBilling } from '../storage-billing.ts';
import { type ReceivedBytes, Upload, UploadsUnderWay } from '../uploads/upload.ts';
import type { Naming, ObjectChanges, PastVersion, VersionContent } from './object-changes.ts';
import { type LockTime, type Retention, withRetention } from './object-lock.ts';
import type { Fact, ObjectRow, ObjectSql, VersionRow } from './object-sql.ts';
import { metadataBytesOf } from './version-row-sql.ts';

export type { Naming, VersionContent } from './object-changes.ts';

export interface ObjectsDeps {
  readonly changes: Changes;
  readonly objectChanges: ObjectChanges;
  readonly store: ObjectSql;
  readonly buckets: Buckets;
  readonly blobs: BlobStore;
  readonly dataKeys: DataKeys;
  readonly billing: Pick<StorageBilling, 'assertCredit' | 'assertUploads'>;
  /** Throws `out_of_space` unless that many more bytes may be stored. */
  readonly assertSpace: (bytes: number) => void;
  readonly maxObjectBytes: number;
  /** See Upload. */
  readonly maxInlineBytes?: number | undefined;
  readonly lockTime: () => LockTime;
}

export interface Publication {
  readonly bucket: BucketRow;
  readonly content: VersionContent;
  readonly naming: Naming;
  readonly condition?: Condition;
}

export class Objects {
  readonly #deps: ObjectsDeps;
  readonly #underWay: UploadsUnderWay;

  constructor(deps: ObjectsDeps) {
    this.#deps = deps;
    this.#underWay = new UploadsUnderWay((...of) => deps.billing.assertUploads(...of));
  }

  /**
   * `encryption`: default, the bucket's. Throws `bucket_not_found`, `insufficient_credits`,
   * `encryption_key_not_found`. The caller must publish or abort the result.
   */
  async beginUpload(
    principal: Principal,
    bucketName: string,
    encryption?: Encryption,
  ): Promise<{ bucket: BucketRow; upload: Upload; encryption: Encryption }> {
    const bucket = await this.#deps.buckets.find(principal, bucketName);
    this.#deps.buckets.assertNotDeleting(bucket);
    await this.#deps.billing.assertCredit(bucket.account_id);
    const chosen = encryption ?? (await this.encryptionOf(bucket));
    return { bucket, upload: this.receive(bucket, chosen), encryption: chosen };
  }

  /** The encryption of new objects in a bucket. Throws `encryption_key_not_found`. */
  async encryptionOf(bucket: Pick<BucketRow, 'account_id' | 'encryption' | 'settings'>): Promise<Encryption> {
    if (bucket.encryption === 0) return { kind: 'none' };
    const { namedKey } = settingsOf(bucket);
    if (namedKey === undefined) return { kind: 'cloud' };
    const key = await this.#deps.dataKeys.keyring.find(bucket.account_id, namedKey.keyId);
    return { kind: 'named', key };
  }

  /** Receives the bytes of an object or a part. `etagKey`: see Upload. */
  receive(
    { account_id: owner }: Pick<BucketRow, 'account_id'>,
    encryption: Encryption,
    etagKey?: Uint8Array,
  ): Upload {
    const { blobs, dataKeys, assertSpace, maxObjectBytes: maxBytes, maxInlineBytes } = this.#deps;
    const limits = { maxBytes, maxInlineBytes, room: this.#underWay.room(owner) };
    return new Upload({ blobs, dataKeys, assertSpace, owner, encryption, ...limits, etagKey });
  }

  /** Throws `scope_required` when the key's limits do not cover the name. */
  assertMayWrite(principal: Principal, bucket: BucketRow, name: string): void {
    if (mayTouch(principal, bucket.name, name)) return;
    throw new AppError('scope_required', `This key's limits do not cover ${name} in ${bucket.name}`);
  }

  /**
   * Makes the bytes the current version of a name. The change is durable when this resolves to the
   * result of `answer`. Throws the errors of the condition, and `scope_required` for a key that may
   * only append.
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
      return answer(await objectChanges.place(change, { call, bucket, target, naming, content }));
    });
  }

  /**
   * Adds a version or marker from a recovery point to the end of a name's history. `after`: the id
   * of the newest one there; null: there must be none. Throws `precondition_failed` otherwise, and
   * `bucket_not_found`. Resolves with its new id.
   */
  append(
    call: Call,
    { after, ...past }: Omit<PastVersion, 'target'> & { readonly after: string | null },
  ): Promise<string> {
    const { bucket, name } = past;
    const { store, buckets, objectChanges } = this.#deps;
    return objectChanges.inTurn(call, { bucketId: bucket.id, name }, async (change) => {
      buckets.assertNotDeleting(bucket);
      const target = await store.target(bucket.id, name);
      if (!target) throw new AppError('bucket_not_found', `The bucket ${bucket.name} was deleted`);
      const { object } = target;
      const marker = object && (await objectChanges.expectNewest(change, object));
      const newest = marker ?? (object && (await store.newestVersion(object.id, 0)));
      if ((newest?.version_id ?? null) === after) return objectChanges.append(change, { ...past, target });
      throw new AppError('precondition_failed', `${name} now has other versions`);
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
   * Changes the type or metadata of the current version. Throws `object_not_found`, the errors of
   * `condition` and of an upload.
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

  /** Makes the version that `choose` returns current, as a new version with the same bytes. */
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
      const { blob, metadata, mime_type: mimeType, headers, tags, acl } = chosen;
      const isCurrent = chosen.id === current?.id;
      const isSame = isCurrent && metadata === current.metadata && mimeType === current.mime_type;
      if (isSame || blob === null) return present(bucket, object, chosen);
      const { versioning, settings } = bucket;
      const target = { object, previous: current, versioning, settings };
      const naming = { name: object.name, mimeType, metadata, headers, tags, acl };
      const content = this.shared({ ...chosen, blob });
      const placed = { call, bucket, target, naming, content };
      return presentUpload(await objectChanges.place(change, placed));
    });
  }

  /**
   * Replaces the tags or the access control list of a version. Throws `quota_exceeded`,
   * `version_not_found` if it is gone.
   */
  setFact(
    call: Call,
    version: Pick<ObjectRow, 'object_id' | 'name'> & Pick<VersionRow, 'id'>,
    { bucket, fact }: { readonly bucket: Pick<BucketRow, 'id' | 'account_id'>; readonly fact: Fact },
  ): Promise<void> {
    const { store, changes, objectChanges } = this.#deps;
    return changes.run(call, async (change) => {
      const row = await store.version(version.id);
      if (row === undefined) throw versionGone();
      objectChanges.forgetAfter(change, version.object_id);
      const sizeBytes = metadataBytesOf({ ...row, ...fact, name: version.name });
      change.add(store.setFact(row, fact, sizeBytes), 'retry');
      await objectChanges.countMetadata(change, bucket, sizeBytes - row.metadata_bytes);
    });
  }

  /**
   * Changes the lock of a version. `bypass`: despite GOVERNANCE. Throws `object_locked` for a
   * weaker lock, `version_not_found` if the version is gone.
   */
  setLock(
    call: Call,
    version: Pick<ObjectRow, 'object_id'> & Pick<VersionRow, 'id'>,
    wanted:
      | { readonly retention: Retention | null; readonly bypass: boolean }
      | { readonly legalHold: boolean },
  ): Promise<void> {
    const { store, changes, objectChanges, lockTime } = this.#deps;
    return changes.run(call, async (change) => {
      const row = await store.version(version.id);
      if (row === undefined) throw versionGone();
      const after =
        'legalHold' in wanted
          ? { ...row, legal_hold: Number(wanted.legalHold) }
          : withRetention(row, wanted.retention, { time: lockTime(), bypass: wanted.bypass });
      objectChanges.forgetAfter(change, version.object_id);
      change.add(store.setLock(row.id, row, after), 'retry');
    });
  }

  /** References the bytes of an existing version, for a new one. */
  shared(version: Pick<VersionRow, 'size_bytes' | 'etag' | 'checksum'> & { blob: number }): VersionContent {
    const { size_bytes: sizeBytes, etag, checksum, blob } = version;
    const addBlob = (change: Change) => {
      change.add(this.#deps.store.shareBlob(blob), 'retry');
      return blob;
    };
    return { sizeBytes, etag, checksum, addBlob };
  }

  /** The bytes received by an upload. */
  received({ sizeBytes, etag, blob, keep }: ReceivedBytes, checksum: string | null = null): VersionContent {
    const addBlob = (change: Change) => {
      change.after(keep);
      return change.add(this.#deps.store.insertBlob(blob), 'retry');
    };
    return { sizeBytes, etag, checksum, addBlob };
  }

  /**
   * The caller's object, live or behind a marker. Throws `object_not_found`, also if it is someone
   * else's.
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

function versionGone(): AppError {
  return new AppError('version_not_found', 'The version was removed by another request');
}

/** One message for a missing object and for another account's object. */
export function notFound(objectId: string): AppError {
  return new AppError('object_not_found', `There is no object ${objectId}`);
}
