import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cases } from '../../testing/cases.ts';
import { METERS } from './meters.ts';
import { charge, spreadOverHours } from './settlement.ts';

const HOUR = 3_600_000;

test('a machine that ran for 90 seconds costs 90/3600 of its price', () => {
  const asked = { quantity: 90_000n, priceNano: 11_600_000n, carry: 0n };
  assert.deepEqual(charge(METERS['vm.time'], asked), { costMicro: 290n, carry: 0n });
});

test('any split of a quantity costs the same: 100,000 random splits', () => {
  const meters = Object.values(METERS);
  const split = fc.record({
    meter: fc.constantFrom(...meters),
    priceNano: fc.bigInt({ min: 0n, max: 4_000_000_000n }),
    parts: fc.array(fc.bigInt({ min: -(10n ** 6n), max: 10n ** 16n }), { minLength: 1, maxLength: 12 }),
  });
  fc.assert(
    fc.property(split, ({ meter, priceNano, parts }) => {
      const whole = charge(meter, {
        quantity: parts.reduce((sum, part) => sum + part, 0n),
        priceNano,
        carry: 0n,
      });
      let carry = 0n;
      let costMicro = 0n;
      for (const quantity of parts) {
        const one = charge(meter, { quantity, priceNano, carry });
        carry = one.carry;
        costMicro += one.costMicro;
      }
      assert.deepEqual({ costMicro, carry }, whole);
      assert.ok(carry >= 0n && carry < meter.perUnit * 1000n);
    }),
    { numRuns: cases(100_000) },
  );
});

test('spread over hours, nothing is lost and every part is in its hour', () => {
  const time = fc.integer({ min: 0, max: 100 * HOUR });
  fc.assert(
    fc.property(fc.bigInt({ min: -(10n ** 15n), max: 10n ** 18n }), time, time, (quantity, a, b) => {
      const [from, to] = a <= b ? [a, b] : [b, a];
      const parts = spreadOverHours(quantity, from, to);
      assert.equal(
        parts.reduce((sum, part) => sum + part.quantity, 0n),
        quantity,
      );
      for (const { windowStart } of parts) {
        assert.equal(windowStart % HOUR, 0);
        assert.ok(windowStart > from - HOUR && windowStart <= to);
      }
    }),
  );
  const even = spreadOverHours(BigInt(2 * HOUR), HOUR / 2, 2.5 * HOUR);
  assert.deepEqual(even, [
    { windowStart: 0, quantity: BigInt(HOUR / 2) },
    { windowStart: HOUR, quantity: BigInt(HOUR) },
    { windowStart: 2 * HOUR, quantity: BigInt(HOUR / 2) },
  ]);
  const toTheHour = spreadOverHours(BigInt(HOUR), HOUR, 2 * HOUR);
  assert.deepEqual(toTheHour, [{ windowStart: HOUR, quantity: BigInt(HOUR) }]);
});
