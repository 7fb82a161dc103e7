import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkDeadExports, checkDeadFiles, checkMigrations } from './dead-code.ts';
import { locations, sample } from './sample.ts';

test('files are reached by imports, programs, package.json and tests; the rest is dead', () => {
  const files = sample({
    'package.json': '{"scripts": {"bench": "node bench/run.ts"}}',
    'bench/run.ts': '',
    'bench/old.ts': '',
    'server/main.ts': "import './cloud/cloud.ts';",
    'server/cloud/cloud.ts': "new Worker(programFile('drivers/worker'));",
    'server/drivers/worker.ts': "const lazy = await import('./lazy.ts');",
    'server/drivers/lazy.ts': '',
    'server/forgotten.ts': '',
    'server/only-tested.ts': '',
    'server/only-tested.test.ts': "import './only-tested.ts'; import './testing/cloud.ts';",
    'server/testing/cloud.ts': '',
  });
  const dead = ['bench/old.ts:1', 'server/forgotten.ts:1', 'server/only-tested.ts:1'];
  assert.deepEqual(locations(checkDeadFiles(files)), dead);
});

test('exports that nobody imports are dead', () => {
  const files = sample({
    'server/main.ts':
      "import { used, type Used } from './a.ts';\nimport * as all from './b.ts';\nexport { again } from './c.ts';",
    'server/a.ts':
      'export function used() {}\nexport const unused = 1;\nexport interface Used {}\nexport type Unused = 1;',
    'server/b.ts': 'export class Whatever {}',
    'server/c.ts': 'export const again = 1;\nexport async function never() {}',
  });
  const dead = ['server/a.ts:2', 'server/a.ts:4', 'server/c.ts:2'];
  assert.deepEqual(locations(checkDeadExports(files)), dead);
});

test('a type that the file itself uses is part of a signature', () => {
  const text = 'export interface Options {}\nexport function open(options: Options) {}';
  const files = sample({ 'server/main.ts': "import { open } from './a.ts';", 'server/a.ts': text });
  assert.deepEqual(checkDeadExports(files), []);
});

test('migrations with a gap, a double or another form are refused', () => {
  const at = (...names: string[]) =>
    sample(Object.fromEntries(names.map((name) => [`server/metadata/migrations/${name}`, ''])));
  assert.deepEqual(checkMigrations(at('0001-initial.sql', '0002-more.sql', 'migrations.ts')), []);
  assert.equal(checkMigrations(at('0001-initial.sql', '0003-more.sql')).length, 1);
  assert.equal(checkMigrations(at('0001-initial.sql', '0001-other.sql')).length, 1);
  assert.equal(checkMigrations(at('0001-initial.sql', '0002_more.sql')).length, 1);
});
