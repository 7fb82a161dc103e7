import assert from 'node:assert/strict';
import { test } from 'node:test';
import { declaredRoutes } from '../../cloud/edges.ts';
import { loadConfig } from '../../config/config.ts';
import { FakeClock } from '../../platform/clock.ts';
import { callLimits } from './call-limits.ts';

test('routes with limits of their own are routes that there are', () => {
  const { routeLimiters } = callLimits(loadConfig({}), new FakeClock());
  const names = new Set(declaredRoutes().map(({ name }) => name));
  assert.deepEqual(
    [...routeLimiters.keys()].filter((name) => !names.has(name)),
    [],
  );
  // Looking at an invitation and using it count as guesses of the same secret.
  assert.equal(routeLimiters.get('join'), routeLimiters.get('showInvitation'));
});

test('an account has so many times the requests of one key, and S3 has limits of its own', () => {
  const settings = { CLOUDLET_RATE_REQUESTS: '2', CLOUDLET_RATE_S3: '3', CLOUDLET_RATE_ACCOUNT_FACTOR: '2' };
  const { limiter, s3Limiter } = callLimits(loadConfig(settings), new FakeClock());
  for (const [limits, perKey] of [
    [limiter, 2],
    [s3Limiter, 3],
  ] as const) {
    const taken = (credentialId: string) => {
      for (let count = 0; ; count++) {
        try {
          const principal = { via: 'key', credentialId, accountId: 7 } as const;
          limits.take({ principal: principal as never, address: '192.0.2.1' }, {});
        } catch {
          return count;
        }
      }
    };
    assert.deepEqual(['a', 'b', 'c'].map(taken), [perKey, perKey, 0]);
  }
});
