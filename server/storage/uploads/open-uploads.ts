/** The multipart uploads in progress of a bucket, for its owner. */
import { type Call, mayTouch, onlyAppends, type Principal } from '../../calls/principal.ts';
import { formatTime } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import type { Buckets } from '../buckets/buckets.ts';
import { formatSize } from '../listing/entries.ts';
import type { OpenUpload } from '../schema.ts';
import type { PartUploadRow, PartUploadSql } from './part-upload-sql.ts';
import { FORGOTTEN_MS, type PartUploads } from './part-uploads.ts';
import { uploadNotFound } from './upload-refusals.ts';

export interface OpenUploadsDeps {
  readonly buckets: Buckets;
  readonly partUploads: PartUploads;
  readonly partUploadSql: PartUploadSql;
}

type Position = Pick<PartUploadRow, 'name' | 'id'>;

const BATCH = 1000;
const START: Position = { name: '', id: 0 };

export class OpenUploads {
  readonly #deps: OpenUploadsDeps;

  constructor(deps: OpenUploadsDeps) {
    this.#deps = deps;
  }

  /**
   * At most `limit` by name and then age, after `cursor`; a limited key sees those of its names.
   * Throws `bucket_not_found`, `invalid_cursor`.
   */
  async page(
    principal: Principal,
    bucketName: string,
    { cursor, limit }: { readonly cursor: string | undefined; readonly limit: number },
  ): Promise<{ uploads: OpenUpload[]; next: string | null }> {
    const bucket = await this.#deps.buckets.find(principal, bucketName);
    const found: PartUploadRow[] = [];
    let after = cursor === undefined ? START : positionOf(cursor);
    for (let isMore = true; isMore && found.length <= limit; ) {
      const rows = await this.#deps.partUploadSql.openPage(bucket.id, after, Math.min(limit + 1, BATCH));
      found.push(...rows.filter(({ name }) => mayTouch(principal, bucketName, name)));
      isMore = rows.length === Math.min(limit + 1, BATCH);
      after = rows.at(-1) ?? after;
    }
    const shown = found.slice(0, limit);
    const last = shown.at(-1);
    return { uploads: shown.map(present), next: found.length > limit && last ? cursorOf(last) : null };
  }

  /**
   * Throws `bucket_not_found`, `scope_required`, and `upload_not_found` also when it is not of the bucket or
   * has ended.
   */
  async abort(call: Call, bucketName: string, uploadId: string): Promise<{ readonly upload_id: string }> {
    const { buckets, partUploads } = this.#deps;
    const bucket = await buckets.find(call.principal, bucketName);
    const upload = await partUploads.lookUp(uploadId);
    const isSeen = upload?.bucket_id === bucket.id && mayTouch(call.principal, bucketName, upload.name);
    if (!isSeen) throw uploadNotFound(uploadId);
    if (!mayUseUpload(call.principal, upload)) {
      throw new AppError('scope_required', 'This key may only append, and another key began the upload', {
        hint: 'Use a key with the scope storage:write',
      });
    }
    return partUploads.abort(call, bucket, { name: upload.name, uploadId });
  }
}

/**
 * Whether a key may add to, complete or abort the upload. A key that only appends may if it began
 * the upload itself: see begunBy in s3/sign/initiator.ts.
 */
export function mayUseUpload(principal: Principal, { acl }: Pick<PartUploadRow, 'acl'>): boolean {
  if (!onlyAppends(principal)) return true;
  const { key } = JSON.parse(acl ?? '{}') as { readonly key?: string };
  return key === principal.credentialId;
}

function present({ upload_id, name, size_bytes, created_at }: PartUploadRow): OpenUpload {
  return {
    upload_id,
    name,
    size: size_bytes,
    size_formatted: formatSize(size_bytes),
    created_at: formatTime(created_at),
    ends_at: formatTime(created_at + FORGOTTEN_MS),
  };
}

function cursorOf({ name, id }: Position): string {
  return Buffer.from(JSON.stringify([name, id])).toString('base64url');
}

function positionOf(cursor: string): Position {
  try {
    const [name, id, ...rest] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[];
    if (typeof name === 'string' && Number.isSafeInteger(id) && rest.length === 0)
      return { name, id: id as number };
  } catch {
    // Not JSON, or not a list: refused below.
  }
  throw new AppError('invalid_cursor', 'The cursor is not from this list');
}
