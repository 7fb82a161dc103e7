import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { NOBODY, OPERATOR, type Principal } from '../../calls/principal.ts';
import { FakeClock } from '../../platform/clock.ts';
import { type AppError, isAppError } from '../../platform/errors.ts';
import { CallerLimits, type RateLimit, RateLimiter } from './rate-limits.ts';

function open(limit: Partial<RateLimit> = {}) {
  const clock = new FakeClock(1_000_000_500);
  const limiter = new RateLimiter({ name: 'requests', requests: 5, windowSeconds: 10, ...limit }, clock);
  /** The headers of one request, and its refusal. */
  const take = (caller = 'a') => {
    const headers: Record<string, string> = {};
    try {
      limiter.take(caller, headers);
    } catch (error) {
      assert.ok(isAppError(error, 'rate_limited'));
      return { headers, refusal: error as AppError };
    }
    return { headers, refusal: undefined };
  };
  return { clock, take };
}

test('so many requests pass at once, the next is refused, and other callers are not touched', () => {
  const { take } = open();
  for (let i = 0; i < 5; i++) assert.equal(take().refusal, undefined);
  assert.ok(take().refusal);
  assert.equal(take('b').refusal, undefined);
});

test('both families of headers tell the limit, what is left and when all is back', () => {
  const { take, clock } = open();
  const first = take().headers;
  assert.deepEqual(first, {
    'ratelimit-policy': '"requests";q=5;w=10',
    ratelimit: '"requests";r=4;t=2',
    'x-ratelimit-limit': '5',
    'x-ratelimit-remaining': '4',
    'x-ratelimit-reset': String(1_000_001 + 2),
  });
  for (let i = 0; i < 4; i++) take();
  const refused = take();
  assert.equal(refused.headers.ratelimit, '"requests";r=0;t=10');
  assert.equal(refused.headers['x-ratelimit-remaining'], '0');
  clock.advance(10_000);
  assert.equal(take().headers['x-ratelimit-remaining'], '4');
});

test('who waits as long as Retry-After says is let in, and refusals cost nothing', () => {
  const requests = fc.integer({ min: 1, max: 3000 });
  const windowSeconds = fc.integer({ min: 1, max: 600 });
  fc.assert(
    fc.property(requests, windowSeconds, fc.nat({ max: 20 }), (most, seconds, tries) => {
      const { take, clock } = open({ requests: most, windowSeconds: seconds });
      for (let i = 0; i < most; i++) assert.equal(take().refusal, undefined);
      let refusal = take().refusal;
      assert.ok(refusal);
      for (let i = 0; i < tries; i++) refusal = take().refusal;
      const wait = Math.max(1, Math.ceil(refusal?.retryAfterSeconds ?? 0));
      assert.ok(wait <= Math.ceil(seconds / most), `${wait} s`);
      clock.advance(wait * 1000);
      assert.equal(take().refusal, undefined, `${most} in ${seconds} s`);
    }),
  );
});

test('over any time no more pass than the burst and what the rate gives', () => {
  const step = fc.integer({ min: 0, max: 4000 });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const { take, clock } = open();
      let passed = 0;
      for (const ms of steps) {
        clock.advance(ms);
        if (take().refusal === undefined) passed++;
        assert.ok(passed <= 5 + (clock.monotonic() * 5) / 10_000 + 1e-6);
      }
    }),
  );
});

test('an idle caller does not save up more than the limit, and a jump of the wall clock gives nothing', () => {
  const { take, clock } = open();
  clock.advance(3_600_000);
  for (let i = 0; i < 5; i++) assert.equal(take().refusal, undefined);
  clock.jump(3_600_000);
  assert.ok(take().refusal);
});

test('an account has a limit over all its credentials, which is reported only when it refuses', () => {
  const clock = new FakeClock();
  const limiter = (name: string, requests: number) =>
    new RateLimiter({ name, requests, windowSeconds: 10 }, clock);
  const limits = new CallerLimits(limiter('requests', 3), limiter('account', 5));
  const take = (principal: Principal, address = '192.0.2.1') => {
    const headers: Record<string, string> = {};
    limits.take({ principal, address }, headers);
    return headers;
  };
  const key = (credentialId: string, accountId = 1): Principal => ({
    ...NOBODY,
    via: 'key',
    accountId,
    credentialId,
  });
  for (let i = 0; i < 3; i++) assert.match(take(key('a'))['ratelimit-policy'] ?? '', /^"requests"/);
  assert.throws(() => take(key('a')), /limit "requests"/);
  for (let i = 0; i < 2; i++) take({ ...key('b'), via: 'session' });
  assert.throws(() => take(key('c')), /limit "account"/);
  take(key('d', 2));
  for (let i = 0; i < 10; i++) take(OPERATOR);
  // One host has an entire /64; a /24 is many hosts.
  for (let i = 0; i < 3; i++) take(NOBODY, `2001:db8::${i}`);
  assert.throws(() => take(NOBODY, '2001:db8::9'), /limit "requests"/);
  take(NOBODY, '2001:db8:0:1::1');
  for (let i = 0; i < 5; i++) take(NOBODY, `192.0.2.${i}`);
});
