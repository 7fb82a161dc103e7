import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkPatience } from './patience-rules.ts';
import { locations, sample } from './sample.ts';

test('limits of programs that do not grow with the load are found, and no others', () => {
  const files = sample({
    'server/a.ts': "import { spawn } from 'node:child_process';\nspawn(a, [], { timeout: 5000 });",
    'server/b.ts': 'await startProgram(a, [], {\n  timeout: ASK_MS,\n});',
    'server/c.ts':
      "import { spawn } from 'node:child_process';\nspawn(a, [], { timeout: patienceMs(ASK_MS) });",
    'server/d.ts': 'request(url, { timeout: 5000 });',
    'server/a.test.ts': "import { spawn } from 'node:child_process';\nspawn(a, [], { timeout: 5000 });",
    'scripts/e.ts': "import { spawn } from 'node:child_process';\nspawn(a, [], { timeout: 5000 });",
  });
  assert.deepEqual(locations(checkPatience(files)), ['server/a.ts:2', 'server/b.ts:2']);
});
