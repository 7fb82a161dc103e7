/**
 * SQL of buckets, their counters, and the checksums of their rows (see objects/version-row-sql.ts). A
 * flipped bit in a policy, or in the versioning state, could grant access or delete data, so a
 * damaged row is refused.
 */
import { crc32 } from 'node:zlib';
import type { Awaitable, Reads, Statement } from '../../metadata/metadata.ts';
import { AppError } from '../../platform/errors.ts';

export interface BucketRow extends BucketChecksums {
  readonly id: number;
  readonly account_id: number;
  readonly name: string;
  readonly region: string;
  /** One of VERSIONING. */
  readonly versioning: number;
  readonly encryption: number;
  readonly created_at: number;
  readonly object_count: number;
  readonly size_bytes: number;
  readonly version_count: number;
  readonly total_bytes: number;
  /** See version-row-sql.ts. */
  readonly metadata_bytes: number;
  /** See bucket-settings.ts. */
  readonly settings: string | null;
}

/** A bucket with its owner. */
export interface HeldBucketRow extends BucketRow {
  readonly owner_id: string;
  readonly owner_name: string;
  /** 0: the account is suspended. */
  readonly owner_is_active: number;
}

/**
 * Every column, and what a bucket created like another one does with it: settings are copied. A
 * `state` is read by separate statements.
 */
const COLUMNS = {
  id: 'identity',
  account_id: 'identity',
  name: 'identity',
  region: 'setting',
  versioning: 'setting',
  encryption: 'setting',
  created_at: 'identity',
  object_count: 'counter',
  size_bytes: 'counter',
  version_count: 'counter',
  total_bytes: 'counter',
  metadata_bytes: 'counter',
  settings: 'setting',
  row_crc: 'checksum',
  settings_crc: 'checksum',
  global_name: 'state',
  lifecycle_due: 'state',
  lifecycle_cursor: 'state',
  lifecycle_removed: 'state',
  damaged_at: 'state',
} as const satisfies Record<keyof BucketRow, Kind> & Record<string, Kind>;

type Kind = 'identity' | 'setting' | 'counter' | 'checksum' | 'state';
type Column = keyof typeof COLUMNS;
type ColumnOf<K extends Kind> = { [C in Column]: (typeof COLUMNS)[C] extends K ? C : never }[Column];

export function columnsOf<K extends Kind>(...kinds: readonly K[]): ColumnOf<K>[] {
  const columns = Object.keys(COLUMNS) as Column[];
  return columns.filter((column) => kinds.some((kind) => kind === COLUMNS[column])) as ColumnOf<K>[];
}

function pick<K extends keyof BucketRow>(row: Pick<BucketRow, K>, columns: readonly K[]): Pick<BucketRow, K> {
  return Object.fromEntries(columns.map((column) => [column, row[column]])) as Pick<BucketRow, K>;
}

/** The part of a row that a bucket created like it shares. */
export type BucketLike = Pick<BucketRow, ColumnOf<'setting'>>;
export const likeOf = (row: BucketRow): BucketLike => pick(row, columnsOf('setting'));

/** The counters of a new bucket. */
export const NO_CONTENT = Object.fromEntries(columnsOf('counter').map((column) => [column, 0])) as Record<
  ColumnOf<'counter'>,
  0
>;

export const BUCKET_COLUMNS = columnsOf('identity', 'setting', 'counter', 'checksum').join(', ');
/** The columns that checksums protect, and the checksums. */
export const CHECKED_COLUMNS = columnsOf('identity', 'setting', 'checksum').join(', ');

const GIVEN_COLUMNS = columnsOf('identity', 'setting').filter((column) => column !== 'id');

/** Buckets of accounts that are not closed, with their owners. */
const WITH_OWNER = `SELECT ${BUCKET_COLUMNS.replace(/\w+/g, 'b.$&')}, a.canonical_id AS owner_id,
  a.username AS owner_name, a.is_active AS owner_is_active
  FROM buckets b JOIN accounts a ON a.id = b.account_id WHERE a.closed_at IS NULL`;

export interface StorageTotals {
  readonly buckets: number;
  /** Without earlier versions. */
  readonly objects: number;
  /** All versions. */
  readonly bytes: number;
  readonly metadataBytes: number;
}

