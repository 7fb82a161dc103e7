import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isAppError } from '../platform/errors.ts';
import { toCredits, toMicro } from './credits.ts';

test('amounts with at most 6 decimals are exact both ways', () => {
  fc.assert(
    fc.property(fc.integer({ min: -1e15, max: 1e15 }), (micro) => {
      assert.equal(toMicro(toCredits(micro), 'amount'), micro);
    }),
  );
  assert.equal(toMicro(0.1, 'amount'), 100_000);
  assert.equal(toMicro(999_999_999.999999, 'amount'), 999_999_999_999_999);
});

test('finer, larger and unreal amounts are refused', () => {
  const bad = [
    0.0000001,
    0.1 + 0.2,
    1.0000005,
    1e9 + 1,
    -1e9 - 1,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    1e300,
  ];
  for (const amount of bad) {
    assert.throws(
      () => toMicro(amount, 'amount'),
      (error) => isAppError(error, 'invalid_request'),
      String(amount),
    );
  }
});
