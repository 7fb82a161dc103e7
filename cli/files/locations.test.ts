import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  compareNames,
  matcher,
  remoteLocation,
  remoteObject,
  remoteOnly,
  selection,
  unsafeName,
} from './locations.ts';
import { merged } from './merge.ts';
import { partBytesFor } from './upload.ts';
import { secondsOf } from './version-commands.ts';

test('locations are buckets and names, or paths', () => {
  assert.deepEqual(remoteLocation('s3://photos/a/../b'), { bucket: 'photos', key: 'a/../b' });
  assert.equal(remoteLocation('photos/a'), undefined);
  assert.throws(() => remoteLocation('s3:///a'), /does not have the form s3:/);
  assert.throws(() => remoteObject('s3://photos'), /names no object/);
  const slips = ['s3:/photos/a', 's3:photos/a', 's3//photos/a', 's3/photos/a', 'S3://photos/a'];
  for (const text of [...slips, 's3;//photos/a', 's3:\\\\photos/a', 'photos:a', 's3://s3//photos/a'])
    assert.throws(() => remoteOnly(text), /did you mean s3:\/\/photos\/a\?/);
});

test('patterns match within a folder, and ** across', () => {
  const cases: [string, string, boolean][] = [
    ['*.txt', 'a.txt', true],
    ['*.txt', 'a/b.txt', false],
    ['**/*.txt', 'a/b.txt', true],
    ['**/*.txt', 'b.txt', true],
    ['a/**', 'a/b/c', true],
    ['a?c', 'a/c', false],
    ['a+(b)', 'a+(b)', true],
  ];
  for (const [pattern, name, isMatch] of cases)
    assert.equal(matcher(pattern)(name), isMatch, `${pattern} ${name}`);
});

test('what is excluded wins, and a folder takes along what is in it', () => {
  const isMeant = selection(['*.js'], ['node_modules/']);
  assert.deepEqual(['a.js', 'x/a.js', 'a.ts', 'x/node_modules/a.js'].map(isMeant), [
    true,
    true,
    false,
    false,
  ]);
});

test('names that leave the folder are not safe', () => {
  for (const name of ['..', 'a/../b', '/etc/passwd', 'a\0b', 'a//b', './a', 'a/'])
    assert.ok(unsafeName(name), name);
  for (const name of ['a', '..a', 'a/b...', 'con', '🎉/ü'])
    assert.equal(unsafeName(name, 'linux'), undefined, name);
  for (const name of ['con', 'a/NUL.txt', 'a:b', 'a\\..\\b', 'a.'])
    assert.ok(unsafeName(name, 'win32'), name);
});

test('two lists are merged in the order of their UTF-8 bytes', async () => {
  assert.ok(compareNames('\uff5e', '\u{1f600}') < 0);
  const of = async function* (...names: string[]) {
    for (const name of names) yield { name };
  };
  const seen: string[] = [];
  for await (const { name, source, target } of merged(of('a', 'b', '\uff5e'), of('b', 'c', '\u{1f600}')))
    seen.push(`${source === undefined ? '-' : '+'}${target === undefined ? '-' : '+'}${name}`);
  assert.deepEqual(seen, ['+-a', '++b', '-+c', '+-\uff5e', '-+\u{1f600}']);
});

test('parts grow so that 10,000 are enough', () => {
  assert.equal(partBytesFor(5 * 2 ** 30), 16 * 2 ** 20);
  assert.ok((5 * 2 ** 40) / partBytesFor(5 * 2 ** 40) <= 10_000);
});

test('times are seconds, minutes, hours or days', () => {
  assert.deepEqual(['90', '90s', '15m', '1h', '7d'].map(secondsOf), [90, 90, 900, 3600, 604_800]);
  for (const text of ['0', '8d', '1w', '-1', '']) assert.throws(() => secondsOf(text), /is not a duration/);
});
