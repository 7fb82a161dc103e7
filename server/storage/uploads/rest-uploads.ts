/**
 * Uploads in parts over REST: an interrupted upload continues after the last received part, from
 * any browser and on any day until the upload ends. S3 clients see them too, and vice versa.
 */
import { base64Digest, type ChecksumAlgorithm, combineCrc } from '../../../libs/s3-wire/index.ts';
import { type Call, mayTouch, type Principal } from '../../calls/principal.ts';
import { formatTime } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import type { BucketRow } from '../buckets/bucket-sql.ts';
import type { Buckets } from '../buckets/buckets.ts';
import type { Condition } from '../listing/entries.ts';
import type { ObjectSql } from '../objects/object-sql.ts';
import { notFound } from '../objects/objects.ts';
import { mayUseUpload } from './open-uploads.ts';
import type { BegunUpload, CompletedUpload, UploadEnd, UploadPart } from './part-schema.ts';
import {
  FORGOTTEN_MS,
  MAX_PARTS,
  MIN_PART_BYTES,
  type PartRow,
  type PartUploadRow,
  type PartUploads,
} from './part-uploads.ts';
import type { Upload } from './upload.ts';
import { assertObjectName, typeOf } from './upload-fields.ts';
import { uploadNotFound } from './upload-refusals.ts';

export interface RestUploadsDeps {
  readonly buckets: Buckets;
  readonly partUploads: PartUploads;
  readonly store: Pick<ObjectSql, 'target'>;
  readonly now: () => number;
}

interface Named {
  readonly bucket: string;
  readonly uploadId: string;
}

/** The checksum of an upload begun here, declared like one of an S3 client. */
const ANNOUNCED = { algorithm: 'CRC32', type: 'FULL_OBJECT', isAsked: false };

export class RestUploads {
  readonly #deps: RestUploadsDeps;

  constructor(deps: RestUploadsDeps) {
    this.#deps = deps;
  }

  /**
   * Throws `bucket_not_found`, `invalid_object_name`, `scope_required`, and the errors of
   * PartUploads.begin.
   */
  async begin(
    call: Call,
    bucketName: string,
    { name, mimeType = typeOf(name) }: { readonly name: string; readonly mimeType?: string | undefined },
  ): Promise<BegunUpload> {
    const { buckets, partUploads, now } = this.#deps;
    const bucket = await buckets.find(call.principal, bucketName);
    assertObjectName(name);
    const naming = { name, mimeType, metadata: null, checksum: JSON.stringify(ANNOUNCED) };
    const ends_at = formatTime(now() + FORGOTTEN_MS);
    // Kept under an Idempotency-Key as it is answered.
    const answer = (id: unknown): BegunUpload => ({ upload_id: String(id), name, ends_at });
    const { principal } = call;
    const recorded = { principal, record: (id: unknown) => call.record(answer(id)) };
    return answer(await partUploads.begin(recorded, bucket, naming));
  }

  /** The received parts, by number. Throws `bucket_not_found`, `upload_not_found`. */
  async parts(principal: Principal, named: Named): Promise<UploadPart[]> {
    const { upload } = await this.#find(principal, named);
    const rows = await this.#deps.partUploads.parts(upload.id, 0, MAX_PARTS);
    return rows.map((row) => present(row, upload));
  }

  /**
   * Receives a part; `read` writes its bytes. Throws `bucket_not_found`, `upload_not_found`, and
   * the errors of `read` and PartUploads.receive.
   */
  async put(
    call: Call,
    named: Named & { readonly number: number },
    read: (upload: Upload) => Promise<void>,
  ): Promise<UploadPart> {
    const { partUploads } = this.#deps;
    const { upload: row } = await this.#find(call.principal, named);
    const { number } = named;
    const algorithm = algorithmOf(row);
    const upload = await partUploads.receive(row);
    upload.digest([algorithm]);
    try {
      await read(upload);
      const received = await upload.finish();
      const checksum = base64Digest(received.digests, algorithm);
      await partUploads.putPart(call, row, { number, received, checksum });
      const { sizeBytes: size, etag } = received;
      return { number, size, etag, crc32: algorithm === 'CRC32' ? checksum : null };
    } finally {
      await upload.end();
    }
  }

