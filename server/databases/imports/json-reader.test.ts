import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BrokenText } from './csv-reader.ts';
import { JsonReader, typedNumber } from './json-reader.ts';

const MOST = { mostCharacters: 4 * 2 ** 20 };

test('an object of very many values holds nobody up: it is read fast, or refused', () => {
  const calls = { count: 0 };
  const revive = (_key: string, value: unknown) => {
    calls.count++;
    return value;
  };
  const listOf = (last: string) => `{"a":[${'1,'.repeat(2_000_000)}${last}]}`;
  const [row] = new JsonReader({ ...MOST, revive }).push(listOf('1'));
  assert.equal((row?.value.a as number[] | undefined)?.length, 2_000_001);
  assert.equal(calls.count, 0);
  for (const number of ['12345678901234567', '1.5', '1e3'])
    assert.throws(
      () => new JsonReader({ ...MOST, revive }).push(listOf(number)),
      ({ message, line }: BrokenText) => /more than 50000 values/.test(message) && line === 1,
    );
  assert.equal(calls.count, 0);
  // Each object is counted separately.
  const many = `${`{"a":[${'1,'.repeat(40_000)}1.5]}\n`.repeat(3)}`;
  assert.equal(new JsonReader(MOST).push(many).length, 3);
});

test('a list that was cut off between its objects is not taken for a whole one', () => {
  const read = (text: string) => {
    const reader = new JsonReader(MOST);
    return [...reader.push(text), ...reader.end()].length;
  };
  const whole = ['[]', ' [ ]\n', '[{"a":"]"},\n{"a":[1]}]', '{"a":1}\n{"a":2}', '[{"a":1}]\n[{"a":2}]', ''];
  assert.deepEqual(whole.map(read), [0, 0, 2, 2, 2, 0]);
  for (const text of ['\n[', '\n[{"a":1}', '\n[{"a":1},\n'])
    assert.throws(
      () => read(text),
      ({ message, line }: BrokenText) => /array that begins here is not closed/.test(message) && line === 2,
    );
  assert.throws(
    () => read('{"a":1}\n]'),
    ({ line }: BrokenText) => line === 2,
  );
  assert.throws(() => read('[[{"a":1}]]'), /is a nested array/);
});

test('numbers keep what they say, wherever they stand', () => {
  const read = (text: string, revive?: typeof typedNumber) =>
    new JsonReader(revive === undefined ? MOST : { ...MOST, revive }).push(text)[0]?.value.a;
  assert.equal(read('{"a":9007199254740993}'), '9007199254740993');
  assert.equal(read('{"a":9007199254740991}'), 9007199254740991);
  assert.deepEqual(read('{"a":1.0}', typedNumber), { $numberDouble: '1.0' });
  assert.deepEqual(read('{"a":1E2}', typedNumber), { $numberDouble: '1E2' });
  assert.deepEqual(read('{"a":-9223372036854775808}', typedNumber), { $numberLong: '-9223372036854775808' });
  assert.deepEqual(read('{"a":9223372036854775808}', typedNumber), { $numberDouble: '9223372036854775808' });
  const long = '9'.repeat(300);
  assert.deepEqual(read(`{"a":${long}}`, typedNumber), { $numberDouble: long });
  assert.equal(read('{"a":7}', typedNumber), 7);
});
