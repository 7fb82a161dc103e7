/**
 * Browses or searches a folder by size or time: folders first, by name. Small folders are read and
 * sorted in memory; for large ones an index returns the objects in order, and those of other
 * folders are skipped.
 */

import { type InTurn, SCANNED_AT_ONCE } from '../../platform/concurrency.ts';
import { AppError } from '../../platform/errors.ts';
import { asciiLower } from '../uploads/upload-fields.ts';
import type { BrowsedRow, BrowseSql, KeyRow, Order, SortKey } from './browse-sql.ts';
import { afterFolder, folderOf, startOf, walkFolder } from './folder-walk.ts';

export interface SortedQuery {
  readonly bucketId: number;
  readonly prefix: string;
  /** '': all direct entries of the folder. */
  readonly search: string;
  readonly by: SortKey;
  readonly order: Order;
  readonly limit: number;
  readonly cursor?: string | undefined;
  /** See ScanTurns; default: at once. */
  readonly inTurn?: InTurn;
}

interface SortedPage {
  readonly items: ({ readonly folder: string } | { readonly row: BrowsedRow })[];
  readonly next: string | null;
}

/**
 * The last item of a page. `scan`: the previous page found that the folder is large. A cursor is
 * untrusted: it only gives the position, and the entries are checked like any other.
 */
type Position =
  | { readonly stage: 'start' }
  | { readonly stage: 'folder'; readonly name: string }
  | { readonly stage: 'object' | 'scan'; readonly key: number; readonly id: number };

type Item = { readonly folder: string } | KeyRow;

/** Maximum entries sorted in memory for every page; a larger folder is read through the index. */
const SORTED_MAX = 10_000;
const AT_ONCE: InTurn = async (read) => read();

export class SortedBrowsing {
  readonly #store: BrowseSql;
  readonly #sortedMax: number;

  constructor(store: BrowseSql, sortedMax = SORTED_MAX) {
    this.#store = store;
    this.#sortedMax = sortedMax;
  }

  /** Throws `invalid_cursor`. */
  async page(query: SortedQuery): Promise<SortedPage> {
    const from: Position = query.cursor === undefined ? { stage: 'start' } : decode(query.cursor);
    const few = from.stage === 'scan' ? undefined : await this.#gather(query);
    const items = few
      ? few.filter((item) => isAfter(item, from, query.order)).slice(0, query.limit + 1)
      : await this.#scan(query, from);
    const shown = items.slice(0, query.limit);
    const last = items.length > query.limit ? shown.at(-1) : undefined;
    return {
      items: await this.#rowsOf(query.bucketId, shown),
      next: last === undefined ? null : encode(last, few ? 'object' : 'scan'),
    };
  }

  /** The whole folder, sorted; undefined if it has more than SORTED_MAX entries. */
  async #gather(query: SortedQuery): Promise<Item[] | undefined> {
    const { bucketId, prefix, by, search, order, inTurn = AT_ONCE } = query;
    const folders: Item[] = [];
    const objects: KeyRow[] = [];
    const read = (from: { name: string; after: boolean }, limit: number) =>
      inTurn(() => this.#store.keysByName(bucketId, from, { by, limit }));
    const start = startOf(prefix, 'asc');
    if (search !== '') {
      const found = await this.#find(query);
      if (found === undefined) return undefined;
      objects.push(...found);
    } else {
      let left = this.#sortedMax;
      for await (const step of walkFolder({ read, prefix, order: 'asc', start, batch: SCANNED_AT_ONCE })) {
        if (left-- === 0) return undefined;
        if (step.kind === 'folder') folders.push({ folder: step.name });
        else objects.push(step.row);
      }
    }
    return [...folders, ...objects.sort((a, b) => compare(a, b, order))];
  }

  async #find(query: SortedQuery): Promise<KeyRow[] | undefined> {
    const { bucketId, prefix, by, search, inTurn = AT_ONCE } = query;
    const view = { bucketId, isDeleted: false, order: 'asc' } as const;
    const found: KeyRow[] = [];
    let from = startOf(prefix, 'asc');
    for (;;) {
      const position = from;
      const scan = SCANNED_AT_ONCE;
      const [rows, last] = await inTurn(async () => [
        await this.#store.foundKeys(bucketId, position, { by, words: search, scan }),
        await this.#store.lastName(view, position, scan),
      ]);
      found.push(...rows.filter(({ name }) => name.startsWith(prefix)));
      if (found.length > this.#sortedMax) return undefined;
      if (last === undefined || !last.name.startsWith(prefix)) return found;
      from = { name: last.name, after: true };
    }
  }

