import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { type Attempt, LoginThrottle } from './login-throttle.ts';

function waitOf(throttle: LoginThrottle, attempt: Attempt): number {
  try {
    throttle.assertAllowed(attempt);
    return 0;
  } catch (error) {
    assert.ok(error instanceof AppError && error.code === 'rate_limited');
    return error.retryAfterSeconds ?? 0;
  }
}

const ada = { target: 'ada', address: '10.0.0.1' };

test('after 10 failures the wait grows, and passes', () => {
  const clock = new FakeClock();
  const throttle = new LoginThrottle({ clock, freeFailures: 10 });
  for (let i = 0; i < 9; i++) throttle.failed(ada);
  assert.equal(waitOf(throttle, ada), 0);
  const waits = [];
  for (let i = 0; i < 12; i++) {
    throttle.failed(ada);
    waits.push(waitOf(throttle, ada));
    clock.advance(waits.at(-1) === undefined ? 0 : (waits.at(-1) ?? 0) * 1000 - 1);
    assert.equal(waitOf(throttle, ada), 1);
    clock.advance(1);
    assert.equal(waitOf(throttle, ada), 0);
  }
  assert.deepEqual(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]);
});

test('the wall clock does not matter', () => {
  const clock = new FakeClock();
  const throttle = new LoginThrottle({ clock, freeFailures: 1 });
  throttle.failed(ada);
  clock.jump(1e9);
  assert.equal(waitOf(throttle, ada), 1);
});

test('other networks and other accounts are not affected; the same network is', () => {
  const throttle = new LoginThrottle({ clock: new FakeClock(), freeFailures: 1 });
  for (let i = 0; i < 50; i++) throttle.failed(ada);
  assert.ok(waitOf(throttle, { target: 'ada', address: '10.0.0.254' }) > 0);
  assert.equal(waitOf(throttle, { target: 'ada', address: '10.0.1.1' }), 0);
  assert.equal(waitOf(throttle, { target: 'bob', address: '10.0.0.1' }), 0);
});

test('a success, or an hour of quiet, clears', () => {
  const clock = new FakeClock();
  const throttle = new LoginThrottle({ clock, freeFailures: 2 });
  throttle.failed(ada);
  throttle.succeeded(ada);
  throttle.failed(ada);
  assert.equal(waitOf(throttle, ada), 0);
  clock.advance(3600_000);
  throttle.failed(ada);
  assert.equal(waitOf(throttle, ada), 0);
  throttle.failed(ada);
  assert.equal(waitOf(throttle, ada), 1);
});

test('memory is bounded: the oldest pair is forgotten', () => {
  const throttle = new LoginThrottle({ clock: new FakeClock(), freeFailures: 1, maxPairs: 100 });
  throttle.failed(ada);
  for (let i = 0; i < 99; i++) throttle.failed({ target: `n${i}`, address: '10.0.0.1' });
  assert.equal(waitOf(throttle, ada), 1);
  throttle.failed({ target: 'one more', address: '10.0.0.1' });
  assert.equal(waitOf(throttle, ada), 0);
});
