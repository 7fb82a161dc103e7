import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../platform/clock.ts';
import { isAppError } from '../../platform/errors.ts';
import { DEVICE_CODE_MS, DeviceLogins, POLL_INTERVAL_MS, shownCode } from './device-logins.ts';

const asked = (address = '192.0.2.1') => ({ name: 'CLI on laptop', scopes: ['*'] as const, address });
const refusedAs = (code: string) => (error: unknown) => isAppError(error, code as 'slow_down');
const open = (limits?: { maxAll?: number; maxPerSource?: number }) => {
  const clock = new FakeClock();
  return { clock, logins: new DeviceLogins<string>(clock, limits) };
};

test('a code is decided once and fetched once', () => {
  const { clock, logins } = open();
  const { deviceCode, userCode } = logins.begin(asked());
  assert.match(userCode, /^[BCDFGHJKLMNPQRSTVWXZ]{8}$/);
  assert.throws(() => logins.poll(deviceCode), refusedAs('authorization_pending'));
  assert.equal(logins.undecided(shownCode(userCode).toLowerCase())?.name, 'CLI on laptop');
  assert.equal(logins.decide(userCode, 'granted'), true);
  assert.equal(logins.decide(userCode, 'by another'), false);
  assert.equal(logins.undecided(userCode), undefined);
  clock.advance(POLL_INTERVAL_MS);
  assert.equal(logins.poll(deviceCode), 'granted');
  assert.throws(() => logins.poll(deviceCode), refusedAs('invalid_grant'));
});

test('a refusal is told, and whoever polls too soon must wait longer', () => {
  const { clock, logins } = open();
  const { deviceCode, userCode } = logins.begin(asked());
  assert.throws(() => logins.poll(deviceCode), refusedAs('authorization_pending'));
  clock.advance(POLL_INTERVAL_MS - 1);
  assert.throws(() => logins.poll(deviceCode), refusedAs('slow_down'));
  clock.advance(POLL_INTERVAL_MS);
  assert.throws(() => logins.poll(deviceCode), refusedAs('slow_down'), 'the interval is 10 s now');
  logins.decide(userCode, 'refused');
  clock.advance(3 * POLL_INTERVAL_MS);
  assert.throws(() => logins.poll(deviceCode), refusedAs('access_denied'));
});

test('a code ends after its time, decided or not', () => {
  const { clock, logins } = open();
  const { deviceCode, userCode } = logins.begin(asked());
  clock.advance(DEVICE_CODE_MS - 1);
  assert.equal(logins.decide(userCode, 'granted'), true);
  clock.advance(1);
  assert.throws(() => logins.poll(deviceCode), refusedAs('invalid_grant'));
  assert.equal(logins.undecided(logins.begin(asked()).userCode)?.scopes[0], '*');
});

test('an address with many open is never refused: its own oldest ends, and nobody else’s', () => {
  const { logins } = open({ maxPerSource: 10 });
  const other = logins.begin(asked('2001:db8:0:1::1'));
  const codes = Array.from({ length: 10 }, () => logins.begin(asked('2001:db8::1')));
  const late = logins.begin(asked('2001:db8::2')); // the same /64
  assert.throws(() => logins.poll(codes[0]?.deviceCode ?? ''), refusedAs('invalid_grant'));
  for (const { deviceCode } of [late, other, ...codes.slice(1)])
    assert.throws(() => logins.poll(deviceCode), refusedAs('authorization_pending'));
});

test('a stranger with many addresses displaces only its own codes', () => {
  const { logins } = open({ maxAll: 100 });
  const victim = logins.begin(asked());
  // A /48 has 65,536 networks of a /64, which are one address each.
  for (let i = 0; i < 1000; i++) logins.begin(asked(`2001:db8:1:${i.toString(16)}::1`));
  assert.throws(() => logins.poll(victim.deviceCode), refusedAs('authorization_pending'));
  const late = logins.begin(asked('192.0.2.9'));
  for (let i = 0; i < 250; i++) logins.begin(asked(`198.51.100.${i}`));
  for (const { deviceCode } of [late]) {
    assert.throws(() => logins.poll(deviceCode), refusedAs('authorization_pending'));
  }
  assert.equal(logins.decide(victim.userCode, 'granted'), true);
});
