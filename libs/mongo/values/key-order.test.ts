import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  Binary,
  BSONRegExp,
  Code,
  Decimal128,
  type Document,
  Double,
  Long,
  MaxKey,
  MinKey,
  ObjectId,
  Timestamp,
} from 'bson';
import fc from 'fast-check';
import { decodeDocument, encodeDocument } from './bson-documents.ts';
import { compareValues, equalValues, keyOf, textKeyOf } from './key-order.ts';

/** MongoDB's order of types, according to its manual. */
const TYPES: readonly ((value: unknown) => boolean)[] = [
  (value) => value instanceof MinKey,
  (value) => value === undefined,
  (value) => value === null,
  (value) =>
    typeof value === 'number' ||
    value instanceof Double ||
    value instanceof Decimal128 ||
    (value instanceof Long && !(value instanceof Timestamp)),
  (value) => typeof value === 'string',
  (value) => typeof value === 'object' && value?.constructor === Object,
  Array.isArray,
  (value) => value instanceof Binary,
  (value) => value instanceof ObjectId,
  (value) => typeof value === 'boolean',
  (value) => value instanceof Date,
  (value) => value instanceof Timestamp,
  (value) => value instanceof BSONRegExp,
  (value) => value instanceof Code,
  (value) => value instanceof MaxKey,
];
const NUMBER = 3;

const rank = (value: unknown) => TYPES.findIndex((is) => is(value));
const sign = (a: number | bigint | string, b: typeof a) => (a < b ? -1 : a > b ? 1 : 0);

/** A number as a fraction; null: it is not finite. */
function fraction(value: unknown): [bigint, bigint] | null {
  const number = value instanceof Double ? value.value : value;
  if (typeof number === 'number') {
    if (!Number.isFinite(number)) return null;
    let [scaled, below] = [number, 1n];
    while (!Number.isInteger(scaled)) [scaled, below] = [scaled * 2, below * 2n];
    return [BigInt(scaled), below];
  }
  const match = /^(-?\d+)(?:\.(\d+))?(?:E([+-]\d+))?$/.exec(String(number));
  if (match === null) return null;
  const [, whole = '', digits = '', exponent = '0'] = match;
  const power = Number(exponent) - digits.length;
  const above = BigInt(whole.replace('-', '') + digits) * (whole.startsWith('-') ? -1n : 1n);
  return power < 0 ? [above, 10n ** BigInt(-power)] : [above * 10n ** BigInt(power), 1n];
}

function compareNumbers(a: unknown, b: unknown): number {
  const special = (value: unknown) => {
    const number = Number(value instanceof Double ? value.value : String(value));
    return Number.isNaN(number) ? -2 : fraction(value) === null ? Math.sign(number) : 0;
  };
  const [left, right] = [fraction(a), fraction(b)];
  if (left === null || right === null) return sign(special(a), special(b));
  return sign(left[0] * right[1], right[0] * left[1]);
}

function compareLists(a: readonly unknown[], b: readonly unknown[]): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const order = plainly(a[i], b[i]);
    if (order !== 0) return order;
  }
  return sign(a.length, b.length);
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  return Buffer.compare(a, b);
}

/** The order, implemented from the manual, without keys. */
function plainly(a: unknown, b: unknown): number {
  const [type, other] = [rank(a), rank(b)];
  if (type !== other) return sign(type, other);
  if (type === NUMBER) return compareNumbers(a, b);
  if (typeof a === 'string') return compareBytes(Buffer.from(a), Buffer.from(b as string));
  if (typeof a === 'boolean') return sign(Number(a), Number(b));
  if (Array.isArray(a)) return compareLists(a, b as unknown[]);
  if (a instanceof Date) return sign(Number(a), Number(b));
  if (a instanceof Timestamp) return sign(a.toBigInt(), (b as Timestamp).toBigInt());
  if (a instanceof ObjectId) return compareBytes(a.id, (b as ObjectId).id);
  if (a instanceof Binary) {
    const c = b as Binary;
    return sign(a.length(), c.length()) || sign(a.sub_type, c.sub_type) || compareBytes(a.value(), c.value());
  }
  if (a instanceof BSONRegExp) {
    const c = b as BSONRegExp;
    return plainly(a.pattern, c.pattern) || plainly(a.options, c.options);
  }
  if (a instanceof Code) return plainly(a.code, (b as Code).code);
  if (type === 5) {
    const fields = (value: unknown) =>
      Object.entries(value as Document).map(([name, inner]) => [rank(inner), name, inner]);
    return compareLists(fields(a), fields(b));
  }
  return 0;
}

