/** A bucket as folders, which "/" in names stands for, and names found by a part of them. */

import type { Principal } from '../calls/principal.ts';
import type { WriteBehind } from '../metadata/write-behind.ts';
import type { BucketRow } from './bucket-sql.ts';
import { presentEntry } from './entries.ts';
import { decodeCursor, encodeCursor, type Listing } from './listing.ts';
import type { EntryRow, ObjectSql } from './object-sql.ts';
import type { BucketEntry } from './schema.ts';

export interface BrowsingDeps {
  readonly store: ObjectSql;
  readonly listing: Pick<Listing, 'bucketFor'>;
  readonly accessTimes: WriteBehind<number, number>;
}

export interface BrowsingQuery {
  readonly prefix: string;
  /** Only objects whose names have this, in all folders below. */
  readonly search?: string | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

interface Page {
  readonly entries: BucketEntry[];
  readonly next: string | null;
}

interface From {
  readonly name: string;
  readonly after: boolean;
}

/** Names looked at in one go: reads are synchronous, and others get their turn between. */
const SCANNED_AT_ONCE = 20_000;
/** Rows read after a folder: what comes next is often a folder too. */
const FIRST_BATCH = 4;
/** Comes right after "/". */
const AFTER_SLASH = '0';
/** In cursors: go on after this object, or after everything in this folder. */
const OBJECT = 1;

export class Browsing {
  readonly #deps: BrowsingDeps;

  constructor(deps: BrowsingDeps) {
    this.#deps = deps;
  }

  /** One page, in the order of UTF-8 bytes. Throws `bucket_not_found`, `scope_required`, `invalid_cursor`. */
  async page(principal: Principal, bucketName: string, query: BrowsingQuery): Promise<Page> {
    const bucket = await this.#deps.listing.bucketFor(principal, bucketName, query.prefix);
    const from = startOf(query);
    return query.search === undefined || query.search === ''
      ? this.#folder(bucket, query, from)
      : this.#found(bucket, { ...query, search: query.search }, from);
  }

  /** What stands directly in a folder. A folder in it costs one look into the index, whatever it holds. */
  async #folder(bucket: BucketRow, { prefix, limit }: BrowsingQuery, start: From): Promise<Page> {
    const entries: BucketEntry[] = [];
    let from = start;
    let batch = limit + 1;
    for (;;) {
      const rows = await this.#deps.store.liveEntries(bucket.id, from, batch);
      for (const row of rows) {
        if (!row.name.startsWith(prefix)) return { entries, next: null };
        if (isBefore(row.name, from)) continue;
        if (entries.length === limit) return { entries, next: cursorAfter(entries.at(-1)) };
        const slash = row.name.indexOf('/', prefix.length);
        if (slash === -1 || row.name === prefix) {
          entries.push(this.#present(row));
          from = { name: row.name, after: true };
        } else {
          const folder = row.name.slice(0, slash + 1);
          entries.push({ kind: 'folder', name: folder, object: null });
          from = afterFolder(folder);
        }
      }
      if (rows.length < batch) return { entries, next: null };
      batch = from.after ? Math.min(batch * 2, limit + 1) : FIRST_BATCH;
    }
  }

  async #found(
    bucket: BucketRow,
    { prefix, search, limit }: BrowsingQuery & { search: string },
    start: From,
  ): Promise<Page> {
    const { store } = this.#deps;
    const words = asciiLower(search);
    const found: EntryRow[] = [];
    let from = start;
    for (;;) {
      const wanted = { words, scan: SCANNED_AT_ONCE, limit: limit + 1 - found.length };
      found.push(...(await store.foundEntries(bucket.id, from, wanted)));
      const own = found.filter(({ name }) => name.startsWith(prefix));
      const entries = own.slice(0, limit).map((row) => this.#present(row));
      if (own.length > limit) return { entries, next: cursorAfter(entries.at(-1)) };
      const last = await store.lastScanned(bucket.id, from, SCANNED_AT_ONCE);
      if (last === undefined || !last.name.startsWith(prefix)) return { entries, next: null };
      from = { name: last.name, after: true };
      await new Promise(setImmediate);
    }
  }

  #present(row: EntryRow): BucketEntry {
    return { kind: 'object', name: row.name, object: presentEntry(row, this.#deps.accessTimes, false) };
  }
}

function startOf({ prefix, cursor }: BrowsingQuery): From {
  if (cursor === undefined) return { name: prefix, after: false };
  const { name, object } = decodeCursor(cursor);
  return object === OBJECT ? { name, after: true } : afterFolder(name);
}

function afterFolder(folder: string): From {
  return { name: folder.slice(0, -1) + AFTER_SLASH, after: false };
}

/** True for rows of a batch that stand in a folder that is listed already. */
function isBefore(name: string, { name: from, after }: From): boolean {
  const order = Buffer.compare(Buffer.from(name), Buffer.from(from));
  return order < 0 || (order === 0 && after);
}

function cursorAfter(entry: BucketEntry | undefined): string | null {
  if (entry === undefined) return null;
  return encodeCursor({ name: entry.name, object: entry.kind === 'object' ? OBJECT : 0, version: 0 });
}

/** As SQLite's lower(). */
function asciiLower(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
