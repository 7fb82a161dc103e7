import assert from 'node:assert/strict';
import { test } from 'node:test';
import { writtenResult } from './written-result.ts';

const ABOUT = { columns: [{ name: 'a', type: null }], affected: null, truncated: false };

test('rows are the JSON that they were, and others have their turn between large parts', async () => {
  for (const [count, length] of [
    [0, 0],
    [3, 10],
    [900, 4000],
    [1, 4_000_000],
  ] as const) {
    const values = Array.from({ length: count }, (_, i) => [i, 'ä'.repeat(length)]);
    let written = 0;
    const seen: number[] = [];
    const others = setInterval(() => seen.push(written), 0);
    const rows = Iterator.from(values).map((row) => {
      written++;
      return JSON.stringify(row);
    });
    const result = await writtenResult({ ...ABOUT, rows });
    clearInterval(others);
    assert.ok(String(result.rows) === JSON.stringify(values), `${count} rows of ${length} differ`);
    assert.deepEqual([result.rowCount, result.columns.toJSON()], [count, ABOUT.columns]);
    if (count === 900) assert.ok(new Set(seen).size > 1, 'nobody had a turn');
  }
});
