import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readSessionCookies, renderEndedSessionCookie, renderSessionCookie } from './session.ts';

const token = `${'A'.repeat(42)}_`;

test('plain and https cookies carry the flags', () => {
  assert.equal(
    renderSessionCookie({ value: token, secure: false, maxAgeSeconds: 60 }),
    `cloudlet_session=${token}; Path=/; Max-Age=60; HttpOnly; SameSite=Lax`,
  );
  assert.equal(
    renderSessionCookie({ value: token, secure: true, maxAgeSeconds: 60 }),
    `__Host-cloudlet_session=${token}; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure`,
  );
  assert.match(renderEndedSessionCookie(true), /^__Host-cloudlet_session=; .*Max-Age=0;/);
});

test('what is rendered is read back, among others', () => {
  for (const secure of [true, false]) {
    const pair = renderSessionCookie({ value: token, secure, maxAgeSeconds: 1 }).split(';')[0];
    assert.deepEqual(readSessionCookies(`a=b; ${pair}; c=d`), [token]);
    assert.deepEqual(readSessionCookies(pair), [token]);
  }
});

test('a cookie that was planted beside hides none', () => {
  const planted = 'B'.repeat(43);
  for (const own of ['cloudlet_session', '__Host-cloudlet_session']) {
    const header = `cloudlet_session=${planted}; ${own}=${token}`;
    assert.deepEqual(readSessionCookies(header), [planted, token]);
  }
});

test('anything else is no session', () => {
  const none = [
    undefined,
    '',
    'cloudlet_session',
    'cloudlet_session=',
    'cloudlet_session=short',
    `x=${token}`,
  ];
  const odd = [`xcloudlet_session=${token}`, `cloudlet_session=${token}x`, `cloudlet_session="${token}"`];
  for (const header of [...none, ...odd]) assert.deepEqual(readSessionCookies(header), [], String(header));
  fc.assert(
    fc.property(fc.string(), (text) => {
      readSessionCookies(`cloudlet_session${text}`);
    }),
  );
});
