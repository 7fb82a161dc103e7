/** Copies and moves objects, within a bucket and between buckets of an account, on the server. */
import type { Call, Principal } from '../../calls/principal.ts';
import { AppError, isAppError } from '../../platform/errors.ts';
import type { BucketRow } from '../buckets/bucket-sql.ts';
import type { Buckets } from '../buckets/buckets.ts';
import type { Encryption } from '../keys/encryption.ts';
import { presentUpload } from '../listing/entries.ts';
import type { Uploaded } from '../schema.ts';
import type { Upload } from '../uploads/upload.ts';
import { assertObjectName } from '../uploads/upload-fields.ts';
import type { Content, Downloads } from './downloads.ts';
import type { ObjectChanges } from './object-changes.ts';
import type { ObjectSql } from './object-sql.ts';
import { notFound, type Objects } from './objects.ts';
import type { Removals } from './removals.ts';
import { isSameEncryption, type StoredEncryption } from './stored-encryption.ts';

export interface RelocationsDeps {
  readonly objects: Objects;
  readonly removals: Removals;
  readonly objectChanges: ObjectChanges;
  readonly downloads: Downloads;
  readonly buckets: Buckets;
  readonly store: ObjectSql;
  readonly stored: StoredEncryption;
}

/** Bucket and name of a copy. */
export interface Place {
  /** Default: the bucket of the object. */
  readonly bucket?: string | undefined;
  /** Default: the name of the object. */
  readonly name?: string | undefined;
  /** Whether an existing object may be replaced. */
  readonly overwrite?: boolean | undefined;
  /** Aborted once nobody waits for the copy; default: never. */
  readonly signal?: AbortSignal | undefined;
}

interface Wish {
  readonly objectId: string;
  readonly place: Place;
  readonly isMove: boolean;
}

/** Attempts; each fails only if the source is changed concurrently. */
const TRIES = 5;
const NEVER = new AbortController().signal;

interface Source {
  readonly principal: Principal;
  readonly objectId: string;
  readonly bucket_id: number;
  readonly name: string;
  readonly content: Content;
}

interface Target {
  readonly bucket: BucketRow;
  readonly name: string;
  readonly overwrite: boolean;
  readonly upload: Upload;
  readonly encryption: Encryption;
  readonly signal: AbortSignal;
}

export class Relocations {
  readonly #deps: RelocationsDeps;

  constructor(deps: RelocationsDeps) {
    this.#deps = deps;
  }

  /**
   * Stores the current version under another name as well, with its type, metadata and tags. Throws
   * `object_not_found`, `bucket_not_found`, `precondition_failed` if there is an object and it may
   * not be replaced, `write_conflict` if the source keeps changing, `customer_key_required`, and
   * the errors of an upload.
   */
  copy(call: Call, objectId: string, place: Place): Promise<Uploaded> {
    return this.#relocate(call, { objectId, place, isMove: false });
  }

  /**
   * The same, and deletes the object in the same commit, as `Removals.remove` does: in a versioned
   * bucket its versions remain behind a marker. Throws `object_locked` too.
   */
  move(call: Call, objectId: string, place: Place): Promise<Uploaded> {
    return this.#relocate(call, { objectId, place, isMove: true });
  }

  /** A source that changes while its bytes are read is read again. */
  async #relocate(call: Call, wish: Wish): Promise<Uploaded> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#relocateOnce(call, wish);
      } catch (error) {
        if (attempt === TRIES || !isAppError(error, 'write_conflict')) throw error;
      }
    }
  }

  async #relocateOnce(call: Call, { objectId, place, isMove }: Wish): Promise<Uploaded> {
    const { objects, downloads } = this.#deps;
    const { principal } = call;
    const { bucket_id, name, bucket: from, current } = await objects.findFor(principal, objectId);
    if (current === null) throw notFound(objectId);
    const { bucket: to = from, name: wanted = name, overwrite = false, signal = NEVER } = place;
    assertObjectName(wanted);
    if (to === from && wanted === name)
      throw new AppError(
        'invalid_request',
        'Source and target are the same object: choose another name or bucket',
      );
    const content = await downloads.find(principal, objectId);
    const begun = await objects.beginUpload(principal, to);
    objects.assertMayWrite(principal, begun.bucket, wanted);
    const source = { principal, objectId, bucket_id, name, content };
    try {
      const target = { ...begun, name: wanted, overwrite, signal };
      return await this.#store(call, { source, target, isMove });
    } finally {
      await begun.upload.end();
    }
  }

  async #store(
    call: Call,
    { source, target, isMove }: { source: Source; target: Target; isMove: boolean },
  ): Promise<Uploaded> {
    const { objects, objectChanges, removals, store, buckets } = this.#deps;
    const { content } = source;
    const { bucket, name, overwrite } = target;
    const bytes = await this.#bytesOf(content, target);
    const places = [
      { bucketId: source.bucket_id, name: source.name },
      { bucketId: bucket.id, name },
    ];
    return objectChanges.inTurns(call, places, async (change) => {
      buckets.assertNotDeleting(bucket);
      const object = await objects.findFor(call.principal, source.objectId);
      if (object.current !== content.row.id) throw hasChanged(source);
      const found = await store.target(bucket.id, name);
      if (found === undefined)
        throw new AppError('bucket_not_found', `The bucket ${bucket.name} was deleted`);
      if (found.previous !== undefined && !overwrite) throw isTaken(bucket.name, name);
      const { mime_type: mimeType, metadata, headers, tags } = content.row;
      const naming = { name, mimeType, metadata, headers, tags, acl: null };
      const placed = { call, bucket, target: found, naming, content: bytes };
      const published = await objectChanges.place(change, placed);
      if (isMove) await removals.removeWithin(change, call, object);
      return presentUpload(published);
    });
  }

  /** The bytes of the source, shared if encrypted alike. */
  async #bytesOf(content: Content, { upload, encryption, signal }: Target) {
    const { objects, downloads, stored } = this.#deps;
    const { row } = content;
    if (row.blob !== null && isSameEncryption(await stored.of(row), encryption, row))
      return objects.shared({ ...row, blob: row.blob });
    const range = { start: 0, end: content.sizeBytes };
    const sink = (chunk: Uint8Array) => upload.write(chunk);
    await downloads.read(content, { range, sink, signal });
    return objects.received(await upload.finish(), row.checksum);
  }
}

function hasChanged({ name }: Source): AppError {
  return new AppError('write_conflict', `${name} was changed by another request; nothing was stored`, {
    hint: 'Send the request again',
  });
}

function isTaken(bucket: string, name: string): AppError {
  return new AppError('precondition_failed', `The bucket ${bucket} has an object ${name} already`, {
    hint: 'Choose another name, or set "overwrite": true to replace it',
  });
}
