import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkDefaultExports, checkPlaces, checkShells, checkSql } from './place-rules.ts';
import { places, sample } from './sample.ts';

const IN_DOMAIN = 'server/storage/objects.ts';

describe('environment, time and randomness', () => {
  const refused = [
    'const x = process.env.HOME;',
    'const x = Date.now();',
    'const x = new Date();',
    'const x = new Date;',
    'const x = Date();',
    'const x = performance.now();',
    'const x = process.hrtime.bigint();',
    'const x = Math.random();',
    'const x = crypto.randomUUID();',
    'const x = randomBytes(16);',
    'spawn(program, [], { shell: true });',
    `const x = \`\${Date.now()}\`;`,
  ];
  for (const text of refused) {
    test(`refuses ${text}`, () => {
      assert.deepEqual(places(checkPlaces(sample({ [IN_DOMAIN]: `\n${text}` }))), [`${IN_DOMAIN}:2`]);
    });
  }

  test('allows them at home, in tests, and in comments and strings', () => {
    const files = sample({
      'server/clock.ts': 'Date.now(); performance.now();',
      'server/config.ts': 'process.env;',
      'server/ids.ts': 'randomBytes(16);',
      'server/storage/objects.test.ts': 'Date.now(); process.env; Math.random();',
      'bench/run.ts': 'performance.now(); process.env;',
      [IN_DOMAIN]: "// Date.now()\nlog('process.env'); new Date(at); formatDate(at); clock.now();",
    });
    assert.deepEqual(checkPlaces(files), []);
  });
});

test('SQL outside a store is refused, prose that only looks like it is not', () => {
  const text = [
    "a('SELECT id FROM buckets');",
    "b('select * from buckets');",
    'c(`\n  INSERT INTO buckets VALUES (?)`);',
    "d('UPDATE buckets SET size = ?');",
    "e('DELETE FROM buckets');",
    "f('Select the bucket you want');",
    "g('Update the key');",
  ].join('\n');
  const found = ['1', '2', '3', '5', '6'].map((line) => `${IN_DOMAIN}:${line}`);
  assert.deepEqual(places(checkSql(sample({ [IN_DOMAIN]: text }))), found);
  const homes = [
    'server/storage/store.ts',
    'server/system/idempotency-store.ts',
    'server/metadata/migrate.ts',
  ];
  for (const home of [
    ...homes,
    'server/drivers/metadata-sqlite/writer.ts',
    'server/storage/objects.test.ts',
  ]) {
    assert.deepEqual(checkSql(sample({ [home]: text })), [], home);
  }
});

test('a shell is refused, programs with argument lists are not', () => {
  const bad = "import { exec } from 'node:child_process';";
  const good = "import { execFile, spawn } from 'node:child_process';\ndatabase.exec('x'); /x/.exec('x');";
  assert.deepEqual(places(checkShells(sample({ 'scripts/a.ts': bad, 'scripts/b.ts': good }))), [
    'scripts/a.ts:1',
  ]);
});

test('default exports are refused, except in the configuration of a tool', () => {
  const text = 'export default {};';
  const files = sample({
    [IN_DOMAIN]: text,
    'a.ts': 'export { x as default };',
    'console/vite.config.ts': text,
  });
  assert.deepEqual(places(checkDefaultExports(files)), [`${IN_DOMAIN}:1`, 'a.ts:1']);
});