  /**
   * Joins the parts 1 to `parts` into the object; a second call returns the first result. Throws
   * `bucket_not_found`, `upload_not_found`, `invalid_request` if a part is missing or too small, or
   * size or checksum differ from the caller's, and `precondition_failed`.
   */
  async complete(
    call: Call,
    named: Named,
    { end, condition }: { readonly end: UploadEnd; readonly condition: Condition | undefined },
  ): Promise<CompletedUpload> {
    const { partUploads, store } = this.#deps;
    const { bucket, upload } = await this.#find(call.principal, named);
    const { name } = upload;
    const done = await partUploads.complete(
      call,
      { name, uploadId: named.uploadId },
      {
        bucket,
        choose: (all) => chosenOf(all, end),
        checksumOf: (parts) => checksumOf(parts, upload, end.crc32),
        ...(condition && { condition }),
      },
    );
    const object = (await store.target(bucket.id, name))?.object;
    if (object === undefined) throw notFound(name);
    const { version_id, etag } = done;
    return { object_id: object.object_id, version_id, etag, name, bucket: bucket.name };
  }

  async #find(
    principal: Principal,
    { bucket: bucketName, uploadId }: Named,
  ): Promise<{ bucket: BucketRow; upload: PartUploadRow }> {
    const { buckets, partUploads } = this.#deps;
    const bucket = await buckets.find(principal, bucketName);
    const upload = await partUploads.lookUp(uploadId);
    const isSeen = upload?.bucket_id === bucket.id && mayTouch(principal, bucketName, upload.name);
    if (!isSeen || !mayUseUpload(principal, upload)) throw uploadNotFound(uploadId);
    return { bucket, upload };
  }
}

function algorithmOf({ checksum }: PartUploadRow): ChecksumAlgorithm {
  const { algorithm } = JSON.parse(checksum ?? '{}') as { readonly algorithm?: ChecksumAlgorithm };
  return algorithm ?? 'CRC32';
}

function present({ number, size_bytes: size, etag, checksum }: PartRow, upload: PartUploadRow): UploadPart {
  return { number, size, etag, crc32: algorithmOf(upload) === 'CRC32' ? checksum : null };
}

function chosenOf(all: readonly PartRow[], { parts, size }: UploadEnd): readonly PartRow[] {
  const chosen = all.filter(({ number }) => number <= parts);
  if (chosen.length !== parts) {
    const there = new Set(chosen.map(({ number }) => number));
    const missing = Array.from({ length: parts }, (_, at) => at + 1).find((number) => !there.has(number));
    throw refused('parts', `part ${missing} has not arrived`);
  }
  const small = chosen.slice(0, -1).find(({ size_bytes }) => size_bytes < MIN_PART_BYTES);
  if (small !== undefined)
    throw refused('parts', `part ${small.number} has less than ${MIN_PART_BYTES} bytes, and is not the last`);
  const sizeBytes = chosen.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
  if (size !== undefined && size !== sizeBytes) throw refused('size', `the parts have ${sizeBytes} bytes`);
  return chosen;
}

/** The checksum of the whole, as in a VersionRow. */
function checksumOf(
  parts: readonly PartRow[],
  upload: PartUploadRow,
  claimed: string | undefined,
): string | null {
  const { type } = JSON.parse(upload.checksum ?? '{}') as { readonly type?: string };
  const isKnown = algorithmOf(upload) === 'CRC32' && type === ANNOUNCED.type;
  if (!isKnown || parts.some(({ checksum }) => checksum === null)) {
    if (claimed === undefined) return null;
    throw refused('crc32', 'the upload was begun with another checksum');
  }
  const crcOf = ({ checksum }: PartRow) => Buffer.from(checksum ?? '', 'base64');
  const [first, ...rest] = parts as readonly [PartRow, ...PartRow[]];
  const crc = rest.reduce<Buffer>(
    (sum, part) => combineCrc('CRC32', sum, crcOf(part), part.size_bytes),
    crcOf(first),
  );
  const value = crc.toString('base64');
  if (claimed !== undefined && claimed !== value)
    throw refused('crc32', `the CRC-32 of the received bytes is ${value}: send the parts again`);
  return JSON.stringify({ algorithm: ANNOUNCED.algorithm, type, value });
}

function refused(field: string, message: string): AppError {
  return new AppError('invalid_request', `${field}: ${message}`, { fields: [{ field, message }] });
}
