/** Copies versions of a recovery point into a live bucket; each copy is all or nothing. */
import type { Principal } from '../../calls/principal.ts';
import { AGELESS } from '../../metadata/ages.ts';
import type { Recorder } from '../../metadata/change.ts';
import type { Reads } from '../../metadata/metadata.ts';
import { AppError } from '../../platform/errors.ts';
import { defaultRetention, settingsOf } from '../buckets/bucket-settings.ts';
import type { BucketRow } from '../buckets/bucket-sql.ts';
import { customerKeyRequired } from '../keys/customer-key.ts';
import { type DataKeys, type Encryption, openDataKeys } from '../keys/encryption.ts';
import { NamedKeySql } from '../keys/named-key-sql.ts';
import { keyNotFound } from '../keys/named-keyring.ts';
import { Downloads, type DownloadsDeps } from '../objects/downloads.ts';
import { HotContents } from '../objects/hot-contents.ts';
import { NamedSql } from '../objects/named-sql.ts';
import type { VersionContent } from '../objects/object-changes.ts';
import { type LockTime, lockOfCopy } from '../objects/object-lock.ts';
import { type ContentRow, type EntryRow, ObjectSql } from '../objects/object-sql.ts';
import type { Objects } from '../objects/objects.ts';
import { PartUploadSql } from '../uploads/part-upload-sql.ts';
import type { OpenPoint } from './point-steps.ts';

export interface PointCopiesDeps extends Pick<DownloadsDeps, 'accessTimes' | 'egress' | 'clock'> {
  /** Live. */
  readonly metadata: Reads;
  readonly objects: Objects;
  readonly dataKeys: DataKeys;
  readonly lockTime: () => LockTime;
}

/** A version in the recovery point and its target. */
export interface Copy {
  readonly principal: Principal;
  readonly record: Recorder['record'];
  /** The bucket in the point. */
  readonly source: BucketRow;
  readonly entry: EntryRow;
  /** Live. */
  readonly bucket: BucketRow;
  readonly how: NewVersion | Appended;
  readonly signal: AbortSignal;
}

/** The version becomes the current one of its name. */
export interface NewVersion {
  /** False: throws `precondition_failed` if a live object has the name. */
  readonly mayReplace: boolean;
}

/** The version or marker is appended unchanged to the history of its name. */
export interface Appended {
  /** See Objects.append(). */
  readonly after: string | null;
  readonly keepsAcl: boolean;
}

export class PointCopies {
  readonly #deps: PointCopiesDeps;
  readonly #point: OpenPoint;
  readonly #parts: PartUploadSql;

  constructor(deps: PointCopiesDeps, point: OpenPoint) {
    this.#deps = deps;
    this.#point = point;
    this.#parts = new PartUploadSql(point.reads);
  }

