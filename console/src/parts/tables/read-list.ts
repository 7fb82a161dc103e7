/** All rows of a list, for lists that may have ten thousand. */

interface Read<Row> {
  /** The rows read before. */
  readonly former: readonly Row[] | undefined;
  readonly keyOf: (row: Row) => string;
  /** TanStack's `replaceEqualDeep`: gives the former row when the next one equals it. */
  readonly merge: (former: Row | undefined, next: Row) => Row;
}

/**
 * Rows that did not change are the same objects as before, so that they are not rendered again. They are
 * compared page by page as these arrive, and not all at once by the query itself, which needs
 * `structuralSharing: false`.
 */
export async function readList<Row>(list: AsyncIterable<Row>, read: Read<Row>): Promise<Row[]> {
  const { former = [], keyOf, merge } = read;
  const known = new Map(former.map((row) => [keyOf(row), row]));
  const rows: Row[] = [];
  for await (const row of list) rows.push(merge(known.get(keyOf(row)), row));
  return rows;
}
