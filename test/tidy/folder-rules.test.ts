import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkFolderSizes } from './folder-rules.ts';
import { locations, sample } from './sample.ts';

function filesIn(folder: string, count: number, ending = '.ts') {
  return Object.fromEntries(Array.from({ length: count }, (_, n) => [`${folder}/f${n}${ending}`, '']));
}

test('a folder has at most 20 files beside its tests and its subfolders', () => {
  const allowed = { ...filesIn('cli/a', 20), ...filesIn('cli/a', 5, '.test.ts'), ...filesIn('cli/a/b', 20) };
  assert.deepEqual(checkFolderSizes(sample(allowed)), []);
  assert.deepEqual(locations(checkFolderSizes(sample(filesIn('console/src/a', 21)))), ['console/src/a:1']);
});

test('a list that only grows may be longer, and so may folders of others', () => {
  const allowed = { ...filesIn('server/metadata/migrations', 90), ...filesIn('docs', 90) };
  assert.deepEqual(checkFolderSizes(sample(allowed)), []);
});
