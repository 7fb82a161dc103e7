import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  type BucketLimit,
  mayTouch,
  NOBODY,
  type Permission,
  permits,
  SCOPES,
} from '../../calls/principal.ts';
import { FakeClock } from '../../platform/clock.ts';
import { isAppError } from '../../platform/errors.ts';
import { coversLimits, coversScope, readExpiry } from './access-key-limits.ts';

const PERMISSIONS: Permission[] = [
  'account:read',
  'account:write',
  'storage:read',
  'storage:write',
  'storage:append',
  'storage:admin',
  'compute:read',
  'compute:write',
  'compute:connect',
  'databases:read',
  'databases:write',
  'databases:connect',
  'billing:read',
  'webhooks:read',
  'webhooks:write',
  'admin',
];

test('a covered scope permits nothing that its maker may not', () => {
  const scopes = fc.subarray([...SCOPES], { minLength: 1 });
  fc.assert(
    fc.property(scopes, fc.constantFrom(...SCOPES), (held, scope) => {
      const maker = { ...NOBODY, isAdmin: true, scopes: held };
      const made = { ...NOBODY, isAdmin: true, scopes: [scope] };
      const beyond = PERMISSIONS.filter(
        (permission) => permits(made, permission) && !permits(maker, permission),
      );
      if (coversScope(held, scope)) assert.deepEqual(beyond, []);
      // Conversely, only "a:*" from "a:read" + "a:write" is stricter than necessary.
      else assert.ok(beyond.length > 0 || scope.endsWith(':*') || scope === '*');
    }),
  );
});

test('covered limits let through no object that the maker’s do not', () => {
  const limit = fc.record({
    bucket: fc.constantFrom('b1', 'b2'),
    prefix: fc.constantFrom('', 'a', 'a/', 'a/b', 'b'),
  });
  const limits = fc.option(fc.array(limit, { minLength: 1, maxLength: 3 }));
  fc.assert(
    fc.property(limits, limits, (held: BucketLimit[] | null, asked: BucketLimit[] | null) => {
      fc.pre(coversLimits(held, asked));
      const maker = { ...NOBODY, bucketLimits: held };
      const made = { ...NOBODY, bucketLimits: asked };
      for (const bucket of ['b1', 'b2', 'b3']) {
        for (const name of ['', 'a', 'a/', 'a/b', 'a/bc', 'b', 'c']) {
          assert.ok(!mayTouch(made, bucket, name) || mayTouch(maker, bucket, name), `${bucket} ${name}`);
        }
      }
    }),
  );
  assert.equal(coversLimits([{ bucket: 'b1', prefix: 'a/' }], null), false);
  assert.equal(coversLimits(null, null), true);
});

test('ends: seconds, plain time, RFC 3339, never', () => {
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  const read = (ends: { expires_in?: number; expires_at?: string }) =>
    readExpiry({ name: 'k', scopes: ['*'], ...ends }, clock);
  assert.equal(read({}), null);
  assert.equal(read({ expires_in: 5 }), clock.now() + 5000);
  assert.equal(read({ expires_at: '2026-01-01 00:00:01' }), clock.now() + 1000);
  assert.equal(read({ expires_at: '2026-01-01T01:00:00+00:30' }), clock.now() + 1800_000);
  const bad = [
    '',
    'tomorrow',
    '2025-12-31 23:59:59',
    '2026-01-01 00:00:00',
    '2026-02-30 00:00:00',
    '2026-13-01 00:00:00',
    '2026-01-01T00:00:01',
    '2027',
    '2026-01-02 00:00:00\n',
    '99999-01-01 00:00:00',
  ];
  for (const text of bad) {
    assert.throws(
      () => read({ expires_at: text }),
      (error) => isAppError(error, 'invalid_request'),
      text,
    );
  }
  assert.throws(
    () => read({ expires_in: 1, expires_at: '2027-01-01 00:00:00' }),
    (error) => isAppError(error, 'invalid_request'),
  );
});
