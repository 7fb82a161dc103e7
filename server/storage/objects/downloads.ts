/** Downloads: finds objects for permitted callers, verifies and sends their bytes in ranges. */
import { type Call, mayTouch, type Principal } from '../../calls/principal.ts';
import type { Ages } from '../../metadata/ages.ts';
import type { WriteBehind } from '../../metadata/change.ts';
import type { Awaitable } from '../../metadata/metadata.ts';
import { detachBuffer } from '../../platform/buffers.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError, isAppError } from '../../platform/errors.ts';
import type { BlobRange, BlobSink, BlobStore } from '../blobs/blobs.ts';
import { settingsOf } from '../buckets/bucket-settings.ts';
import type { BucketRow } from '../buckets/bucket-sql.ts';
import { type CustomerKey, customerKeyRequired } from '../keys/customer-key.ts';
import type { DataKeys, SealedDataKey } from '../keys/encryption.ts';
import type { PartBlobRow, PartUploadSql } from '../uploads/part-upload-sql.ts';
import { openInline } from '../uploads/upload.ts';
import type { HotContents } from './hot-contents.ts';
import type { NamedSql } from './named-sql.ts';
import type { ContentRow, MarkerRow, ObjectSql } from './object-sql.ts';
import { notFound } from './objects.ts';
import { isSound } from './version-row-sql.ts';

export interface DownloadsDeps {
  readonly store: ObjectSql;
  readonly named: NamedSql;
  readonly partUploads: Pick<PartUploadSql, 'partBlobs' | 'inlineBytes'>;
  readonly blobs: Pick<BlobStore, 'read'>;
  readonly clock: Clock;
  /** Time of the last download, ms, by row id of a version. */
  readonly accessTimes: WriteBehind<number, number>;
  /** Bytes sent, by row id of a bucket. A crash forgets some, in the owner's favour. */
  readonly egress: WriteBehind<number, number>;
  readonly hot: HotContents;
  /** Shared: content from memory is served only after a read of its row shows that it is current. */
  readonly ages: Pick<Ages, 'isShared'>;
  readonly dataKeys: Pick<DataKeys, 'openEnabled'>;
  /** Called with the row id of a blob whose bytes are damaged. */
  readonly onDamaged: (blob: number) => void;
  /** Called with the row id of a version whose row is damaged. */
  readonly onDamagedRow: (version: number) => void;
}

/** A version whose bytes may be sent. */
export interface Content {
  readonly row: ContentRow;
  readonly name: string;
  readonly sizeBytes: number;
  readonly etag: string;
  readonly mimeType: string;
  /** ms since 1970. */
  readonly createdAt: number;
  /** The verified plaintext, if it is stored in the row; locked until unlock(). */
  readonly inline: Uint8Array | null;
  /** The client's key, once it is verified. */
  readonly key?: CustomerKey;
}

export interface ContentRead {
  readonly range: BlobRange;
  readonly sink: BlobSink;
  readonly signal: AbortSignal;
}

/** A change of any of these makes the cached content outdated. */
const MUTABLE = ['id', 'tags', 'acl', 'lock_mode', 'retain_until', 'locked_until', 'legal_hold'] as const;

/** Row ids of an assembled blob, and of the multipart upload whose parts contain its bytes. */
interface Assembled {
  readonly blob: number | null;
  readonly upload: number;
  readonly key: CustomerKey | undefined;
}

export class Downloads {
  readonly #deps: DownloadsDeps;

  constructor(deps: DownloadsDeps) {
    this.#deps = deps;
  }

