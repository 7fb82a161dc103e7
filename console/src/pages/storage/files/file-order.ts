/**
 * The natural order of a folder: folders first, `2.txt` before `10.txt`, `Été` beside `ete`. The
 * cloud lists names in byte order, page by page, like S3: only a completely loaded list can be
 * sorted differently without rows being inserted later.
 */

/** `object` is null for a folder. */
interface Entry {
  readonly name: string;
  readonly object: unknown;
}

const { compare } = new Intl.Collator(undefined, { numeric: true });

/** `order`: of names; folders stay first. */
export function inReadingOrder<E extends Entry>(entries: readonly E[], order: 'asc' | 'desc'): readonly E[] {
  const way = order === 'asc' ? 1 : -1;
  return [...entries].sort((one, other) => {
    const isFolder = Number(other.object === null) - Number(one.object === null);
    return isFolder || way * (compare(one.name, other.name) || (one.name < other.name ? -1 : 1));
  });
}
