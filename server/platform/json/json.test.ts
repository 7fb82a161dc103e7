import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isAppError } from '../errors.ts';
import { parseJson } from './json.ts';

/** The limit in json.ts, which is part of the error. */
const JSON_MAX_DEPTH = 64;
const bytes = (text: string) => Buffer.from(text, 'utf8');
const isRefused = (error: unknown) => isAppError(error, 'invalid_json');

test('any JSON value comes back as it was', () => {
  const value = fc.jsonValue({ noUnicodeString: false, maxDepth: 6 });
  const harmless = value.filter((v) => !/"(__proto__|constructor|prototype)":/.test(JSON.stringify(v)));
  fc.assert(
    fc.property(harmless, (v) => {
      const text = JSON.stringify(v);
      assert.deepEqual(parseJson(bytes(text)), JSON.parse(text));
    }),
  );
});

test('an empty body is undefined', () => {
  assert.equal(parseJson(new Uint8Array()), undefined);
});

test('what is not JSON in UTF-8 is refused', () => {
  const bad = ['{', '{"a":1,}', "{'a':1}", 'undefined', '{"a":1}x', ' ', 'NaN', '[1 2]', '\u0000'];
  for (const text of bad) assert.throws(() => parseJson(bytes(text)), isRefused, text);
  const notUtf8 = [
    Buffer.from([0x22, 0xff, 0x22]),
    Buffer.from([0x22, 0xc3, 0x22]),
    Buffer.from('"a"', 'utf16le'),
  ];
  for (const body of notUtf8) assert.throws(() => parseJson(body), isRefused);
});

test('nesting is accepted up to the limit and refused beyond, in arrays and objects', () => {
  const arrays = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
  const objects = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
  for (const nest of [arrays, objects]) {
    assert.doesNotThrow(() => parseJson(bytes(nest(JSON_MAX_DEPTH))));
    assert.throws(() => parseJson(bytes(nest(JSON_MAX_DEPTH + 1))), isRefused);
  }
  assert.throws(() => parseJson(bytes(arrays(500_000))), isRefused);
});

test('a member that could reach a prototype is refused, wherever it stands', () => {
  for (const key of ['__proto__', '__pr\\u006fto__']) {
    for (const text of [`{"${key}":{}}`, `[{"a":{"${key}":1}}]`]) {
      assert.throws(() => parseJson(bytes(text)), isRefused, text);
    }
  }
  assert.deepEqual(parseJson(bytes('{"a":"__proto__"}')), { a: '__proto__' });
  assert.deepEqual(Object.keys(parseJson(bytes('{"constructor":{"prototype":{}}}')) as object), [
    'constructor',
  ]);
});

test('a refusal says what is wrong, and where', () => {
  const said = (body: Uint8Array) => {
    try {
      parseJson(body);
    } catch (error) {
      return (error as Error).message;
    }
    return 'nothing';
  };
  assert.match(said(bytes('{\n"a":1,\n}')), /^The body is not valid JSON at line 3, column 1: /);
  assert.equal(said(Buffer.from([0x22, 0xff, 0x22])), 'The body is not valid UTF-8');
  assert.equal(said(bytes('['.repeat(65) + ']'.repeat(65))), 'The body is nested deeper than 64 levels');
  assert.equal(said(bytes('{"__proto__":1}')), 'The body has the forbidden member "__proto__"');
});

test('a large body has few values, and texts as long as they are', () => {
  const isTooLarge = (error: unknown) => isAppError(error, 'payload_too_large');
  const texts = [
    '"'.repeat(30_000),
    '\\'.repeat(30_001),
    `${'[{,'.repeat(30_000)}\\`,
    '\\"[,'.repeat(10_000),
  ];
  for (const text of texts) {
    const value = { statement: text, rest: [text, 1] };
    assert.deepEqual(parseJson(bytes(JSON.stringify(value))), value);
  }
  const numbers = (count: number) => `[${Array(count).fill('10').join(',')}]`;
  assert.equal((parseJson(bytes(numbers(20_000))) as unknown[]).length, 20_000);
  assert.throws(() => parseJson(bytes(numbers(20_001))), isTooLarge);
  assert.throws(() => parseJson(bytes(`[${'[],'.repeat(10_001)}1]`)), isTooLarge);
  assert.throws(() => parseJson(bytes(`{"a":"${'x'.repeat(20_000)}\\",${'{},'.repeat(20_000)}`)), isRefused);
  assert.throws(() => parseJson(bytes(`["${'x'.repeat(20_000)}`)), isRefused);
});
