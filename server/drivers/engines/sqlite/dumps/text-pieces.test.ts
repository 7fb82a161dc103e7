/** Blobs that are kept apart from the text of their statements. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LongBlobs } from './text-pieces.ts';

const BLOB = `X'${'0a'.repeat(60_000)}'`;

test('a statement holds a bounded number of bytes in its blobs, and frees them when it is run', () => {
  const blobs = new LongBlobs(60_000);
  const read = (count: number) => {
    let rest = 'INSERT INTO a VALUES(1';
    for (let one = 0; one < count; one++) {
      rest = blobs.add(rest, `,${BLOB.slice(0, -1)}`);
      rest = blobs.add(rest, "'");
    }
    return rest;
  };
  for (let statement = 0; statement < 3; statement++) {
    const taken = Object.values(blobs.take(read(4)) ?? {});
    assert.deepEqual(
      taken.map(({ length }) => length),
      [60_000, 60_000, 60_000, 60_000],
    );
  }
  assert.throws(() => read(5), /the blobs of a statement have at most .* MiB together/);
});
