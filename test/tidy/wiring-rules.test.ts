import assert from 'node:assert/strict';
import { test } from 'node:test';
import { locations, sample } from './sample.ts';
import { checkWiring } from './wiring-rules.ts';

test('classes, tests and too many lines are found in the wiring, and nowhere else', () => {
  const files = sample({
    'server/cloud/cloud.ts': 'const a = 1;\nconst b = 2;\n',
    'server/cloud/blobs.ts': '// its own class\nexport class Blobs {}\n',
    'server/cloud/cloud.test.ts': 'test();\n',
    'server/storage/objects.ts': 'export class Objects {}\n',
  });
  assert.deepEqual(locations(checkWiring(files, 5)), [
    'server/cloud/blobs.ts:2',
    'server/cloud/cloud.test.ts:1',
  ]);
  const [found] = checkWiring(files, 4).filter(({ message }) => /has 5 lines, at most 4/.test(message));
  assert.equal(found?.path, 'server/cloud/blobs.ts');
});
