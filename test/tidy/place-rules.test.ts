import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkSql } from './place-rules.ts';
import { places, sample } from './sample.ts';

const IN_DOMAIN = 'server/storage/objects.ts';

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
    'server/storage/object-sql.ts',
    'server/calls/idempotency-store.ts',
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
