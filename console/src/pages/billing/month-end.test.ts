import assert from 'node:assert/strict';
import { test } from 'node:test';
import { costAtMonthEnd } from './month-end.ts';

const at = (text: string) => Date.parse(`${text}Z`);

test('the cost at the end of the month is that so far and the rest of the month at the present rate', () => {
  const now = at('2026-11-30T22:00:00');
  assert.equal(costAtMonthEnd(10, 0.5, { asOf: now, now }), 11);
  assert.equal(costAtMonthEnd(10, 0.5, { asOf: at('2026-11-30T20:00:00'), now }), 12, 'not yet counted use');
  assert.equal(
    costAtMonthEnd(0, 1, { asOf: at('2027-01-01T00:00:00'), now: at('2026-12-01T00:00:00') }),
    744,
  );
  assert.equal(costAtMonthEnd(10, 0, { asOf: now, now }), 10);
});
