/** Browses a bucket as folders, separated by "/" in names, and searches names for a substring. */

import type { Principal } from '../../calls/principal.ts';
import type { WriteBehind } from '../../metadata/change.ts';
import { formatTime } from '../../platform/clock.ts';
import { type InTurn, SCANNED_AT_ONCE, ScanTurns } from '../../platform/concurrency.ts';
import { AppError } from '../../platform/errors.ts';
import type { BucketEntry } from '../schema.ts';
import { asciiLower } from '../uploads/upload-fields.ts';
import type { BrowsedRow, BrowseSql, From, Order, SortKey, View } from './browse-sql.ts';
import { presentEntry } from './entries.ts';
import { afterFolder, startOf, walkFolder } from './folder-walk.ts';
import { decodeCursor, encodeCursor, type Listing } from './listing.ts';
import { SortedBrowsing } from './sorted-browsing.ts';

export interface BrowsingDeps {
  readonly store: BrowseSql;
  readonly listing: Pick<Listing, 'bucketFor'>;
  readonly accessTimes: WriteBehind<number, number>;
  /** Shared with other walks; default: its own. */
  readonly turns?: Pick<ScanTurns, 'walk'>;
}

export interface BrowsingQuery {
  readonly prefix: string;
  /** Only objects whose names contain this, in all subfolders. */
  readonly search?: string | undefined;
  /** Default: the name. */
  readonly sort?: 'name' | SortKey | undefined;
  readonly order?: Order | undefined;
  /** Lists deleted objects that can be restored, instead of live ones. */
  readonly deleted?: boolean | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
  /** Aborted once nobody waits for the answer. */
  readonly signal?: AbortSignal | undefined;
}

interface Page {
  readonly entries: BucketEntry[];
  readonly next: string | null;
}

type ByName = Pick<BrowsingQuery, 'prefix' | 'limit'> & { readonly view: View; readonly from: From };

/** Cursor positions: after this object, or after everything in this folder. */
const OBJECT = 1;

export class Browsing {
  readonly #deps: BrowsingDeps;
  readonly #sorted: SortedBrowsing;
  readonly #turns: Pick<ScanTurns, 'walk'>;

  constructor(deps: BrowsingDeps) {
    this.#deps = deps;
    this.#turns = deps.turns ?? new ScanTurns();
    this.#sorted = new SortedBrowsing(deps.store);
  }

  /**
   * One page; names are in the order of UTF-8 bytes. Throws `bucket_not_found`, `scope_required`,
   * `invalid_cursor`, and `invalid_request` for deleted objects sorted by anything but name.
   */
  async page(principal: Principal, bucketName: string, query: BrowsingQuery): Promise<Page> {
    const { prefix, limit, cursor, sort = 'name', order = 'asc', deleted = false, signal } = query;
    const { accountId } = principal;
    const { id: bucketId } = await this.#deps.listing.bucketFor(principal, bucketName, prefix);
    const search = asciiLower(query.search ?? '');
    // Searches of a large bucket must not delay the sorting of a small one.
    const walk = { accountId, kind: search === '' ? 'sort' : 'find' };
    if (sort !== 'name') {
      if (deleted) throw deletedByName();
      const wanted = { bucketId, prefix, search, by: sort, order, limit, cursor };
      const { items, next } = await this.#turns.walk(walk, signal, (inTurn) =>
        this.#sorted.page({ ...wanted, inTurn }),
      );
      const entries = items.map((item) =>
        'folder' in item ? folderEntry(item.folder) : this.#present(item.row, false),
      );
      return { entries, next };
    }
    const view = { bucketId, isDeleted: deleted, order };
    const byName = { view, prefix, limit, from: startFrom({ prefix, order, cursor }) };
    if (search === '') return this.#folder(byName);
    return this.#turns.walk(walk, signal, (inTurn) => this.#found({ ...byName, inTurn }, search));
  }

  async #folder({ view, prefix, limit, from: start }: ByName): Promise<Page> {
    const entries: BucketEntry[] = [];
    const read = (from: From, most: number) => this.#deps.store.entries(view, from, most);
    const steps = walkFolder({ read, prefix, order: view.order, start, batch: limit + 1 });
    for await (const step of steps) {
      if (entries.length === limit) return { entries, next: cursorAfter(entries.at(-1)) };
      const isFolder = step.kind === 'folder';
      entries.push(isFolder ? folderEntry(step.name) : this.#present(step.row, view.isDeleted));
    }
    return { entries, next: null };
  }

  async #found(
    { view, prefix, limit, from: start, inTurn }: ByName & { readonly inTurn: InTurn },
    words: string,
  ): Promise<Page> {
    const { store } = this.#deps;
    const found: BrowsedRow[] = [];
    let from = start;
    for (;;) {
      const position = from;
      const wanted = { words, scan: SCANNED_AT_ONCE, limit: limit + 1 - found.length };
      const [rows, last] = await inTurn(async () => [
        await store.found(view, position, wanted),
        await store.lastName(view, position, SCANNED_AT_ONCE),
      ]);
      found.push(...rows);
      const own = found.filter(({ name }) => name.startsWith(prefix));
      const entries = own.slice(0, limit).map((row) => this.#present(row, view.isDeleted));
      if (own.length > limit) return { entries, next: cursorAfter(entries.at(-1)) };
      if (last === undefined || !last.name.startsWith(prefix)) return { entries, next: null };
      from = { name: last.name, after: true };
    }
  }

  #present(row: BrowsedRow, isDeleted: boolean): BucketEntry {
    const object = presentEntry(row, this.#deps.accessTimes, isDeleted);
    const deletedAt = isDeleted ? { deleted_at: formatTime(row.changed_at) } : {};
    return { kind: 'object', name: row.name, object, ...deletedAt };
  }
}

const folderEntry = (name: string): BucketEntry => ({ kind: 'folder', name, object: null });

function startFrom({
  prefix,
  order,
  cursor,
}: {
  prefix: string;
  order: Order;
  cursor?: string | undefined;
}): From {
  if (cursor === undefined) return startOf(prefix, order);
  const { name, object } = decodeCursor(cursor);
  return object === OBJECT ? { name, after: true } : afterFolder(name, order);
}

function cursorAfter(entry: BucketEntry | undefined): string | null {
  if (entry === undefined) return null;
  return encodeCursor({ name: entry.name, object: entry.kind === 'object' ? OBJECT : 0, version: 0 });
}

function deletedByName(): AppError {
  const message = 'must be name for deleted objects';
  return new AppError('invalid_request', `sort: ${message}`, { fields: [{ field: 'sort', message }] });
}
