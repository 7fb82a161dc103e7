import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { Binary, Decimal128, Long, UUID } from 'bson';
import fc from 'fast-check';
import { TestDocuments } from '../testing/document-database.ts';

const OPERATORS = ['$bitsAllSet', '$bitsAnySet', '$bitsAllClear', '$bitsAnyClear'] as const;

/** The documents of the manual's pages on these operators. */
function manual(t: TestContext): TestDocuments {
  const documents = new TestDocuments(t);
  documents.insert(
    'a',
    { _id: 1, a: 54, binaryValueofA: '00110110' },
    { _id: 2, a: 20, binaryValueofA: '00010100' },
    { _id: 3, a: 20.0, binaryValueofA: '00010100' },
    { _id: 4, a: new Binary(Buffer.from('Zg==', 'base64'), 0), binaryValueofA: '01100110' },
  );
  return documents;
}

describe('bits of a field', () => {
  test('are those of the manual', (t) => {
    const documents = manual(t);
    const ids = (operator: string, operand: unknown) => documents.ids('a', { a: { [operator]: operand } });
    assert.deepEqual(ids('$bitsAllSet', [1, 5]), [1, 4]);
    assert.deepEqual(ids('$bitsAllSet', 50), [1]);
    assert.deepEqual(ids('$bitsAllSet', new Binary(Buffer.from('MA==', 'base64'), 0)), [1]);
    assert.deepEqual(ids('$bitsAnySet', [1, 5]), [1, 4]);
    assert.deepEqual(ids('$bitsAnySet', 35), [1, 4]);
    assert.deepEqual(ids('$bitsAnySet', new Binary(Buffer.from('MA==', 'base64'), 0)), [1, 2, 3, 4]);
    assert.deepEqual(ids('$bitsAllClear', [1, 5]), [2, 3]);
    assert.deepEqual(ids('$bitsAllClear', 35), [2, 3]);
    assert.deepEqual(ids('$bitsAllClear', new Binary(Buffer.from('IA==', 'base64'), 0)), [2, 3]);
    assert.deepEqual(ids('$bitsAnyClear', [1, 5]), [2, 3]);
    assert.deepEqual(ids('$bitsAnyClear', 35), [1, 2, 3, 4]);
    assert.deepEqual(ids('$bitsAnyClear', new Binary(Buffer.from('MA==', 'base64'), 0)), [2, 3, 4]);
  });

  test('numbers are extended by their sign, binary data by 0', (t) => {
    const documents = new TestDocuments(t);
    documents.insert('a', { _id: 1, a: -5 }, { _id: 2, a: Long.fromString('-5') }, { _id: 3, a: 5 });
    assert.deepEqual(documents.ids('a', { a: { $bitsAllSet: [200, 63, 0] } }), [1, 2]);
    assert.deepEqual(documents.ids('a', { a: { $bitsAllClear: [200] } }), [3]);
    documents.insert('b', { _id: 1, a: new UUID('ffffffff-0000-4000-8000-000000000001') });
    assert.deepEqual(documents.ids('b', { a: { $bitsAllSet: [0, 31, 120] } }), [1]);
    assert.deepEqual(documents.ids('b', { a: { $bitsAllClear: [32, 127, 4000] } }), [1]);
  });

  test('other values and numbers that are not whole have none', (t) => {
    const documents = new TestDocuments(t);
    const values = [1.5, '1', null, true, [], 2 ** 64, Number.NaN, Decimal128.fromString('1E+30'), {}];
    documents.insert('a', ...values.map((a, _id) => ({ _id, a })), { _id: 99 });
    for (const operator of OPERATORS) assert.deepEqual(documents.ids('a', { a: { [operator]: [0] } }), []);
    documents.insert('b', { _id: 1, a: [1, 'x'] }, { _id: 2, a: Decimal128.fromString('3') });
    assert.deepEqual(documents.ids('b', { a: { $bitsAllSet: 1 } }), [1, 2]);
  });

  test('what is no mask is refused', (t) => {
    const documents = new TestDocuments(t);
    for (const operator of OPERATORS) {
      const codeOf = (operand: unknown) =>
        documents.codeOf({ find: 'a', filter: { a: { [operator]: operand } } });
      for (const operand of ['1', true, null, {}, [-1], [0.5], ['1'], [2 ** 31]])
        assert.equal(codeOf(operand), 2, JSON.stringify(operand));
      for (const operand of [-1, 1.5, Number.NaN, 2 ** 64]) assert.equal(codeOf(operand), 9, String(operand));
    }
  });

  test('of random numbers are those that arithmetic has', (t) => {
    const documents = new TestDocuments(t);
    const whole = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
    fc.assert(
      fc.property(
        fc.array(whole, { minLength: 1, maxLength: 8 }),
        fc.array(fc.nat(70), { maxLength: 4 }),
        (values, positions) => {
          documents.run({ drop: 'a' });
          documents.insert('a', ...values.map((value, _id) => ({ _id, a: Long.fromBigInt(value) })));
          const bits = (value: bigint) =>
            positions.map((at) => BigInt.asUintN(1, value >> BigInt(at)) === 1n);
          const wanted = {
            $bitsAllSet: (each: boolean[]) => each.every(Boolean),
            $bitsAnySet: (each: boolean[]) => each.some(Boolean),
            $bitsAllClear: (each: boolean[]) => !each.some(Boolean),
            $bitsAnyClear: (each: boolean[]) => !each.every(Boolean),
          };
          for (const operator of OPERATORS)
            assert.deepEqual(
              documents.ids('a', { a: { [operator]: positions } }),
              values.flatMap((value, id) => (wanted[operator](bits(value)) ? [id] : [])),
            );
        },
      ),
      { numRuns: process.env.FAULTS === 'full' ? 5000 : 200 },
    );
  });
});
