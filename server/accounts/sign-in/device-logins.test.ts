import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ShortTokens } from '../../calls/short-tokens.ts';
import { isAppError } from '../../platform/errors.ts';
import { type AccountFixture, openAccountFixture } from '../../testing/account-fixture.ts';
import { DEVICE_CODE_MS, DeviceLogins, POLL_INTERVAL_MS, shownCode } from './device-logins.ts';

const asked = (address = '192.0.2.1') => ({ name: 'CLI on laptop', scopes: ['*'] as const, address });
const refusedAs = (code: string) => (error: unknown) => isAppError(error, code as 'slow_down');

let fixture: AccountFixture;
before(async () => {
  fixture = await openAccountFixture();
});
after(() => fixture.close());

/** Log-ins while no others are in progress. */
const open = async (limits?: { maxAll?: number; maxPerSource?: number }) => {
  const { clock } = fixture;
  const tokens = new ShortTokens(fixture);
  clock.advance(DEVICE_CODE_MS);
  await tokens.sweep();
  return { clock, logins: new DeviceLogins<string>({ clock, tokens, ...limits }) };
};

test('a code is decided once and fetched once', async () => {
  const { clock, logins } = await open();
  const { deviceCode, userCode } = await logins.begin(asked());
  assert.match(userCode, /^[BCDFGHJKLMNPQRSTVWXZ]{8}$/);
  await assert.rejects(logins.poll(deviceCode), refusedAs('authorization_pending'));
  assert.equal((await logins.undecided(shownCode(userCode).toLowerCase()))?.name, 'CLI on laptop');
  assert.equal(await logins.decide(userCode, 'granted'), true);
  assert.equal(await logins.decide(userCode, 'by another'), false);
  assert.equal(await logins.undecided(userCode), undefined);
  clock.advance(POLL_INTERVAL_MS);
  assert.equal(await logins.poll(deviceCode), 'granted');
  await assert.rejects(logins.poll(deviceCode), refusedAs('invalid_grant'));
});

test('a refusal is told, and whoever polls too soon must wait longer', async () => {
  const { clock, logins } = await open();
  const { deviceCode, userCode } = await logins.begin(asked());
  await assert.rejects(logins.poll(deviceCode), refusedAs('authorization_pending'));
  clock.advance(POLL_INTERVAL_MS - 1);
  await assert.rejects(logins.poll(deviceCode), refusedAs('slow_down'));
  clock.advance(POLL_INTERVAL_MS);
  await assert.rejects(logins.poll(deviceCode), refusedAs('slow_down'), 'the interval is 10 s now');
  await logins.decide(userCode, 'refused');
  clock.advance(3 * POLL_INTERVAL_MS);
  await assert.rejects(logins.poll(deviceCode), refusedAs('access_denied'));
});

test('a code ends after its time, decided or not', async () => {
  const { clock, logins } = await open();
  const { deviceCode, userCode } = await logins.begin(asked());
  clock.advance(DEVICE_CODE_MS - 1);
  assert.equal(await logins.decide(userCode, 'granted'), true);
  clock.advance(1);
  await assert.rejects(logins.poll(deviceCode), refusedAs('invalid_grant'));
  assert.equal((await logins.undecided((await logins.begin(asked())).userCode))?.scopes[0], '*');
});

test('an address with many open is never refused: its own oldest ends, and nobody else’s', async () => {
  const { logins } = await open({ maxPerSource: 10 });
  const other = await logins.begin(asked('2001:db8:0:1::1'));
  const codes: { deviceCode: string }[] = [];
  for (let i = 0; i < 10; i++) codes.push(await logins.begin(asked('2001:db8::1')));
  const late = await logins.begin(asked('2001:db8::2')); // the same /64
  await assert.rejects(logins.poll(codes[0]?.deviceCode ?? ''), refusedAs('invalid_grant'));
  for (const { deviceCode } of [late, other, ...codes.slice(1)])
    await assert.rejects(logins.poll(deviceCode), refusedAs('authorization_pending'));
});

test('a stranger with many addresses displaces only its own codes', async () => {
  const { logins } = await open({ maxAll: 100 });
  const victim = await logins.begin(asked());
  // A /48 has 65,536 networks of a /64, which are one address each.
  for (let i = 0; i < 1000; i++) await logins.begin(asked(`2001:db8:1:${i.toString(16)}::1`));
  await assert.rejects(logins.poll(victim.deviceCode), refusedAs('authorization_pending'));
  const late = await logins.begin(asked('192.0.2.9'));
  for (let i = 0; i < 250; i++) await logins.begin(asked(`198.51.100.${i}`));
  for (const { deviceCode } of [late]) {
    await assert.rejects(logins.poll(deviceCode), refusedAs('authorization_pending'));
  }
  assert.equal(await logins.decide(victim.userCode, 'granted'), true);
});