  async #scan(query: SortedQuery, from: Position): Promise<Item[]> {
    const isInFolders = from.stage === 'start' || from.stage === 'folder';
    const folders = isInFolders && query.search === '' ? await this.#folders(query, from) : [];
    const left = query.limit + 1 - folders.length;
    return left === 0 ? folders : [...folders, ...(await this.#objects(query, from, left))];
  }

  async #folders(query: SortedQuery, position: Position): Promise<Item[]> {
    const { bucketId, prefix, limit, inTurn = AT_ONCE } = query;
    const folders: Item[] = [];
    const view = { bucketId, isDeleted: false, order: 'asc' } as const;
    const offset = [...prefix].length + 1;
    let from = position.stage === 'folder' ? afterFolder(position.name, 'asc') : startOf(prefix, 'asc');
    while (folders.length <= limit) {
      const start = from;
      const [found, name] = await inTurn(async () => {
        const first = await this.#store.nameInFolder(bucketId, start, { offset, scan: SCANNED_AT_ONCE });
        const last = first ?? (await this.#store.lastName(view, start, SCANNED_AT_ONCE));
        return [first, last?.name];
      });
      if (name === undefined || !name.startsWith(prefix)) return folders;
      const folder = found && folderOf(name, prefix);
      from = folder === undefined ? { name, after: true } : afterFolder(folder, 'asc');
      if (folder !== undefined) folders.push({ folder });
    }
    return folders;
  }

  async #objects(query: SortedQuery, position: Position, limit: number): Promise<KeyRow[]> {
    const { prefix, search, order } = query;
    const found: KeyRow[] = [];
    let after = 'key' in position ? position : { key: order === 'asc' ? -1 : Number.MAX_SAFE_INTEGER, id: 0 };
    for (let batch = limit; ; batch = Math.min(batch * 2, SCANNED_AT_ONCE)) {
      const rows = await this.#keysAfter(query, after, batch);
      for (const row of rows) {
        const isOwn = search === '' ? folderOf(row.name, prefix) === undefined : isFound(row.name, search);
        if (isOwn && row.name.startsWith(prefix)) found.push(row);
        if (found.length === limit) return found;
      }
      const last = rows.at(-1);
      if (rows.length < batch || last === undefined) return found;
      after = last;
    }
  }

  /** The next `limit` in order. */
  #keysAfter(
    { bucketId, by, order, inTurn = AT_ONCE }: SortedQuery,
    after: { readonly key: number; readonly id: number },
    limit: number,
  ): Promise<KeyRow[]> {
    return inTurn(async () => {
      const rows = await this.#store.equal(bucketId, after, { by, order, limit });
      const left = limit - rows.length;
      if (left > 0) rows.push(...(await this.#store.beyond(bucketId, after.key, { by, order, limit: left })));
      return rows;
    });
  }

  async #rowsOf(bucketId: number, items: readonly Item[]): Promise<SortedPage['items']> {
    const ids = items.flatMap((item) => ('id' in item ? [item.id] : []));
    const rows = new Map((await this.#store.byIds(bucketId, ids)).map((row) => [row.object, row]));
    return items.flatMap((item): SortedPage['items'] => {
      if ('folder' in item) return [item];
      const row = rows.get(item.id);
      return row === undefined ? [] : [{ row }];
    });
  }
}

const isFound = (name: string, words: string) => asciiLower(name).includes(words);

function compare(a: Pick<KeyRow, 'key' | 'id'>, b: Pick<KeyRow, 'key' | 'id'>, order: Order): number {
  const difference = a.key - b.key || a.id - b.id;
  return order === 'asc' ? difference : -difference;
}

function isAfter(item: Item, from: Position, order: Order): boolean {
  if (from.stage === 'start') return true;
  if (from.stage !== 'folder') return 'id' in item && compare(item, from, order) > 0;
  return 'id' in item || Buffer.compare(Buffer.from(item.folder), Buffer.from(from.name)) > 0;
}

function encode(item: Item, stage: 'object' | 'scan'): string {
  const parts = 'folder' in item ? ['folder', item.folder] : [stage, item.key, item.id];
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
}

function decode(cursor: string): Position {
  try {
    const parts = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')) as unknown[];
    const [stage, first, second] = parts;
    if (stage === 'folder' && typeof first === 'string') return { stage, name: first };
    const isNumbers = Number.isSafeInteger(first) && Number.isSafeInteger(second);
    if ((stage === 'object' || stage === 'scan') && isNumbers) {
      return { stage, key: first as number, id: second as number };
    }
  } catch {
    // Not valid JSON: refused below.
  }
  throw new AppError('invalid_cursor', 'The cursor is not from this list', {
    hint: 'Use the URL of the previous page’s Link header unchanged',
  });
}
