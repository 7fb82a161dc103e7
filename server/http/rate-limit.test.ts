import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FakeClock } from '../clock.ts';
import { type AppError, isAppError } from '../errors.ts';
import { type RateLimit, RateLimiter } from './rate-limit.ts';

function open(limit: Partial<RateLimit> = {}) {
  const clock = new FakeClock(1_000_000_500);
  const limiter = new RateLimiter({ name: 'requests', requests: 5, windowSeconds: 10, ...limit }, clock);
  /** The headers of one request, and how it was refused. */
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
