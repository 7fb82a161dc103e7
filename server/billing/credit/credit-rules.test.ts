import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { BillingState } from './billing-account-store.ts';
import { type CreditFacts, creditStateOf, eventOf, hoursLeft } from './credit.ts';

const STATES: readonly BillingState[] = ['ok', 'low', 'critical', 'grace', 'suspended'];
/** One credit per hour. */
const BURN = 1_000_000_000n;
const CREDIT = 1_000_000n;

const facts = (state: BillingState, change: Partial<CreditFacts> = {}): CreditFacts => ({
  state,
  freeMicro: 0n,
  burnNano: BURN,
  isToppedUp: false,
  isGraceOver: false,
  ...change,
});

test('the forecast decides between ok, low and critical, to the micro-credit', () => {
  const table: [bigint, BillingState][] = [
    [168n * CREDIT, 'ok'],
    [168n * CREDIT - 1n, 'low'],
    [24n * CREDIT, 'low'],
    [24n * CREDIT - 1n, 'critical'],
    [1n, 'critical'],
    [0n, 'grace'],
  ];
  for (const state of ['ok', 'low', 'critical'] as const) {
    for (const [freeMicro, after] of table) {
      for (const isToppedUp of [false, true]) {
        assert.equal(creditStateOf(facts(state, { freeMicro, isToppedUp })), after, `${state}, ${freeMicro}`);
      }
    }
    assert.equal(creditStateOf(facts(state, { burnNano: 0n })), 'ok');
  }
});

/** [credits, topped up, grace over, anything charged runs] → after grace, after suspension. */
const TABLE: readonly [bigint, boolean, boolean, boolean, BillingState, BillingState][] = [
  [0n, false, false, true, 'grace', 'suspended'],
  [0n, false, true, true, 'suspended', 'suspended'],
  [0n, true, false, true, 'grace', 'suspended'],
  [0n, true, true, true, 'suspended', 'suspended'],
  // The credits held for one machine were released: they pay for the others, but start no new grace period …
  [1n, false, false, true, 'grace', 'suspended'],
  [1n, false, true, true, 'grace', 'suspended'],
  // … unless they are enough for an hour.
  [CREDIT, false, false, true, 'critical', 'suspended'],
  [CREDIT, false, true, true, 'critical', 'suspended'],
  [1n, true, false, true, 'critical', 'critical'],
  [1n, true, true, true, 'critical', 'critical'],
  [CREDIT, true, false, true, 'critical', 'critical'],
  [CREDIT, true, true, true, 'critical', 'critical'],
  [0n, false, false, false, 'ok', 'suspended'],
  [0n, false, true, false, 'ok', 'suspended'],
  [0n, true, false, false, 'ok', 'suspended'],
  [0n, true, true, false, 'ok', 'suspended'],
  [1n, false, false, false, 'ok', 'suspended'],
  [1n, false, true, false, 'ok', 'suspended'],
  [CREDIT, false, false, false, 'ok', 'suspended'],
  [CREDIT, false, true, false, 'ok', 'suspended'],
  [1n, true, false, false, 'ok', 'ok'],
  [1n, true, true, false, 'ok', 'ok'],
  [CREDIT, true, false, false, 'ok', 'ok'],
  [CREDIT, true, true, false, 'ok', 'ok'],
];

test('what ends a grace and a suspension: every case', () => {
  assert.equal(new Set(TABLE.map((row) => row.slice(0, 4).join())).size, 3 * 2 * 2 * 2);
  for (const [freeMicro, isToppedUp, isGraceOver, runs, afterGrace, afterSuspension] of TABLE) {
    const change = { freeMicro, isToppedUp, isGraceOver, burnNano: runs ? BURN : 0n };
    const shown = `${freeMicro} ${isToppedUp} ${isGraceOver} ${runs}`;
    assert.equal(creditStateOf(facts('grace', change)), afterGrace, `grace: ${shown}`);
    assert.equal(creditStateOf(facts('suspended', change)), afterSuspension, `suspended: ${shown}`);
  }
});

test('a state that was reached stays while nothing changes', () => {
  const any = fc.record({
    state: fc.constantFrom(...STATES),
    freeMicro: fc.bigInt(0n, 200n * CREDIT),
    burnNano: fc.constantFrom(0n, 1n, BURN, 3n * BURN),
    isToppedUp: fc.boolean(),
    isGraceOver: fc.boolean(),
  });
  fc.assert(
    fc.property(any, (given) => {
      const after = creditStateOf(given);
      // A new state starts without a top-up, and with a grace period that has just begun.
      const next = after === given.state ? given : { ...given, isToppedUp: false, isGraceOver: false };
      assert.equal(creditStateOf({ ...next, state: after }), after);
    }),
  );
});

test('events: worse is announced, and that there are credits again', () => {
  const events = STATES.map((before) => STATES.map((after) => eventOf(before, after, 1n)));
  const [low, exhausted, restored] = ['credits.low', 'credits.exhausted', 'credits.restored'];
  assert.deepEqual(events, [
    [null, low, low, exhausted, exhausted],
    [null, null, low, exhausted, exhausted],
    [null, null, null, exhausted, exhausted],
    [restored, restored, restored, null, exhausted],
    [restored, restored, restored, null, null],
  ]);
  assert.equal(eventOf('grace', 'ok', 0n), null);
});

test('hours that are left', () => {
  assert.equal(hoursLeft(2_500_000n, BURN), 2.5);
  assert.equal(hoursLeft(2_500_000n, 0n), null);
});