  /**
   * The caller's object, current or one version. Throws `object_not_found`, `version_not_found`,
   * `customer_key_required`, `data_corrupted`.
   */
  async find(principal: Principal, objectId: string, versionId?: string): Promise<Content> {
    const { hot, ages } = this.#deps;
    const known = versionId === undefined ? hot.get(objectId) : undefined;
    if (known && owns(principal, known.row)) {
      if (!ages.isShared || (await this.#isCurrent(known))) return known;
    }
    const { epoch } = hot;
    const row = await this.#row(objectId, versionId);
    if (row && owns(principal, row)) {
      if (row.customer !== null) throw customerKeyRequired(row.name);
      const content = await this.#opened(row);
      if (versionId === undefined && isCacheable(content)) hot.put(objectId, content, epoch);
      return content;
    }
    if (versionId === undefined) throw notFound(objectId);
    const object = await this.#deps.store.findById(objectId);
    if (object?.account_id !== principal.accountId || !mayTouch(principal, object.bucket, object.name)) {
      throw notFound(objectId);
    }
    throw new AppError('version_not_found', `The object has no version ${versionId} that can be downloaded`);
  }

  /**
   * Finds the content of a name: its bytes, or the marker that hides it; undefined: none.
   * `versionId`: that version instead, `null` the null version. Throws `scope_required`,
   * `data_corrupted`.
   */
  async findNamed(
    principal: Principal,
    bucket: BucketRow,
    { name, versionId }: { readonly name: string; readonly versionId?: string | undefined },
  ): Promise<{ readonly content: Content } | { readonly marker: MarkerRow } | undefined> {
    if (!mayTouch(principal, bucket.name, name)) {
      throw new AppError('scope_required', `This key's limits do not cover ${name} in ${bucket.name}`);
    }
    const { named, hot, ages } = this.#deps;
    const known = versionId === undefined ? hot.named(bucket.id, name) : undefined;
    if (known !== undefined && (!ages.isShared || (await this.#isCurrent(known)))) return { content: known };
    const { epoch } = hot;
    const row =
      versionId === undefined
        ? await named.namedContent(bucket.id, name)
        : await named.namedVersionContent(bucket.id, name, versionId);
    if (row !== undefined) {
      const content = await this.#opened(row);
      if (versionId === undefined && isCacheable(content)) hot.put(row.object_id, content, epoch);
      return { content };
    }
    const marker =
      versionId === undefined
        ? await named.markerOn(bucket.id, name)
        : await named.namedMarker(bucket.id, name, versionId);
    return marker && { marker };
  }

  /** True while no other node has replaced, deleted or relabelled the cached content. */
  async #isCurrent({ row }: Content): Promise<boolean> {
    const { store, hot } = this.#deps;
    const pointed = await store.pointedAt(row.object);
    if (pointed !== undefined && MUTABLE.every((fact) => pointed[fact] === row[fact])) return true;
    hot.forget(row.object_id);
    return false;
  }

  #row(objectId: string, versionId: string | undefined) {
    const { store } = this.#deps;
    return versionId === undefined
      ? store.currentContent(objectId)
      : store.versionContent(objectId, versionId);
  }

  /**
   * Content found by findNamed() that is encrypted with a client's key. Throws
   * `customer_key_required` for a wrong key.
   */
  unlock(content: Content, key: CustomerKey): Content {
    const { row, inline } = content;
    if (row.customer === null) return content;
    if (!key.fits(row.customer)) throw customerKeyRequired(row.name);
    return { ...content, key, inline: inline && key.cipher(row.customer)(inline) };
  }

  /** Rejects with `data_corrupted`; damage of the row, not of its blob, is reported at once. */
  async #opened(row: ContentRow): Promise<Content> {
    if (isSound(row)) return this.#watch(row.blob, () => this.#open(row));
    this.#deps.onDamagedRow(row.id);
    throw new AppError('data_corrupted', 'The metadata of the object is damaged', {
      hint: 'Upload the object again; a recovery point may have an intact copy',
    });
  }

  async #open(row: ContentRow): Promise<Content> {
    return {
      row,
      name: row.name,
      sizeBytes: row.size_bytes,
      etag: row.etag,
      mimeType: row.mime_type,
      createdAt: row.created_at,
      inline: row.data === null ? null : openInline(row.data, row.data_crc, await this.#dataKey(row)),
    };
  }

  #dataKey(row: SealedDataKey): Awaitable<Uint8Array | null> {
    return row.wrapped_key === null ? null : this.#deps.dataKeys.openEnabled(row);
  }

  /** Passes the verified bytes of `range` to `sink`; see BlobStore.read. Throws `customer_key_required`. */
  async read(content: Content, { range, sink: target, signal }: ContentRead): Promise<void> {
    const { row, key } = content;
    if (row.customer !== null && key === undefined) throw customerKeyRequired(row.name);
    const sink = row.upload === null ? decrypting(target, { key, ...row, offset: range.start }) : target;
    if (content.inline) {
      await target(content.inline.subarray(range.start, range.end));
    } else if (row.blob_name !== null) {
      const blob = { name: row.blob_name, sizeBytes: row.size_bytes, dataKey: await this.#dataKey(row) };
      await this.#watch(row.blob, () => this.#deps.blobs.read(blob, range, { sink, signal }));
    } else if (row.upload !== null) {
      await this.#readParts({ blob: row.blob, upload: row.upload, key }, { range, sink, signal });
    }
  }

  /** Reads the parts that the range touches, one after the other. */
  async #readParts({ blob, upload, key }: Assembled, { range, sink, signal }: ContentRead): Promise<void> {
    let offset = 0;
    for (const part of await this.#deps.partUploads.partBlobs(upload)) {
      const [start, end] = [Math.max(range.start - offset, 0), Math.min(range.end - offset, part.size_bytes)];
      offset += part.size_bytes;
      const decrypted = decrypting(sink, { key, customer: part.customer, offset: start });
      const read = { range: { start, end }, sink: decrypted, signal };
      if (start < end) await this.#watch(part.blob, () => this.#readPart(part, read));
    }
    if (offset < range.end) await this.#watch(blob, () => Promise.reject(partMissing()));
  }

  async #readPart(part: PartBlobRow, { range, sink, signal }: ContentRead): Promise<void> {
    const dataKey = await this.#dataKey(part);
    if (part.blob_name !== null) {
      const blob = { name: part.blob_name, sizeBytes: part.size_bytes, dataKey };
      return this.#deps.blobs.read(blob, range, { sink, signal });
    }
    const inline = await this.#deps.partUploads.inlineBytes(part.blob);
    if (inline === undefined) throw partMissing();
    await sink(openInline(inline.data, inline.data_crc, dataKey).subarray(range.start, range.end));
  }