  /**
   * Finds the files of these versions in the point; the result copies one of them, and resolves
   * with the id of the version that it adds to a history.
   */
  async prepare(entries: readonly EntryRow[]): Promise<(copy: Copy) => Promise<string | undefined>> {
    const names: string[] = [];
    const store = new ObjectSql(this.#point.reads);
    for (const { object_id: objectId, version_id: versionId } of entries) {
      const row = await store.versionContent(objectId, versionId);
      if (row?.upload != null) {
        for (const { blob_name } of await this.#parts.partBlobs(row.upload))
          if (blob_name) names.push(blob_name);
      } else if (row?.blob_name != null) names.push(row.blob_name);
    }
    const blobs = await this.#point.blobs(names);
    const { reads, sealer } = this.#point;
    const keys = openDataKeys(
      reads,
      { seal: sealsNothing, unseal: (...of) => sealer.unseal(...of) },
      AGELESS,
    );
    const downloads = new Downloads({
      ...this.#deps,
      store,
      named: new NamedSql(reads),
      partUploads: this.#parts,
      blobs,
      hot: new HotContents(),
      ages: AGELESS,
      // #encryptionOf() checks that the live named key is enabled.
      dataKeys: { openEnabled: (sealed) => keys.open(sealed) },
      onDamaged: () => {},
      onDamagedRow: () => {},
    });
    return (copy) => this.#copy(downloads, copy);
  }

  async #copy(downloads: Downloads, copy: Copy): Promise<string | undefined> {
    const { principal, record, entry, bucket, how } = copy;
    const { objects } = this.#deps;
    const { name } = entry;
    objects.assertMayWrite(principal, bucket, name);
    const call = { record, principal };
    if (!('after' in how)) {
      await this.#take(downloads, copy, (row, content) => this.#publish(copy, how, { row, content }));
      return undefined;
    }
    const { after, keepsAcl } = how;
    const past = keepsAcl ? entry : { ...entry, acl: null };
    const append = (content: VersionContent | null) =>
      objects.append(call, { bucket, name, past, content, after });
    if (entry.blob === null) return append(null);
    return this.#take(downloads, copy, (_row, content) => append(content));
  }

  /** Stores the bytes; `add` commits them. */
  async #take<T>(
    downloads: Downloads,
    { principal, source, entry, bucket, signal }: Copy,
    add: (row: ContentRow, content: VersionContent) => Promise<T>,
  ): Promise<T> {
    const { objects } = this.#deps;
    const { name, version_id: versionId } = entry;
    const found = await downloads.findNamed(principal, source, { name, versionId });
    if (found === undefined || !('content' in found)) throw versionNotFound(entry);
    const { row } = found.content;
    const { customer, etag } = row;
    // Each part has its own key, which only the client can derive.
    if (customer !== null && row.upload !== null) throw customerKeyRequired(name);
    const upload = objects.receive(bucket, await this.#encryptionOf(row, bucket));
    try {
      // Bytes encrypted with a client's key are copied unchanged, with the key's record.
      const sealed = { ...found.content, row: { ...row, customer: null } };
      const range = { start: 0, end: row.size_bytes };
      await downloads.read(sealed, { range, sink: (chunk) => upload.write(chunk), signal });
      const received = await upload.finish();
      const stored = objects.received({ ...received, blob: { ...received.blob, customer } }, row.checksum);
      // Clients compare the ETag, which cannot be recomputed for multipart or encrypted bytes.
      return await add(row, { ...stored, etag });
    } finally {
      await upload.end();
    }
  }

  async #publish(
    { principal, record, bucket }: Copy,
    { mayReplace }: NewVersion,
    { row, content }: { readonly row: ContentRow; readonly content: VersionContent },
  ): Promise<void> {
    const { objects, lockTime } = this.#deps;
    const { name, mime_type: mimeType, metadata, headers, tags } = row;
    const hasLocks = settingsOf(bucket).lock !== undefined;
    const lock = hasLocks ? lockOfCopy(row, defaultRetention(bucket), lockTime()) : undefined;
    await objects.publish(
      { record, principal },
      {
        bucket,
        content,
        naming: { name, mimeType, metadata, headers, tags, lock },
        condition: (previous) => {
          if (previous !== undefined && !mayReplace) throw isThere(name);
        },
      },
      () => undefined,
    );
  }

  /**
   * At least as strong as the version's. Throws `encryption_key_not_found` and
   * `encryption_key_disabled` if the named key of the version is no longer in use: its bytes should
   * be lost with it.
   */
  async #encryptionOf(row: ContentRow, bucket: BucketRow): Promise<Encryption> {
    const { metadata, dataKeys, objects } = this.#deps;
    if (row.named_key !== null) {
      const then = await new NamedKeySql(this.#point.reads).byRow(row.named_key);
      const now = then && (await new NamedKeySql(metadata).find(then.account_id, then.key_id));
      if (now?.id !== then?.id || now?.created_at !== then?.created_at || now === undefined) {
        throw keyNotFound(then?.key_id ?? 'of the version');
      }
      const key = await dataKeys.keyring.enabledByRow(now.id);
      // The key is missing in an account that gets another account's object.
      return then?.account_id === bucket.account_id ? { kind: 'named', key } : { kind: 'cloud' };
    }
    if (bucket.encryption === 1 && row.customer === null) return objects.encryptionOf(bucket);
    const parts = row.upload === null ? [] : await this.#parts.partBlobs(row.upload, 1);
    const isSealed = row.wrapped_key !== null || parts.some(({ wrapped_key }) => wrapped_key !== null);
    return { kind: isSealed ? 'cloud' : 'none' };
  }
}

function sealsNothing(): never {
  throw new Error('the keys of a recovery point seal nothing');
}

function versionNotFound({ name, version_id: versionId }: EntryRow): AppError {
  return new AppError('version_not_found', `The recovery point has no version ${versionId} of ${name}`);
}

function isThere(name: string): AppError {
  return new AppError('precondition_failed', `An object ${name} now exists`);
}
