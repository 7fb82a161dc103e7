import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../clock.ts';
import { AppError } from '../errors.ts';
import { LoginThrottle, networkOf } from './login-throttle.ts';

function waitOf(throttle: LoginThrottle, attempt: { name: string; address: string }): number {
  try {
    throttle.check(attempt);
    return 0;
  } catch (error) {
    assert.ok(error instanceof AppError && error.code === 'rate_limited');
    return error.retryAfterSeconds ?? 0;
  }
}

const ada = { name: 'ada', address: '10.0.0.1' };

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
  assert.ok(waitOf(throttle, { name: 'ada', address: '10.0.0.254' }) > 0);
  assert.equal(waitOf(throttle, { name: 'ada', address: '10.0.1.1' }), 0);
  assert.equal(waitOf(throttle, { name: 'bob', address: '10.0.0.1' }), 0);
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
  for (let i = 0; i < 99; i++) throttle.failed({ name: `n${i}`, address: '10.0.0.1' });
  assert.equal(waitOf(throttle, ada), 1);
  throttle.failed({ name: 'one more', address: '10.0.0.1' });
  assert.equal(waitOf(throttle, ada), 0);
});

test('networks: /24 of IPv4, /64 of IPv6', () => {
  const networks: Record<string, string> = {
    '192.168.7.9': '192.168.7.0/24',
    '::ffff:192.168.7.9': '192.168.7.0/24',
    '::FFFF:192.168.7.9': '192.168.7.0/24',
    '2001:db8:1:2:3:4:5:6': '2001:db8:1:2::/64',
    '2001:0DB8:0001:0002:ffff::1': '2001:db8:1:2::/64',
    '2001:db8::1': '2001:db8:0:0::/64',
    '2001:db8:1::2:3:4:5': '2001:db8:1:0::/64',
    '1::2:3:4:5:6:7': '1:0:2:3::/64',
    '::1': '0:0:0:0::/64',
    '::': '0:0:0:0::/64',
    '::2:3:4:5:6:7:8': '0:2:3:4::/64',
    'fe80::1%eth0': 'fe80:0:0:0::/64',
    '64:ff9b::1.2.3.4': '64:ff9b:0:0::/64',
    '1:2:3:4:5:6:1.2.3.4': '1:2:3:4::/64',
    'not an address': 'not an address',
  };
  for (const [address, network] of Object.entries(networks))
    assert.equal(networkOf(address), network, address);
});
