import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testsReached } from './changed-tests.ts';

const SOURCES = [
  { path: 'server/compute/vm.ts', text: "import { id } from '../platform/ids.ts';\n" },
  { path: 'server/compute/vm.test.ts', text: "import { vm } from './vm.ts';\n" },
  { path: 'server/storage/object.test.ts', text: "import { object } from './object.ts';\n" },
  { path: 'server/storage/object.ts', text: "new Worker(new URL('./thread.ts', import.meta.url));\n" },
  { path: 'test/acceptance/vms-life.test.ts', text: "import { kit } from './vms-kit.ts';\n" },
];
const TESTS = [
  'server/compute/vm.test.ts',
  'server/storage/object.test.ts',
  'test/acceptance/quick.test.ts',
  'test/acceptance/vms-life.test.ts',
  'test/faults/vms-kill.test.ts',
  'test/acceptance/storage-upload.test.ts',
];
const reached = (...files: readonly string[]) =>
  testsReached({ files }, { sources: SOURCES, tests: TESTS, isQuick: (file) => /quick|server/.test(file) });

test('a change reaches the tests that import it, however far, and the clouds that run it', () => {
  assert.deepEqual(reached('server/platform/ids.ts'), [
    'server/compute/vm.test.ts',
    'test/acceptance/quick.test.ts',
  ]);
  assert.deepEqual(reached('server/compute/vm.ts'), [
    'server/compute/vm.test.ts',
    'test/acceptance/quick.test.ts',
    'test/acceptance/vms-life.test.ts',
    'test/faults/vms-kill.test.ts',
  ]);
  assert.ok(reached('server/storage/thread.ts').includes('server/storage/object.test.ts'));
});

test('a change of a test, or of what only tests use, reaches no more', () => {
  assert.deepEqual(reached('server/compute/vm.test.ts'), ['server/compute/vm.test.ts']);
  assert.deepEqual(reached('test/acceptance/vms-kit.ts'), ['test/acceptance/vms-life.test.ts']);
  assert.deepEqual(reached('docs/limits.md'), []);
});

test('a change of what nothing imports reaches all of the quick check', () => {
  const quick = TESTS.filter((file) => /quick|server/.test(file));
  assert.deepEqual(reached('package.json'), quick);
  assert.ok(reached('server/metadata/migrations/0001.sql').includes('test/acceptance/quick.test.ts'));
});
