import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkCircles, checkFileCircles } from './circle-rules.ts';
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

test('files that import each other at run time, directly or by others, are refused; types may', () => {
  const files = {
    'server/a/one.ts': "import { type A, two } from './two.ts';\nimport type { B } from './four.ts';",
    'server/a/two.ts': "export * from '../b/three.ts';",
    'server/b/three.ts': "import '../a/one.ts';\nimport { four } from '../a/four.ts';",
    'server/a/four.ts': "import type { One } from './one.ts';\nconst later = () => import('./two.ts');",
    'server/a/five.ts': "import { one } from './one.ts';",
    'cli/six.ts': "import { seven } from './seven.ts';",
    'cli/seven.ts': "import {\n  six,\n} from './six.ts';",
    'cli/six.test.ts': "import { seven } from './seven.ts';",
  };
  assert.deepEqual(locations(checkFileCircles(sample(files))), [
    'server/a/one.ts:1',
    'server/a/two.ts:1',
    'server/b/three.ts:1',
    'cli/six.ts:1',
    'cli/seven.ts:1',
  ]);
});
