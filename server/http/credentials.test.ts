import assert from 'node:assert/strict';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { NOBODY, OPERATOR } from '../calls/principal.ts';
import { isAppError } from '../platform/errors.ts';
import { identify } from './caller.ts';
import type { SentSession } from './session.ts';

const TOKEN = 'a'.repeat(43);
const socket = {};
const request = (headers: IncomingHttpHeaders, method = 'POST') =>
  ({ headers, method, socket }) as unknown as IncomingMessage;

/** Answers with the request, so that the test sees which credential was used. */
const accounts = {
  authenticate: (asked: { apiKey?: string; session?: SentSession }) => ({
    ...NOBODY,
    credentialId: JSON.stringify(asked),
  }),
};
const door = { forwarded: () => undefined };
const deps = { accounts, control: new WeakSet(), door, publicUrl: 'https://public.example:443' };
const asked = async (headers: IncomingHttpHeaders, method?: string) =>
  (await identify(request(headers, method), deps)).credentialId;

test('a key is taken from X-API-Key or from Authorization: Bearer, whose case does not matter', async () => {
  assert.equal(await asked({ 'x-api-key': 'K' }), '{"apiKey":"K"}');
  for (const authorization of ['Bearer K', 'bearer K', 'BEARER   K ']) {
    assert.equal(await asked({ authorization }), '{"apiKey":"K"}');
  }
  assert.equal(await asked({ 'x-api-key': 'K', authorization: 'Basic eDp5' }), '{"apiKey":"K"}');
});

test('another scheme, or a key of two words, is refused and not passed over', async () => {
  for (const authorization of ['Basic eDp5', 'Bearer', 'Bearer ', 'Bearer a b', 'K', '']) {
    const attempt = () => asked({ authorization, cookie: `cloudlet_session=${TOKEN}` });
    await assert.rejects(attempt, (error) => isAppError(error, 'invalid_api_key'), authorization);
  }
});

test('a key counts before the cookie; without either it is nobody', async () => {
  const cookie = `cloudlet_session=${TOKEN}`;
  assert.equal(await asked({ 'x-api-key': 'K', cookie }), '{"apiKey":"K"}');
  assert.equal(await asked({ cookie }, 'GET'), `{"session":{"cookies":["${TOKEN}"]}}`);
  const session = { cookies: [TOKEN, 'b'.repeat(43)], token: 'T' };
  const both = { cookie: `${cookie}; cloudlet_session=${'b'.repeat(43)}`, 'cloudlet-session': 'T' };
  assert.equal(await asked(both, 'GET'), JSON.stringify({ session }));
  assert.equal(await asked({ 'cloudlet-session': 'T' }, 'GET'), '{"session":{"cookies":[],"token":"T"}}');
  assert.equal(await identify(request({}), deps), NOBODY);
});

test('a connection that showed the token is the operator, whatever else is sent', () => {
  const shown = { ...deps, control: new WeakSet([socket]) };
  assert.equal(identify(request({ 'x-api-key': 'K' }), shown), OPERATOR);
});

test('a cookie changes nothing when another site made the request', async () => {
  const cookie = `cloudlet_session=${TOKEN}`;
  const host = 'cloud.example:8080';
  const own: IncomingHttpHeaders[] = [
    { 'sec-fetch-site': 'same-origin', origin: 'http://other.example' },
    { 'sec-fetch-site': 'none' },
    { origin: `http://${host}` },
    { origin: 'https://public.example' },
  ];
  for (const headers of own) assert.ok((await asked({ ...headers, host, cookie })).includes(TOKEN));
  const foreign: IncomingHttpHeaders[] = [
    {},
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site', origin: `http://${host}` },
    { 'sec-fetch-site': '' },
    { origin: 'http://other.example' },
    { origin: 'http://cloud.example' },
    { origin: 'null' },
    { origin: '' },
  ];
  for (const headers of foreign) {
    for (const method of ['POST', 'PATCH', 'DELETE']) {
      const attempt = () => asked({ ...headers, host, cookie }, method);
      const refused = (error: unknown) => isAppError(error, 'cross_site_request');
      await assert.rejects(attempt, refused, JSON.stringify(headers));
      assert.ok((await asked({ ...headers, host, 'x-api-key': 'K' }, method)).includes('K'));
    }
    for (const method of ['GET', 'HEAD'])
      assert.ok((await asked({ ...headers, host, cookie }, method)).includes(TOKEN));
  }
});
