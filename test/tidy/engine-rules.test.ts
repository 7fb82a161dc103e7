import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkEngineNames } from './engine-rules.ts';
import { locations, sample } from './sample.ts';

test("engines' names are found outside their folders, branches on them also where they may be named", () => {
  const files = sample({
    'server/drivers/engines/mysql/about.ts': "name: 'mysql',",
    'server/drivers/engines/nothing/about.ts': "name: 'nothing',",
    'server/databases/a.ts': "if (row.engine === 'mysql') return;\nconst like = ['nothing'];",
    'server/databases/engine.ts': "const ENGINES = ['mysql', 'nothing'];\nif (name !== 'nothing') x();",
    'server/commands/migrate.ts': "if (to === 'mysql') x();",
    'cli/b.ts': "const packages = { mysql: 'mysql-client' };\nuse('nothings');",
    'console/src/c.tsx': 'case "nothing": // mysql',
    'server/databases/a.test.ts': "x('mysql');",
    'server/testing/d.ts': "x('mysql');",
    'bench/e.ts': "x('mysql');",
  });
  assert.deepEqual(
    locations(checkEngineNames(files)).filter((at) => /\/(?:[a-e]|engine|migrate)\./.test(at)),
    [
      'server/databases/a.ts:1',
      'server/databases/a.ts:2',
      'server/databases/engine.ts:2',
      'cli/b.ts:1',
      'console/src/c.tsx:1',
    ],
  );
});

test('a file of the list that names none any more is taken off', () => {
  const files = sample({
    'server/drivers/engines/mysql/about.ts': "name: 'mysql',",
    'server/databases/engine.ts': 'const ENGINES = [];',
    'server/commands/migrate.ts': "to === 'mysql'",
  });
  const found = checkEngineNames(files).filter(({ path }) => /engine\.ts|migrate/.test(path));
  assert.deepEqual(
    found.map(({ message }) => message),
    ['names no engine: take it off engine-rules.ts'],
  );
});
