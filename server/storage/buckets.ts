/** Buckets: made, found, changed and removed by their owner. */
import type { Principal } from '../calls/principal.ts';
import { CommitRejected, type Metadata, type Statement } from '../metadata/metadata.ts';
import { type Clock, formatTime } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import type { BucketRow, BucketSql } from './bucket-sql.ts';
import { formatSize } from './format-size.ts';
import { assertBucketName } from './object-names.ts';
import type { Bucket, BucketChange, NewBucket } from './schema.ts';
import type { StorageBilling } from './storage-billing.ts';

const DEFAULT_REGION = 'us-east-1';
const LIST_STEP = 1000;
/** Others that were faster, before we give up. */
const QUOTA_TRIES = 50;

export interface BucketsDeps {
  readonly metadata: Metadata;
  readonly store: BucketSql;
  readonly clock: Clock;
  readonly billing: Pick<StorageBilling, 'assertCredit' | 'bucketCreated' | 'bucketDeleted'>;
}

export class Buckets {
  readonly #deps: BucketsDeps;
  /** Row ids of those that are being emptied for good. */
  readonly #deleting = new Set<number>();

  constructor(deps: BucketsDeps) {
    this.#deps = deps;
  }

  /** Throws `invalid_bucket_name`, `bucket_exists`, `insufficient_credits`, `quota_exceeded`. */
  async create(
    principal: Principal,
    input: NewBucket,
    receipt: (answer: Bucket) => readonly Statement[] = () => [],
  ): Promise<Bucket> {
    assertBucketName(input.name);
    if (principal.bucketLimits !== null) throw limitedKey();
    const { metadata, store, billing } = this.#deps;
    await billing.assertCredit(principal.accountId);
    const row = {
      account_id: principal.accountId,
      name: input.name,
      region: input.region ?? DEFAULT_REGION,
      versioning: Number(input.versioning ?? false),
      encryption: Number(input.encryption ?? false),
      created_at: this.#deps.clock.now(),
    };
    const empty = { id: 0, object_count: 0, size_bytes: 0, version_count: 0, total_bytes: 0 };
    const bucket = present({ ...row, ...empty });
    for (let tries = 1; ; tries++) {
      const billed = await billing.bucketCreated({ ...row, id: { rowIdOf: 0 } });
      try {
        await metadata.commit([store.insert(row), ...billed, ...receipt(bucket)]);
        return bucket;
      } catch (error) {
        if (!(error instanceof CommitRejected)) throw error;
        if (error.index === 0) {
          throw new AppError('bucket_exists', `You already have a bucket named ${input.name}`);
        }
        if (error.index > billed.length || tries === QUOTA_TRIES) throw error;
      }
    }
  }

  /** The caller's bucket of that name. Throws `bucket_not_found`, also when it is someone else's. */
  async find(principal: Principal, name: string): Promise<BucketRow> {
    const row = await this.#deps.store.find(principal.accountId, name);
    if (!row || !mayEnter(principal, name)) throw notFound(name);
    return row;
  }

  async describe(principal: Principal, name: string): Promise<Bucket> {
    return present(await this.find(principal, name));
  }

  /** At most `limit`, oldest first, those after row id `after`. `id` is that row id, for the cursor only. */
  async *list(principal: Principal, after: number, limit: number): AsyncGenerator<ListedBucket> {
    let last = after;
    let left = limit;
    while (left > 0) {
      const rows = await this.#deps.store.list(principal.accountId, last, LIST_STEP);
      for (const row of rows) {
        if (left === 0 || !mayEnter(principal, row.name)) continue;
        left--;
        yield new ListedBucket(row);
      }
      const end = rows.at(-1);
      if (rows.length < LIST_STEP || !end) return;
      last = end.id;
    }
  }

  /** Settings count for what is uploaded from now on; what is stored stays as it is. */
  async change(principal: Principal, name: string, change: BucketChange): Promise<Bucket> {
    if (principal.bucketLimits !== null) throw limitedKey();
    const { metadata, store } = this.#deps;
    const row = await this.find(principal, name);
    const setting = (wanted: boolean | undefined) => (wanted === undefined ? null : Number(wanted));
    const settings = { versioning: setting(change.versioning), encryption: setting(change.encryption) };
    try {
      await metadata.commit([store.update(row.id, settings)]);
    } catch (error) {
      if (error instanceof CommitRejected) throw notFound(name);
      throw error;
    }
    // What others changed at the same time is in the answer too.
    return this.describe(principal, name);
  }

  /** Runs `work` while nothing more is stored in the bucket: who tries hears that it is gone. */
  async whileLeaving<T>({ id }: BucketRow, work: () => Promise<T>): Promise<T> {
    this.#deleting.add(id);
    try {
      return await work();
    } finally {
      this.#deleting.delete(id);
    }
  }

  /** Throws `bucket_not_found` while the bucket is being emptied for good. */
  assertNotDeleting({ id, name }: Pick<BucketRow, 'id' | 'name'>): void {
    if (this.#deleting.has(id)) throw notFound(name);
  }

  /** Throws `bucket_not_empty` while anything is in it, versions and markers included. */
  async removeEmpty(principal: Principal, name: string): Promise<Bucket> {
    if (principal.bucketLimits !== null) throw limitedKey();
    const row = await this.find(principal, name);
    try {
      const { metadata, store, billing } = this.#deps;
      await metadata.commit([store.delete(row.id), ...billing.bucketDeleted(row)]);
    } catch (error) {
      if (!(error instanceof CommitRejected)) throw error;
      if (error.reason === 'expectation') throw notFound(name);
      throw new AppError(
        'bucket_not_empty',
        `The bucket ${name} still holds objects, old versions or delete markers`,
        {
          hint: 'Delete them first, or repeat the call with ?force=true to delete everything in it',
        },
      );
    }
    return present(row);
  }
}

/** A bucket with its place in the list. */
class ListedBucket {
  readonly id: number;
  readonly bucket: Bucket;

  constructor(row: BucketRow) {
    this.id = row.id;
    this.bucket = present(row);
  }

  toJSON(): Bucket {
    return this.bucket;
  }
}

function notFound(name: string): AppError {
  return new AppError('bucket_not_found', `You have no bucket named ${name}`);
}

function mayEnter({ bucketLimits }: Principal, bucket: string): boolean {
  return bucketLimits === null || bucketLimits.some((limit) => limit.bucket === bucket);
}

/** For what changes or empties whole buckets. */
export function limitedKey(): AppError {
  return new AppError(
    'scope_required',
    'This key is limited to some buckets and may not create, change or delete any',
  );
}

function present(row: BucketRow): Bucket {
  return {
    name: row.name,
    region: row.region,
    versioning: row.versioning === 1,
    encryption: row.encryption === 1,
    created_at: formatTime(row.created_at),
    object_count: row.object_count,
    size: row.size_bytes,
    size_formatted: formatSize(row.size_bytes),
    version_count: row.version_count,
    total_size: row.total_bytes,
  };
}
