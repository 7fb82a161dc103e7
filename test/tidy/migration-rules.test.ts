import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LANDINGS } from '../long/earlier-code.ts';
import { checkIndexes, checkNarrowing } from './migration-rules.ts';
import { locations, sample } from './sample.ts';

const IN = 'server/metadata/migrations/postgresql/';
const found = (statements: Readonly<Record<string, string>>) =>
  locations(
    checkNarrowing(sample(Object.fromEntries(Object.entries(statements).map(([k, v]) => [IN + k, v])))),
  );

test('what the version before would miss, or cannot give, is found', () => {
  const narrowing = [
    'DROP TABLE notes;',
    'ALTER TABLE notes DROP COLUMN text;',
    'ALTER TABLE notes RENAME COLUMN text TO body;',
    'ALTER TABLE notes ALTER COLUMN text SET NOT NULL;',
    'ALTER TABLE notes ALTER COLUMN size TYPE BIGINT;',
    'ALTER TABLE notes ADD COLUMN owner TEXT COLLATE "C" NOT NULL;',
    'ALTER TABLE notes ADD CONSTRAINT small CHECK (size < 7);',
    'CREATE UNIQUE INDEX notes_text ON notes (text);',
  ];
  for (const statement of narrowing)
    assert.deepEqual(found({ '0045-a.sql': `\n${statement}` }), [`${IN}0045-a.sql:2`], statement);
});

test('additions are none, nor what is older than clusters', () => {
  const adding = [
    'CREATE TABLE notes (text TEXT NOT NULL, UNIQUE (text));',
    'ALTER TABLE notes ADD COLUMN size BIGINT NOT NULL DEFAULT 0;',
    "ALTER TABLE notes ADD COLUMN kind TEXT DEFAULT '' NOT NULL, ADD COLUMN other TEXT;",
    'CREATE INDEX notes_size ON notes (size); DROP INDEX notes_text; -- not DROP TABLE',
    'ALTER TABLE notes DROP CONSTRAINT small;',
    'ALTER INDEX notes_other RENAME TO notes_size;',
  ];
  for (const statement of adding) assert.deepEqual(found({ '0045-a.sql': statement }), [], statement);
  assert.deepEqual(found({ '0044-a.sql': 'DROP TABLE notes;' }), []);
});

test('a version that was given out may be named as the first that did without', () => {
  const drop = 'DROP TABLE notes;';
  const since = (commit: string) => `-- Unneeded since ${commit}: they are files now\n${drop}`;
  assert.deepEqual(found({ '0046-a.sql': since(LANDINGS[0]) }), []);
  assert.deepEqual(found({ '0046-a.sql': since('00000000') }), [`${IN}0046-a.sql:2`]);
});

test('an index of a table that exists is in a migration of indexes alone', () => {
  const of = (text: string) => locations(checkIndexes(sample({ [`${IN}0061-a.sql`]: text })));
  const index = 'CREATE INDEX notes_size ON notes (size);';
  for (const found of [
    `ALTER TABLE notes ADD COLUMN size BIGINT;\n${index}`,
    `ALTER INDEX notes_size RENAME TO notes_old;\n${index}`,
    `DROP INDEX IF EXISTS notes_old;\n${index}`,
  ])
    assert.deepEqual(of(found), [`${IN}0061-a.sql:2`], found);
  for (const right of [
    `-- Sizes.\n${index}`,
    `DROP INDEX notes_old;\n${index}`,
    'CREATE INDEX new ON notes (size);\nDROP INDEX old;\nALTER INDEX new RENAME TO old;',
    `CREATE TABLE notes (size BIGINT);\n${index}`,
  ])
    assert.deepEqual(of(right), [], right);
});
