/** Lists a bucket: by pages with a cursor, or as a stream at constant memory. */
import type { Principal } from '../../calls/principal.ts';
import type { WriteBehind } from '../../metadata/change.ts';
import { AppError } from '../../platform/errors.ts';
import type { BucketRow } from '../buckets/bucket-sql.ts';
import type { Buckets } from '../buckets/buckets.ts';
import type { EntryRow, ObjectSql } from '../objects/object-sql.ts';
import { notFound, type Objects } from '../objects/objects.ts';
import type { ObjectDetails, ObjectEntry } from '../schema.ts';
import { presentEntry, presentLock } from './entries.ts';

export interface ListingDeps {
  readonly store: ObjectSql;
  readonly buckets: Buckets;
  readonly accessTimes: WriteBehind<number, number>;
}

export interface ListingQuery {
  readonly prefix: string;
  readonly versions: boolean;
}

/** The last entry shown. In listings without versions only the name counts. */
interface Position {
  readonly name: string;
  /** Row ids. */
  readonly object: number;
  readonly version: number;
}

/** The start and length of the next read. */
interface Step {
  readonly from: Position | undefined;
  readonly limit: number;
}

const STREAM_PAGE = 1000;

export class Listing {
  readonly #deps: ListingDeps;

  constructor(deps: ListingDeps) {
    this.#deps = deps;
  }

  /**
   * At most `limit` entries by name (UTF-8 byte order); `cursor` continues an earlier page. Throws
   * `invalid_cursor`.
   */
  async page(
    principal: Principal,
    bucketName: string,
    query: ListingQuery & { limit: number; cursor?: string },
  ): Promise<{ entries: ObjectEntry[]; next: string | null }> {
    const bucket = await this.bucketFor(principal, bucketName, query.prefix);
    const from = query.cursor === undefined ? undefined : decodeCursor(query.cursor);
    const rows = await this.#rows(bucket, query, { from, limit: query.limit + 1 });
    const shown = rows.slice(0, query.limit);
    const last = shown.at(-1);
    return {
      entries: shown.map((row) => presentEntry(row, this.#deps.accessTimes, query.versions)),
      next: rows.length > query.limit && last ? encodeCursor(positionOf(last)) : null,
    };
  }

  /** Every entry as JSON text. Checks the bucket at once, then reads page by page as the consumer asks. */
  async *stream(principal: Principal, bucketName: string, query: ListingQuery): AsyncGenerator<string> {
    const bucket = await this.bucketFor(principal, bucketName, query.prefix);
    let from: Position | undefined;
    for (;;) {
      const rows = await this.#rows(bucket, query, { from, limit: STREAM_PAGE });
      for (const row of rows) yield JSON.stringify(presentEntry(row, this.#deps.accessTimes, query.versions));
      const last = rows.at(-1);
      if (rows.length < STREAM_PAGE || !last) return;
      from = positionOf(last);
      // Reads are synchronous: other requests run between pages.
      await new Promise(setImmediate);
    }
  }

  /** Throws `bucket_not_found`, or `scope_required` when the key's limits do not cover the prefix. */
  async bucketFor(principal: Principal, name: string, prefix: string): Promise<BucketRow> {
    const bucket = await this.#deps.buckets.findAny(principal, name);
    const limits = principal.bucketLimits?.filter((limit) => limit.bucket === name);
    if (limits && !limits.some((limit) => prefix.startsWith(limit.prefix))) {
      const prefixes = limits.map((limit) => limit.prefix).join(', ');
      throw new AppError('scope_required', `This key can only list names that begin with: ${prefixes}`, {
        hint: 'Set ?prefix= accordingly',
      });
    }
    return bucket;
  }

  async #rows(bucket: BucketRow, query: ListingQuery, { from, limit }: Step): Promise<EntryRow[]> {
    const { store } = this.#deps;
    const start = from ? { name: from.name, after: true } : { name: query.prefix, after: false };
    if (!query.versions) return withPrefix(await store.liveEntries(bucket.id, start, limit), query.prefix);
    // The rest of the last page's last name comes first. A cursor may be forged, so its position is
    // checked against bucket and prefix like everything else.
    const ended = from && { id: from.object, bucket_id: bucket.id };
    const rest = ended ? await store.versionsOf(ended, from.version, limit) : [];
    const more = rest.length === limit ? [] : await store.allEntries(bucket.id, start, limit - rest.length);
    return withPrefix([...rest, ...more], query.prefix);
  }
}

/**
 * Rows come in byte order, so those with the prefix are contiguous; a forged cursor may begin before them.
 */
function withPrefix(rows: EntryRow[], prefix: string): EntryRow[] {
  return prefix === '' ? rows : rows.filter((row) => row.name.startsWith(prefix));
}

function positionOf(row: EntryRow): Position {
  return { name: row.name, object: row.object, version: row.id };
}

export function encodeCursor({ name, object, version }: Position): string {
  return Buffer.from(JSON.stringify([name, object, version])).toString('base64url');
}

export function decodeCursor(text: string): Position {
  try {
    const parts = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as unknown;
    if (Array.isArray(parts) && parts.length === 3) {
      const [name, object, version] = parts as unknown[];
      if (typeof name === 'string' && Number.isSafeInteger(object) && Number.isSafeInteger(version)) {
        return { name, object: object as number, version: version as number };
      }
    }
  } catch {
    // Not valid JSON: refused below.
  }
  throw new AppError('invalid_cursor', 'The cursor is not from this list', {
    hint: 'Use the URL of the previous page’s Link header unchanged',
  });
}

/** A page of an object's versions, and the position of the next one. */
interface Description {
  readonly details: ObjectDetails;
  /** Row id of the last version on the page; null: it is the last page. */
  readonly next: number | null;
}

export interface VersionPage {
  readonly limit: number;
  /** Row id of a version; the page starts with the next older one. */
  readonly before?: number | undefined;
}

export class ObjectInspector {
  readonly #deps: { objects: Objects; store: ObjectSql; accessTimes: WriteBehind<number, number> };

  constructor(deps: { objects: Objects; store: ObjectSql; accessTimes: WriteBehind<number, number> }) {
    this.#deps = deps;
  }

  /**
   * The current version or, behind a delete marker, the marker, with a page of all versions. Throws
   * `object_not_found`.
   */
  async describe(
    principal: Principal,
    objectId: string,
    { limit, before = Number.MAX_SAFE_INTEGER }: VersionPage,
  ): Promise<Description> {
    const { objects, store, accessTimes } = this.#deps;
    const object = await objects.findFor(principal, objectId);
    const [newest] = await store.versionsOf(object, Number.MAX_SAFE_INTEGER, 1);
    if (!newest) throw notFound(objectId);
    const rows = await store.versionsOf(object, before, limit + 1);
    const shown = rows.slice(0, limit);
    const isTruncated = rows.length > limit;
    const details = {
      ...presentEntry(newest, accessTimes, false),
      bucket: object.bucket,
      version_id: newest.version_id,
      is_delete_marker: newest.blob === null,
      ...presentLock(newest),
      versions: shown.map((row) => presentEntry(row, accessTimes, true)),
      versions_truncated: isTruncated,
    };
    return { details, next: isTruncated ? (shown.at(-1)?.id ?? null) : null };
  }
}
