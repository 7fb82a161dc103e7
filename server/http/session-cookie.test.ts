import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readSessionCookie, renderEndedSessionCookie, renderSessionCookie } from './caller.ts';

const token = `${'A'.repeat(42)}_`;

test('plain and https cookies carry the flags', () => {
  assert.equal(
    renderSessionCookie({ token, secure: false, maxAgeSeconds: 60 }),
    `cloudlet_session=${token}; Path=/; Max-Age=60; HttpOnly; SameSite=Lax`,
  );
  assert.equal(
    renderSessionCookie({ token, secure: true, maxAgeSeconds: 60 }),
    `__Host-cloudlet_session=${token}; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure`,
  );
  assert.match(renderEndedSessionCookie(true), /^__Host-cloudlet_session=; .*Max-Age=0;/);
});

test('what is rendered is read back, among others', () => {
  for (const secure of [true, false]) {
    const pair = renderSessionCookie({ token, secure, maxAgeSeconds: 1 }).split(';')[0];
    assert.equal(readSessionCookie(`a=b; ${pair}; c=d`), token);
    assert.equal(readSessionCookie(pair), token);
  }
});

test('the prefixed cookie wins over a planted one', () => {
  const planted = 'B'.repeat(43);
  assert.equal(readSessionCookie(`cloudlet_session=${planted}; __Host-cloudlet_session=${token}`), token);
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
  for (const header of [...none, ...odd]) assert.equal(readSessionCookie(header), undefined, String(header));
  fc.assert(
    fc.property(fc.string(), (text) => {
      readSessionCookie(`cloudlet_session${text}`);
    }),
  );
});