  async #watch<T>(blob: number | null, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (isAppError(error, 'data_corrupted') && blob !== null) this.#deps.onDamaged(blob);
      throw error;
    }
  }

  /** Counts bytes that were sent, for billing. */
  countSent(content: Content, bytes: number): void {
    this.#deps.egress.note(content.row.bucket_id, bytes);
  }

  /** Remembers that this version was downloaded. */
  touch(content: Content, call: Pick<Call, 'data'>): void {
    this.logRead(content, call);
    this.#deps.accessTimes.note(content.row.id, this.#deps.clock.now());
  }

  /** Adds an entry to the audit log if the bucket's setting requires it. */
  logRead(content: Content, { data }: Pick<Call, 'data'>): void {
    const { account_id: accountId, bucket, name, settings } = content.row;
    if (data !== undefined && settings !== null && settingsOf({ settings }).dataEvents === 'all')
      data.read({ accountId, bucket, name });
  }
}

/** Decrypts bytes encrypted with a customer-provided key. */
function decrypting(
  sink: BlobSink,
  { key, customer, offset }: Pick<ContentRow, 'customer'> & { key: CustomerKey | undefined; offset: number },
): BlobSink {
  if (customer === null || key === undefined) return sink;
  const cipher = key.cipher(customer, offset);
  return async (chunk) => {
    const plain = cipher(chunk);
    await sink(plain);
    detachBuffer(plain);
  };
}

/** Plaintext of encrypted objects is not cached in memory. */
function isCacheable({ inline, row }: Content): boolean {
  return inline !== null && row.wrapped_key === null && row.customer === null;
}

function partMissing(): AppError {
  return new AppError('data_corrupted', 'A part of the object is missing');
}

function owns(principal: Principal, row: ContentRow): boolean {
  return row.account_id === principal.accountId && mayTouch(principal, row.bucket, row.name);
}
