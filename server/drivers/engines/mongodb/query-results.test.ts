import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Long, Timestamp } from 'bson';
import { resultOf } from './query-results.ts';

const find = (documents: readonly object[], maxBytes: number) => {
  const reply = { cursor: { firstBatch: documents, id: Long.ZERO }, ok: 1 };
  return resultOf({ find: 'c' }, reply, { maxRows: 1000, maxBytes });
};
const bytesOf = ({ columns, rows }: ReturnType<typeof find>) => JSON.stringify([columns, rows]).length;

test('names of members count, too, and the empty places of the others', () => {
  const long = Array.from({ length: 20 }, (_, i) => ({ [`${i}${'n'.repeat(1000)}`]: 1 }));
  const wide = Array.from({ length: 50 }, (_, i) =>
    Object.fromEntries(Array.from({ length: 20 }, (__, j) => [`a${i}_${j}`, 1])),
  );
  for (const documents of [long, wide]) {
    const result = find(documents, 10_000);
    assert.ok(result.truncated && result.rows.length > 0 && result.rows.length < documents.length);
    // Rows before the last are padded; the padding counts, so it is at most the allowed amount.
    assert.ok(bytesOf(result) <= 10_000, `${bytesOf(result)} bytes`);
    assert.equal(result.columns.length, result.rows[0]?.length);
  }
  const whole = find(long, 100_000);
  assert.deepEqual([whole.rows.length, whole.columns.length, whole.truncated], [20, 20, false]);
});

test('a timestamp is not taken for a number', () => {
  assert.deepEqual(find([{ at: new Timestamp({ t: 1, i: 2 }) }], 1000).rows, [
    [{ $timestamp: { t: 1, i: 2 } }],
  ]);
});