const INTERESTING = [
  0,
  1,
  -1,
  0.1,
  2 ** 53,
  2 ** 53 + 2,
  -(2 ** 53),
  2 ** 63,
  5e-324,
  -5e-324,
  1.7e308,
  1e-310,
];
const number = fc.oneof(
  fc.constantFrom(...INTERESTING, -0, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY),
  fc.double(),
  fc.integer(),
  fc.integer({ min: -3, max: 3 }).map((value) => new Double(value)),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((value) => Long.fromBigInt(value)),
  fc.integer({ min: -3, max: 3 }).map((value) => Long.fromBigInt(2n ** 53n + BigInt(value))),
  fc.integer({ min: -3, max: 3 }).map((value) => Long.fromNumber(value)),
  fc
    .tuple(
      fc.bigInt({ min: -(10n ** 34n) + 1n, max: 10n ** 34n - 1n }),
      fc.integer({ min: -6176, max: 6111 }),
    )
    .map(([digits, exponent]) => Decimal128.fromString(`${digits}E${exponent}`)),
  fc
    .tuple(fc.integer({ min: -40, max: 40 }), fc.integer({ min: -3, max: 2 }))
    .map(([digits, exponent]) => Decimal128.fromString(`${digits}E${exponent}`)),
  fc
    .constantFrom('NaN', 'Infinity', '-Infinity', '9007199254740993', '0.1', '1E+6000')
    .map((text) => Decimal128.fromString(text)),
);
const name = fc.stringMatching(/^[a-z]{1,3}$/);
const scalar = fc.oneof(
  number,
  number,
  fc.constantFrom(null, true, false, new MinKey(), new MaxKey()),
  fc.string({ unit: 'binary', maxLength: 6 }),
  fc.constantFrom('', 'a', 'a\0', 'a\0b', 'ab', '\u{1F600}', '\uFFFD'),
  fc.uint8Array({ minLength: 12, maxLength: 12 }).map((bytes) => new ObjectId(bytes)),
  fc.uint8Array({ maxLength: 4 }).map((bytes) => new Binary(bytes, bytes[0] ?? 0)),
  fc.date({ noInvalidDate: true }),
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map((value) => new Timestamp(value)),
  fc.tuple(name, fc.constantFrom('', 'i', 'im')).map(([text, flags]) => new BSONRegExp(text, flags)),
  name.map((text) => new Code(text)),
);
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    scalar,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(name, tie('value'), { maxKeys: 3 }).map((fields) => ({ ...fields })),
  ),
}));

describe('the order of values', () => {
  test('is that of their keys, across all types', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.tuple(value, value), fc.tuple(number, number), fc.tuple(scalar, scalar)),
        ([a, b]) => {
          const order = plainly(a, b);
          assert.equal(Math.sign(compareValues(a, b)), order);
          assert.equal(equalValues(a, b), order === 0);
          assert.equal(textKeyOf(a) === textKeyOf(b), order === 0);
        },
      ),
      { numRuns: 3000 },
    );
  });

  test('is kept in keys of several values, ascending and descending', () => {
    fc.assert(
      fc.property(
        fc.tuple(value, value, value, value, fc.boolean(), fc.boolean()),
        ([a, b, c, d, down, second]) => {
          const order = (down ? -1 : 1) * plainly(a, c) || (second ? -1 : 1) * plainly(b, d);
          assert.equal(
            Math.sign(Buffer.compare(keyOf([a, b], [down, second]), keyOf([c, d], [down, second]))),
            order + 0,
          );
        },
      ),
      { numRuns: 2000 },
    );
  });

  test('survives the way to bytes and back, with every type', () => {
    fc.assert(
      fc.property(value, (held) => {
        const bytes = encodeDocument({ held });
        assert.deepEqual(encodeDocument(decodeDocument(bytes)), bytes);
        assert.equal(compareValues(decodeDocument(bytes).held, held), 0);
      }),
    );
  });
});
