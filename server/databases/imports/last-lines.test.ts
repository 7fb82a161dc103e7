import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Principal } from '../../calls/principal.ts';
import { ABOUT_ENGINES } from '../../drivers/engines/all-engines.ts';
import { Imports } from './imports.ts';
import { LastLines } from './last-lines.ts';

test('the lines of the last rows are known, however many there were', () => {
  const lines = new LastLines(4);
  for (let row = 0; row < 10; row++) lines.push(100 + row);
  assert.equal(lines.count, 10);
  assert.deepEqual(
    [5, 6, 9, 10, -1].map((at) => lines.at(at)),
    [0, 106, 109, 0, 0],
  );
});

test('an import keeps nothing for each row that it has stored', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const language = ABOUT_ENGINES.find(({ name }) => name === 'sqlite')?.rows;
  assert.ok(language);
  const ROWS = 1_500_000;
  const PIECE = 50_000;
  // At the same position in a piece.
  const [FIRST, LAST] = [200_500, 1_400_500];
  const file = async function* () {
    for (let row = 0; row < ROWS; row += PIECE) yield Buffer.from('1\n'.repeat(PIECE));
  };
  let grownBytes = 0;
  const imports = new Imports({
    rows: { importing: async () => ({ language, table: undefined, sizeLimitBytes: 2 ** 30 }) },
    queries: {
      insert: async (_principal, _databaseId, { batches }) => {
        const heldAt = () => {
          collect();
          return process.memoryUsage().heapUsed;
        };
        let [read, before] = [0, 0];
        for await (const batch of batches) {
          read += batch.each().length;
          if (read === FIRST) before = heldAt();
          if (read === LAST) grownBytes = heldAt() - before;
        }
        assert.equal(read, ROWS);
      },
    },
    turns: { during: (_ids, work, signal) => work(signal ?? new AbortController().signal) },
    assertSpace: () => {},
  });
  const ask = { table: 't', columns: {}, isDry: false, empty: 'unquoted', header: false } as const;
  const given = { file: file(), ask, signal: new AbortController().signal };
  const { rows } = await imports.run({} as Principal, 'db-1', given);
  assert.equal(rows, ROWS);
  assert.ok(grownBytes < LAST - FIRST, `${grownBytes} bytes for ${LAST - FIRST} rows`);
});
