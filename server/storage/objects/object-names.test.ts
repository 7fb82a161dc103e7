import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isAppError } from '../../platform/errors.ts';
import { cases } from '../../testing/cases.ts';
import { assertBucketName, assertObjectName } from '../uploads/upload-fields.ts';

function refuses(check: (name: string) => void, name: string): boolean {
  try {
    check(name);
    return false;
  } catch (error) {
    assert.ok(isAppError(error), String(error));
    assert.match(error.code, /^invalid_(?:bucket|object)_name$/);
    assert.equal(error.fields?.[0]?.field, 'name');
    return true;
  }
}

/** Section 8 of the specification, without a regular expression. */
function keepsTheRules(name: string): boolean {
  const alphanumeric = 'abcdefghijklmnopqrstuvwxyz0123456789';
  const characters = [...name];
  const [first = '', last = ''] = [characters[0], characters.at(-1)];
  return (
    characters.length >= 3 &&
    characters.length <= 63 &&
    characters.every((character) => `${alphanumeric}.-`.includes(character)) &&
    alphanumeric.includes(first) &&
    alphanumeric.includes(last)
  );
}

test('a bucket name is accepted if and only if it keeps the rules', () => {
  const near = fc.string({ unit: fc.constantFrom('a', 'z', '0', '9', '.', '-'), maxLength: 66 });
  const off = fc.string({
    unit: fc.constantFrom('a', '0', '.', '-', 'A', '_', ' ', '\n', 'ä', '/'),
    maxLength: 66,
  });
  fc.assert(
    fc.property(fc.oneof(near, off, fc.string({ unit: 'binary' })), (name) => {
      assert.equal(refuses(assertBucketName, name), !keepsTheRules(name));
    }),
    { numRuns: cases(2000) },
  );
});

test('bucket names at both edges of each rule', () => {
  const good = ['abc', 'a'.repeat(63), 'a..b', '1.2.3.4', '0-0', 'a.-b', 'xn--a', '123'];
  for (const name of good) assert.equal(refuses(assertBucketName, name), false, name);
  const bad = ['', 'a', 'ab', 'a'.repeat(64), 'Abc', 'a_c', 'a c', 'abc\n', '\nabc', 'a\nc', 'äbc', 'ab٣'];
  for (const name of [...bad, '.ab', 'ab.', '-ab', 'ab-', 'a/b', 'a\0b', 'ａbc']) {
    assert.equal(refuses(assertBucketName, name), true, JSON.stringify(name));
  }
});

test('an object name is any text of 1 to 1,024 bytes without control characters', () => {
  const good = [
    'a',
    'a'.repeat(1024),
    'é'.repeat(512),
    '../x',
    '/',
    'a//b',
    '%2e%2e',
    '.',
    'a.',
    '日本 😀',
    '"',
  ];
  for (const name of good) assert.equal(refuses(assertObjectName, name), false, name);
  const bad = ['', 'a'.repeat(1025), 'é'.repeat(513), 'a\0', 'a\r\nb', '\u007f', '\t', '\ud800', 'a\udc00b'];
  for (const name of bad) assert.equal(refuses(assertObjectName, name), true, JSON.stringify(name));
});
