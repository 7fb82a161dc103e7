import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { readList } from './read-list.ts';

interface Row {
  readonly id: string;
  readonly tags: readonly string[];
}

async function* listed(rows: readonly Row[]): AsyncGenerator<Row> {
  yield* structuredClone(rows);
}
const keyOf = ({ id }: Row) => id;
const merge = (former: Row | undefined, next: Row) =>
  former !== undefined && isDeepStrictEqual(former, next) ? former : next;

test('rows that are as before stay the same objects, wherever they stand now', async () => {
  const former = await readList(
    listed([
      { id: 'a', tags: ['x'] },
      { id: 'b', tags: [] },
    ]),
    {
      former: undefined,
      keyOf,
      merge,
    },
  );
  const next = [
    { id: 'new', tags: [] },
    { id: 'b', tags: ['y'] },
    { id: 'a', tags: ['x'] },
  ];
  const rows = await readList(listed(next), { former, keyOf, merge });
  assert.deepEqual(rows, next);
  assert.equal(rows[2], former[0]);
  assert.notEqual(rows[1], former[1]);
});
