import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkCircles } from './circle-rules.ts';
import { locations, sample } from './sample.ts';

test('folders that import each other, directly or by others, are refused; tests may', () => {
  const files = {
    'server/a/one.ts': "import '../b/two.ts';",
    'server/b/two.ts': "import '../c/three.ts';",
    'server/c/three.ts': "import '../d/four.ts';\nimport '../a/five.ts';",
    'server/d/four.ts': "import './six.ts';",
    'server/d/six.test.ts': "import '../a/one.ts';",
    'server/drivers/x/seven.ts': "import '../../a/one.ts';\nimport '../y/eight.ts';",
  };
  assert.deepEqual(locations(checkCircles(sample(files))), [
    'server/a/one.ts:1',
    'server/b/two.ts:1',
    'server/c/three.ts:2',
  ]);
});
