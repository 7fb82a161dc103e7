import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { SABOTAGES } from '../../scripts/sabotages.ts';

const ROOT = join(import.meta.dirname, '../..');

test('what each sabotage breaks is there, once', () => {
  const edits = SABOTAGES.flatMap(({ name, edits }) => edits.map((edit) => ({ name, ...edit })));
  const lost = edits.filter(
    ({ file, find }) => readFileSync(join(ROOT, file), 'utf8').split(find).length !== 2,
  );
  assert.deepEqual(
    lost.map(({ name, file }) => `${name}: ${file}`),
    [],
  );
});
