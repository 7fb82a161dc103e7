/** Walks the names of a bucket as folders: names inside a listed subfolder are skipped. */
import type { Awaitable } from '../../metadata/metadata.ts';
import type { From, Order } from './browse-sql.ts';

interface Walk<T> {
  /** Rows by name, in `order`. */
  readonly read: (from: From, limit: number) => Awaitable<T[]>;
  readonly prefix: string;
  /** The separator that ends a folder's name; empty: there are no folders. Default: `/`. */
  readonly delimiter?: string;
  readonly order: Order;
  readonly start: From;
  /** Maximum rows per read. */
  readonly batch: number;
  /** Whether the last read reached the end; default: it returned fewer rows than requested. */
  readonly isEnd?: () => boolean;
}

type Step<T> =
  | { readonly kind: 'folder'; readonly name: string }
  | { readonly kind: 'object'; readonly name: string; readonly row: T };

/** Rows read after a folder: the next entry is often a folder too. */
const FIRST_BATCH = 4;
const LAST_CODE_POINT = 0x10ffff;
const BEFORE_SURROGATES = 0xd7ff;
const AFTER_SURROGATES = 0xe000;
/** No name is greater than a prefix with this: names have at most 1,024 bytes. */
const GREATEST = '\u{10FFFF}'.repeat(256);

/** The direct entries of a folder. A subfolder costs one index lookup, whatever its size. */
export async function* walkFolder<T extends { readonly name: string }>(
  walk: Walk<T>,
): AsyncGenerator<Step<T>> {
  const { read, prefix, delimiter = '/', order, batch: most } = walk;
  let from = walk.start;
  let batch = most;
  for (;;) {
    const rows = await read(from, batch);
    let isFolder = false;
    for (const row of rows) {
      if (!row.name.startsWith(prefix)) return;
      if (isBefore(row.name, from, order)) continue;
      const folder = folderOf(row.name, prefix, delimiter);
      isFolder = folder !== undefined;
      if (folder === undefined) {
        from = { name: row.name, after: true };
        yield { kind: 'object', name: row.name, row };
      } else {
        from = afterFolder(folder, order);
        yield { kind: 'folder', name: folder };
      }
    }
    if (walk.isEnd?.() ?? rows.length < batch) return;
    batch = isFolder ? FIRST_BATCH : Math.min(batch * 2, most);
  }
}

/** The subfolder of `prefix` that contains a name; undefined: none. */
export function folderOf(name: string, prefix: string, delimiter = '/'): string | undefined {
  const end = delimiter === '' ? -1 : name.indexOf(delimiter, prefix.length);
  return end === -1 || name === prefix ? undefined : name.slice(0, end + delimiter.length);
}

/** The position before the first name with the prefix. */
export function startOf(prefix: string, order: Order): From {
  return { name: order === 'asc' ? prefix : prefix + GREATEST, after: false };
}

/** The position after the last name in a folder. */
export function afterFolder(folder: string, order: Order): From {
  if (order === 'desc') return { name: folder, after: true };
  return { name: afterAll(folder), after: false };
}

/** The smallest text above all with this prefix: names are sorted by code points. */
function afterAll(text: string): string {
  const points = Array.from(text, (character) => character.codePointAt(0) ?? 0);
  while (points.at(-1) === LAST_CODE_POINT) points.pop();
  const last = points.pop();
  if (last === undefined) return GREATEST;
  return String.fromCodePoint(...points, last === BEFORE_SURROGATES ? AFTER_SURROGATES : last + 1);
}

/** True for rows of a batch inside a subfolder that is listed already. */
function isBefore(name: string, { name: from, after }: From, order: Order): boolean {
  const difference = Buffer.compare(Buffer.from(name), Buffer.from(from));
  const ahead = order === 'asc' ? difference : -difference;
  return ahead < 0 || (ahead === 0 && after);
}
