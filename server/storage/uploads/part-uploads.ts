/**
 * Multipart uploads: an object that arrives in parts, each durable, and becomes visible when the
 * upload is completed. A part is a blob with a row; the assembled object is a blob without bytes of
 * its own, which references the upload, so that completing costs the same for any number of parts.
 */
import { createHash } from 'node:crypto';
import type { Call, Principal } from '../../calls/principal.ts';
import { BACKGROUND, type Change, type Changes } from '../../metadata/change.ts';
import type { Statement } from '../../metadata/metadata.ts';
import type { Clock } from '../../platform/clock.ts';
import { KeyedMutex } from '../../platform/concurrency.ts';
import { AppError, isAppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import { bucketNotFound } from '../buckets/bucket-errors.ts';
import type { BucketRow } from '../buckets/bucket-sql.ts';
import type { Buckets } from '../buckets/buckets.ts';
import { type CustomerKey, customerKeyRequired } from '../keys/customer-key.ts';
import type { DataKeys, Encryption } from '../keys/encryption.ts';
import type { Condition, Published } from '../listing/entries.ts';
import type { WantedLock } from '../objects/object-lock.ts';
import type { ObjectSql } from '../objects/object-sql.ts';
import type { Naming, Objects, VersionContent } from '../objects/objects.ts';
import { metadataBytesOf, ROW_BYTES } from '../objects/version-row-sql.ts';
import type { StorageBilling } from '../storage-billing.ts';
import {
  type PartBlobRow,
  type PartRow,
  type PartUploadRow,
  type PartUploadSql,
  UPLOAD_STATE,
} from './part-upload-sql.ts';
import type { ReceivedBytes, Upload } from './upload.ts';
import { ignoreEnded, partConflict, tooManyUploads, uploadNotFound } from './upload-refusals.ts';

export type { PartRow, PartUploadRow } from './part-upload-sql.ts';

export interface PartUploadsDeps {
  readonly changes: Changes;
  readonly store: PartUploadSql;
  readonly objectStore: ObjectSql;
  readonly objects: Objects;
  readonly buckets: Buckets;
  readonly dataKeys: DataKeys;
  readonly clock: Clock;
  readonly billing: Pick<StorageBilling, 'assertCredit' | 'bytesKept' | 'bytesStored'>;
  readonly garbageGraceMs: number;
  readonly maxObjectBytes: number;
}

/** The result of completing an upload; kept for repeated requests. */
export interface Completed {
  readonly version_id: string;
  readonly is_null: boolean;
  readonly etag: string;
  readonly checksum: string | null;
}

/** How parts become an object. */
export interface Assembly {
  /** Row of the bucket, whose owner pays. */
  readonly bucket: BucketRow;
  /** The parts to use, in order. Throws if they differ from the client's list. */
  readonly choose: (parts: readonly PartRow[]) => readonly PartRow[];
  /** The checksum of the whole, as in a VersionRow. */
  readonly checksumOf: (parts: readonly PartRow[]) => string | null;
  readonly condition?: Condition | undefined;
}

export const MAX_PARTS = 10_000;
/** The minimum size of all parts but the last. */
export const MIN_PART_BYTES = 5 * 2 ** 20;
/** Maximum open uploads of a bucket: each has a row, with or without parts. */
const MAX_OPEN = 10_000;
/** Parts removed in one commit: more would delay other commits. */
const REMOVED_AT_ONCE = 16;
const PAGE = 100;
/** Age at which an open upload is aborted, as many S3 services do. */
export const FORGOTTEN_MS = 7 * 24 * 3_600_000;
const COMPLETE_TRIES = 5;

export class PartUploads {
  readonly #deps: PartUploadsDeps;
  readonly #locks = new KeyedMutex();

  constructor(deps: PartUploadsDeps) {
    this.#deps = deps;
  }

  /** Throws `scope_required`, `bucket_not_found`, `insufficient_credits`, `quota_exceeded`. */
  async begin(
    call: Call,
    bucket: BucketRow,
    labels: Naming & { readonly checksum: string | null; readonly encryption?: Encryption | undefined },
  ): Promise<string> {
    const { changes, store, objects, buckets, billing, clock } = this.#deps;
    objects.assertMayWrite(call.principal, bucket, labels.name);
    buckets.assertNotDeleting(bucket);
    await billing.assertCredit(bucket.account_id);
    if (await store.hasOpen(bucket.id, MAX_OPEN)) throw tooManyUploads(bucket.name, MAX_OPEN);
    const encryption = labels.encryption ?? (await objects.encryptionOf(bucket));
    return changes.run(call, async (change) => {
      // Created here, so that ids of one name are in the order of their rows: see page-end-sql.ts.
      const uploadId = newId('upl', clock);
      const texts = {
        name: labels.name,
        mime_type: labels.mimeType,
        metadata: labels.metadata,
        headers: labels.headers ?? null,
        tags: labels.tags ?? null,
        acl: labels.acl ?? null,
      };
      const row = {
        ...texts,
        metadata_bytes: metadataBytesOf(texts),
        upload_id: uploadId,
        bucket_id: bucket.id,
        account_id: bucket.account_id,
        encryption: Number(encryption.kind !== 'none'),
        named_key: encryption.kind === 'named' ? encryption.key.id : null,
        customer: encryption.kind === 'customer' ? encryption.key.record() : null,
        checksum: labels.checksum,
        lock: labels.lock === undefined ? null : JSON.stringify(labels.lock),
        created_at: clock.now(),
      };
      // The deletion checks for open uploads, and may have been first.
      change.add(store.holdBucket(bucket.id), () => bucketNotFound(bucket.name));
      change.add(store.insert(row));
      await this.#count(change, bucket, row.metadata_bytes);
      return uploadId;
    });
  }

  /** The open upload with that id. Throws `upload_not_found`, also if it ended or is someone else's. */
  async find(
    bucket: BucketRow,
    { name, uploadId }: { name: string; uploadId: string },
  ): Promise<PartUploadRow> {
    const row = await this.#ofBucket(bucket, { name, uploadId });
    if (row.state !== UPLOAD_STATE.open) throw uploadNotFound(uploadId);
    return row;
  }

  async #ofBucket(
    bucket: BucketRow,
    { name, uploadId }: { name: string; uploadId: string },
  ): Promise<PartUploadRow> {
    const row = await this.#deps.store.find(uploadId);
    if (row?.bucket_id !== bucket.id || row.name !== name) throw uploadNotFound(uploadId);
    return row;
  }

  /** The upload with that id, open or ended, of any account. */
  async lookUp(uploadId: string): Promise<PartUploadRow | undefined> {
    return this.#deps.store.find(uploadId);
  }

  /** Parts by number, after that number. `upload`: row id. */
  async parts(upload: number, after: number, limit: number): Promise<PartRow[]> {
    return this.#deps.store.parts(upload, after, limit);
  }

  /** The parts of an assembled object, in order. */
  async assembledFrom(upload: number, limit = MAX_PARTS): Promise<readonly PartBlobRow[]> {
    return this.#deps.store.partBlobs(upload, limit);
  }

  /**
   * Receives the bytes of a part; the caller must put or abort the result. `key`: the key that the
   * upload was begun with. Throws `insufficient_credits`, `customer_key_required`.
   */
  async receive(upload: PartUploadRow, key?: CustomerKey): Promise<Upload> {
    const { billing, objects, dataKeys } = this.#deps;
    await billing.assertCredit(upload.account_id);
    const { customer, named_key } = upload;
    if (customer !== null) {
      if (key?.fits(customer) !== true) throw customerKeyRequired(upload.name);
      return objects.receive(upload, { kind: 'customer', key }, key.etagKey(customer));
    }
    if (named_key !== null) {
      const named = await dataKeys.keyring.enabledByRow(named_key);
      return objects.receive(upload, { kind: 'named', key: named }, named.etagKey(upload.upload_id));
    }
    return objects.receive(upload, { kind: upload.encryption === 1 ? 'cloud' : 'none' });
  }

  /** Stores the bytes as a part, replacing one with the same number. Throws `upload_not_found`. */
  putPart(
    call: Call,
    { id, upload_id, bucket_id, account_id }: PartUploadRow,
    part: { readonly number: number; readonly received: ReceivedBytes; readonly checksum: string | null },
  ): Promise<void> {
    const { changes, store, objectStore, clock, garbageGraceMs } = this.#deps;
    const { number, received, checksum } = part;
    const { sizeBytes, etag, blob, keep } = received;
    return this.#locks.run(`${id}/${number}`, () =>
      changes.run(call, async (change) => {
        const old = await store.part(id, number);
        const bytes = sizeBytes - (old?.size_bytes ?? 0);
        const rowBytes = old === undefined ? ROW_BYTES : 0;
        change.after(keep);
        const now = clock.now();
        // Checked first: an ended upload explains all other mismatches.
        change.add(store.changePart(id, bytes, rowBytes), () => uploadNotFound(upload_id));
        if (old) {
          change.add(store.deletePart(id, old), 'retry');
          change.addAll(objectStore.releaseBlob(old.blob, now + garbageGraceMs), 'retry');
        }
        const blobRow = change.add(objectStore.insertBlob(blob), 'retry');
        const row = { number, blob: blobRow, size_bytes: sizeBytes, etag, checksum, created_at: now };
        change.add(store.insertPart(id, row), 'retry');
        await this.#count(change, { id: bucket_id, account_id }, bytes + rowBytes);
      }),
    );
  }

  /**
   * Makes the chosen parts the current version of the upload's name. Completing again returns the
   * first result. Throws `upload_not_found`, and the errors of `choose` and of the condition.
   */
  async complete(
    call: Call,
    named: { readonly name: string; readonly uploadId: string },
    { bucket, choose, checksumOf, condition }: Assembly,
  ): Promise<Completed> {
    const { store, objects } = this.#deps;
    const before = await this.#ofBucket(bucket, named);
    objects.assertMayWrite(call.principal, bucket, before.name);
    if (before.result !== null) return JSON.parse(before.result) as Completed;
    return this.#locks.run(`${before.id}`, () =>
      untilStill(async () => {
        const upload = await this.#ofBucket(bucket, named);
        if (upload.result !== null) return JSON.parse(upload.result) as Completed;
        if (upload.state !== UPLOAD_STATE.open) throw uploadNotFound(named.uploadId);
        const all = await store.parts(upload.id, 0, MAX_PARTS);
        const chosen = choose(all);
        this.#assertSize(sumOf(chosen));
        const checksum = checksumOf(chosen);
        const content = this.#assembled(upload, { all, chosen, checksum });
        const { name, mime_type: mimeType, metadata, headers, tags, acl } = upload;
        const lock = upload.lock === null ? undefined : (JSON.parse(upload.lock) as WantedLock);
        const naming = { name, mimeType, metadata, headers, tags, acl, lock };
        return objects.publish(call, { bucket, content, naming, ...(condition && { condition }) }, completed);
      }),
    );
  }

  #assertSize(bytes: number): void {
    const { maxObjectBytes } = this.#deps;
    if (bytes <= maxObjectBytes) return;
    throw new AppError('payload_too_large', `An object can have at most ${maxObjectBytes} bytes`);
  }

  #assembled(
    upload: PartUploadRow,
    {
      all,
      chosen,
      checksum,
    }: { all: readonly PartRow[]; chosen: readonly PartRow[]; checksum: string | null },
  ): VersionContent {
    const { store, clock } = this.#deps;
    const sizeBytes = sumOf(chosen);
    const etag = etagOf(chosen);
    const used = new Set(chosen.map(({ number }) => number));
    const left = all.filter(({ number }) => !used.has(number));
    const addBlob = (change: Change, version: Pick<Published, 'versionId' | 'isNull'>) => {
      const at = clock.now();
      const result: Completed = { version_id: version.versionId, is_null: version.isNull, etag, checksum };
      const end = { at, sizeBytes, result: JSON.stringify(result) };
      change.add(store.complete(upload, end), partConflict);
      if (left.length > 0) {
        const rest = change.add(store.insertLeftover(upload, newId('upl', clock), at), 'retry');
        for (const { number } of left) change.add(store.movePart(upload.id, rest, number), 'retry');
      }
      return change.add(store.insertAssembled(upload, sizeBytes), 'retry');
    };
    // The bytes and rows were counted part by part, and the metadata when the upload began.
    return { sizeBytes, etag, checksum, addBlob, countedBytes: sumOf(all) + upload.metadata_bytes };
  }

  /** Throws `upload_not_found`. The bytes are no longer charged; the sweeper removes them. */
  async abort(
    call: Call,
    bucket: BucketRow,
    named: { name: string; uploadId: string; also?: Statement },
  ): Promise<{ readonly upload_id: string }> {
    const { changes, store, objects } = this.#deps;
    return changes.run(call, async (change) => {
      const upload = await this.find(bucket, named);
      objects.assertMayWrite(call.principal, bucket, upload.name);
      change.add(store.abort(upload, this.#deps.clock.now()), 'retry');
      await this.#count(change, bucket, -upload.size_bytes - upload.metadata_bytes);
      if (named.also !== undefined) change.add(named.also);
      return { upload_id: named.uploadId };
    });
  }

  /** Ends the open uploads of a bucket that is being deleted. */
  async abortAll(principal: Principal, bucket: BucketRow): Promise<void> {
    for (;;) {
      const open = await this.#deps.store.openPage(bucket.id, { name: '', id: 0 }, PAGE);
      if (open.length === 0) return;
      const call = () => ({ ...BACKGROUND, principal });
      for (const { name, upload_id: uploadId } of open) {
        await this.abort(call(), bucket, { name, uploadId }).catch(ignoreEnded);
      }
    }
  }

  /** Aborts uploads begun a week ago, because they use storage. Returns their number. */
  async abortForgotten(): Promise<number> {
    const { store, changes, clock } = this.#deps;
    const now = clock.now();
    const forgotten = await store.overdue(now - FORGOTTEN_MS, PAGE);
    for (const upload of forgotten) {
      const bucket = { id: upload.bucket_id, account_id: upload.account_id };
      await changes.run(BACKGROUND, async (change) => {
        change.add(store.abort(upload, now), 'skip');
        await this.#count(change, bucket, -upload.size_bytes - upload.metadata_bytes);
      });
    }
    return forgotten.length;
  }

  /** Removes unused parts of ended uploads; returns the number of uploads. */
  async sweep(): Promise<number> {
    for (let removed = 0; ; ) {
      const before = removed;
      for (const upload of await this.#deps.store.aborted(PAGE)) {
        if (await this.#removeParts(upload)) removed++;
      }
      if (removed === before) return removed;
    }
  }

  /** Also removes the upload. False: rows changed concurrently; a later sweep continues. */
  async #removeParts(upload: PartUploadRow): Promise<boolean> {
    const { store, changes } = this.#deps;
    for (;;) {
      const parts = await store.parts(upload.id, 0, REMOVED_AT_ONCE);
      if (parts.length === 0) return changes.store([store.delete(upload.id)], 'skip');
      if (!(await changes.store(this.#removal(upload, parts), 'skip'))) return false;
    }
  }

  #removal(upload: PartUploadRow, parts: readonly PartRow[]) {
    const { store, objectStore, clock, garbageGraceMs } = this.#deps;
    return parts.flatMap((part) => [
      store.deletePart(upload.id, part),
      ...objectStore.releaseBlob(part.blob, clock.now() + garbageGraceMs),
    ]);
  }

  /** Adds the bytes of parts and metadata to the account's usage. */
  async #count(change: Change, bucket: Pick<BucketRow, 'id' | 'account_id'>, bytes: number): Promise<void> {
    if (bytes === 0) return;
    const { billing } = this.#deps;
    const counter = { table: 'accounts', id: bucket.account_id, add: { storage_bytes: bytes } };
    change.increment(counter, 'retry');
    change.addAll(await billing.bytesKept(bucket, bytes), 'retry');
    change.after(() => billing.bytesStored(bucket.account_id, bytes));
  }
}

const sumOf = (parts: readonly PartRow[]) => parts.reduce((sum, { size_bytes }) => sum + size_bytes, 0);

/** The ETag of S3: MD5 of the parts' MD5s, and their number. */
function etagOf(parts: readonly PartRow[]): string {
  const whole = createHash('md5');
  for (const { etag } of parts) whole.update(Buffer.from(etag, 'hex'));
  return `${whole.digest('hex')}-${parts.length}`;
}

function completed({ versionId, isNull, etag, checksum }: Published): Completed {
  return { version_id: versionId, is_null: isNull, etag, checksum };
}

/** Retries if a part arrived concurrently. */
async function untilStill<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (!isAppError(error, 'write_conflict') || tries === COMPLETE_TRIES) throw error;
    }
  }
}