export class BucketSql {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** Sums over all accounts. */
  async totals(): Promise<StorageTotals> {
    const found: Awaitable<StorageTotals | undefined> = this.#reads.get(
      `SELECT count(*) AS buckets, coalesce(sum(object_count), 0) AS objects,
         coalesce(sum(total_bytes), 0) AS bytes, coalesce(sum(metadata_bytes), 0) AS "metadataBytes" FROM buckets`,
    );
    return (await found) ?? { buckets: 0, objects: 0, bytes: 0, metadataBytes: 0 };
  }

  find(accountId: number, name: string): Awaitable<BucketRow | undefined> {
    return this.#reads.get(
      `SELECT ${BUCKET_COLUMNS} FROM buckets WHERE account_id = ? AND name = ?`,
      accountId,
      name,
    );
  }

  /** The bucket with that name as other accounts see it, unless its owner's account is closed. */
  holder(name: string): Awaitable<HeldBucketRow | undefined> {
    return this.#reads.get(`${WITH_OWNER} AND b.global_name = ?`, name);
  }

  /** The bucket of an account, by its row id or canonical id. */
  ofAccount(id: number | string, name: string): Awaitable<HeldBucketRow | undefined> {
    const column = typeof id === 'number' ? 'id' : 'canonical_id';
    return this.#reads.get(`${WITH_OWNER} AND b.name = ? AND a.${column} = ?`, name, id);
  }

  /**
   * When the account was closed whose bucket has that name globally; null: it is open; undefined: no bucket
   * has it.
   */
  async heldBy(name: string): Promise<number | null | undefined> {
    const found = await this.#reads.get<{ closed_at: number | null }>(
      'SELECT closed_at FROM buckets b JOIN accounts a ON a.id = b.account_id WHERE b.global_name = ?',
      name,
    );
    return found?.closed_at;
  }

  /** Releases a name held by the bucket of a closed account. */
  freeName(name: string): Statement {
    return {
      sql: `UPDATE buckets SET global_name = NULL WHERE global_name = ?
            AND account_id IN (SELECT id FROM accounts WHERE closed_at IS NOT NULL)`,
      params: [name],
      expectChanges: 1,
    };
  }

  /** Buckets after row id `after`, oldest first. */
  list(accountId: number, after: number, limit: number): Awaitable<BucketRow[]> {
    return this.#reads.all(
      `SELECT ${BUCKET_COLUMNS} FROM buckets WHERE account_id = ? AND id > ? ORDER BY id LIMIT ?`,
      accountId,
      after,
      limit,
    );
  }

  insert(
    bucket: Omit<BucketRow, 'id' | ColumnOf<'counter' | 'checksum'>>,
    globalName: string | null,
  ): Statement {
    return {
      sql: `INSERT INTO buckets (${GIVEN_COLUMNS.join(', ')}, global_name, row_crc, settings_crc)
            VALUES (${GIVEN_COLUMNS.map(() => '?').join(', ')}, ?, ?, ?)`,
      params: [
        ...GIVEN_COLUMNS.map((column) => bucket[column]),
        globalName,
        crcOfBucket(bucket),
        crcOfModes(bucket),
      ],
    };
  }

  /** `bytes`: the growth. Refuses if the settings of all the account's buckets would exceed `most`. */
  expectRoom(accountId: number, bytes: number, most: number): Statement {
    return {
      sql: `UPDATE accounts SET id = id WHERE id = ? AND ? >= ? +
            (SELECT coalesce(sum(octet_length(settings)), 0) FROM buckets WHERE account_id = ?)`,
      params: [accountId, most, bytes, accountId],
      expectChanges: 1,
    };
  }

  /** Refuses unless versioning, encryption and settings are still those of `before`. */
  update({ id, ...before }: Pick<BucketRow, 'id'> & BucketModes, after: BucketModes): Statement {
    return {
      sql: `UPDATE buckets SET versioning = ?, encryption = ?, settings = ?, settings_crc = ?
            WHERE id = ? AND versioning = ? AND encryption = ? AND COALESCE(settings, '') = ?`,
      params: [
        ...[after.versioning, after.encryption, after.settings, crcOfModes(after)],
        ...[id, before.versioning, before.encryption, before.settings ?? ''],
      ],
      expectChanges: 1,
    };
  }

  /**
   * Schedules a run of the lifecycle rules at `due`; null: there are no rules, and the run only
   * reports earlier removals.
   */
  scheduleLifecycle(id: number, due: number | null): Statement {
    if (due === null) {
      return {
        sql: `UPDATE buckets SET lifecycle_due = CASE WHEN lifecycle_removed > 0 THEN 0 END,
              lifecycle_cursor = NULL WHERE id = ?`,
        params: [id],
        expectChanges: 1,
      };
    }
    return {
      sql: 'UPDATE buckets SET lifecycle_due = ?, lifecycle_cursor = NULL WHERE id = ?',
      params: [due, id],
      expectChanges: 1,
    };
  }

  /** Refuses while any object row is left (foreign key) or an upload is open. */
  delete(id: number): Statement {
    return {
      sql: `DELETE FROM buckets WHERE id = ?
            AND NOT EXISTS (SELECT 1 FROM uploads WHERE bucket_id = ? AND state = 0)`,
      params: [id, id],
      expectChanges: 1,
    };
  }
}

/** Fixed when the bucket is created. */
interface BucketFacts {
  readonly name: string;
  readonly region: string;
  readonly created_at: number;
}

/** The owner changes these, always together with the checksum. */
export interface BucketModes {
  readonly versioning: number;
  readonly encryption: number;
  readonly settings: string | null;
}

export interface BucketChecksums {
  /** Null: a row of an earlier version of Cloudlet, not scrubbed yet. */
  readonly row_crc: number | null;
  readonly settings_crc: number | null;
}

export type CheckedBucket = BucketFacts & BucketModes & BucketChecksums;

export const crcOfBucket = ({ name, region, created_at }: BucketFacts) =>
  crc32(JSON.stringify([name, region, created_at]));

export const crcOfModes = ({ versioning, encryption, settings }: BucketModes) =>
  crc32(settings ?? '', crc32(`${versioning},${encryption},`));

/** False: a value of the row was altered. A missing checksum proves nothing. */
export function isSoundBucket(row: CheckedBucket): boolean {
  const { row_crc, settings_crc } = row;
  return (
    (row_crc === null || row_crc === crcOfBucket(row)) &&
    (settings_crc === null || settings_crc === crcOfModes(row))
  );
}

/** The error for a damaged row. */
export function damagedBucket(row: Pick<BucketFacts, 'name'>): AppError {
  return new AppError('data_corrupted', `The settings of the bucket ${row.name} are damaged`, {
    hint: 'List and download its objects over the REST API, store them in a new bucket, then delete this one; or restore it from an earlier recovery point',
  });
}
