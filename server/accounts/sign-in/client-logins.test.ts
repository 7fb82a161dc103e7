import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { Principal } from '../../calls/principal.ts';
import { ShortTokens } from '../../calls/short-tokens.ts';
import { BACKGROUND } from '../../metadata/change.ts';
import { type ErrorCode, isAppError } from '../../platform/errors.ts';
import { randomSecret } from '../../platform/ids.ts';
import { type AccountFixture, by, openAccountFixture, shown } from '../../testing/account-fixture.ts';
import { ClientLogins } from './client-logins.ts';
import { POLL_INTERVAL_MS } from './device-logins.ts';

let fixture: AccountFixture;
let logins: ClientLogins;
before(async () => {
  fixture = await openAccountFixture();
  logins = new ClientLogins({
    ...fixture,
    tokens: new ShortTokens(fixture),
    apiUrl: () => 'http://127.0.0.1:8080',
  });
});
after(() => fixture.close());

let made = 0;
async function signedIn(): Promise<{ principal: Principal; token: string }> {
  const [username, password] = [`user-${++made}`, 'a good password'];
  await fixture.accounts.register(BACKGROUND, { username, email: `${username}@example.com`, password });
  const login = { name: username, password, address: '192.0.2.1' };
  const session = await fixture.sessions.login({ record: () => [] }, login);
  return { principal: await fixture.authenticator.authenticate(shown(session)), token: session.token };
}

const refusedAs = (code: ErrorCode) => (error: unknown) => isAppError(error, code);
const recorder = () => ({ record: () => [] });
const redirectUri = 'http://127.0.0.1:1234/callback';
const ALL = ['*'] as const;

async function approved(principal: Principal, name = 'CLI on laptop') {
  const verifier = randomSecret(32).toString('base64url');
  const challenge = createHash('sha256').update(verifier).digest('base64url');
  const { code } = await logins.approve(by(principal), {
    name,
    scopes: ALL,
    expiresIn: 3600,
    challenge,
    redirectUri,
  });
  return { code, verifier, redirectUri, challenge };
}

test('a code gives a key with the name, the rights and the end that were granted', async () => {
  const { principal } = await signedIn();
  const key = await logins.redeem(recorder(), await approved(principal));
  assert.deepEqual([key.name, key.scopes, key.username], ['CLI on laptop', ['*'], principal.username]);
  assert.equal(key.expires_at, '2026-01-01 01:00:00');
  const holder = await fixture.authenticator.authenticate({ apiKey: key.api_key });
  assert.equal(holder.accountId, principal.accountId);
});

test('a stolen code is worth nothing without its verifier, and an attempt uses it up', async () => {
  const { principal } = await signedIn();
  const good = await approved(principal);
  for (const verifier of [randomSecret(32).toString('base64url'), good.challenge, '']) {
    const stolen = await approved(principal);
    await assert.rejects(
      async () => logins.redeem(recorder(), { ...stolen, verifier }),
      refusedAs('invalid_grant'),
    );
    await assert.rejects(async () => logins.redeem(recorder(), stolen), refusedAs('invalid_grant'));
  }
  await logins.redeem(recorder(), good);
  await assert.rejects(async () => logins.redeem(recorder(), good), refusedAs('invalid_grant'), 'a replay');
  const elsewhere = await approved(principal);
  const other = { ...elsewhere, redirectUri: 'http://127.0.0.1:1235/callback' };
  await assert.rejects(async () => logins.redeem(recorder(), other), refusedAs('invalid_grant'));
});

test('two attempts at once give one key', async () => {
  const { principal } = await signedIn();
  const code = await approved(principal);
  const attempts = [1, 2, 3].map(async () => logins.redeem(recorder(), code));
  const outcomes = await Promise.allSettled(attempts);
  assert.deepEqual(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected', 'rejected']);
});

test('a code ends after 60 s, with the session that granted it, and with the account', async () => {
  const { principal, token } = await signedIn();
  const late = await approved(principal);
  fixture.clock.advance(60_000);
  await assert.rejects(async () => logins.redeem(recorder(), late), refusedAs('invalid_grant'));
  const open = await approved(principal);
  await fixture.sessions.logout(recorder(), token);
  await assert.rejects(logins.redeem(recorder(), open), refusedAs('invalid_grant'));
});

test('only the loopback by its number is a way back', async () => {
  const { principal } = await signedIn();
  const challenge = 'x'.repeat(43);
  const ask = (redirectUri: string) =>
    logins.approve(by(principal), { name: 'n', scopes: ALL, challenge, redirectUri });
  for (const good of ['http://[::1]:1/callback', 'http://127.0.0.1:65535/callback'])
    assert.ok((await ask(good)).code);
  const bad = [
    'http://localhost:1234/callback',
    'https://127.0.0.1:1234/callback',
    'http://127.0.0.1/callback',
    'http://127.0.0.1:65536/callback',
    'http://127.0.0.1:1234/callback/',
    'http://127.0.0.1:1234/callback?x',
    'http://127.0.0.1:1234@evil.example/callback',
    'http://127.0.0.1:1234.evil.example/callback',
    'http://127.0.0.2:1234/callback',
    'http://127.0.0.1:1234/callback\n',
    'javascript:alert(1)//http://127.0.0.1:1234/callback',
  ];
  for (const uri of bad) await assert.rejects(ask(uri), refusedAs('invalid_request'), uri);
});

test('nobody grants more than they have', async () => {
  const { principal } = await signedIn();
  const limited: Principal = { ...principal, via: 'key', scopes: ['account:write', 'storage:read'] };
  const ask = { name: 'n', challenge: 'x'.repeat(43), redirectUri };
  await assert.rejects(logins.approve(by(limited), { ...ask, scopes: ALL }), refusedAs('scope_required'));
  assert.ok((await logins.approve(by(limited), { ...ask, scopes: ['storage:read'] })).code);
  const device = await logins.beginDevice({ name: 'n', scopes: ALL, address: '192.0.2.1' });
  const decision = { typed: device.user_code, isApproved: true };
  await assert.rejects(logins.decideDevice(by(limited), decision), refusedAs('scope_required'));
  assert.equal(
    (await logins.findDevice(principal, device.user_code)).name,
    'n',
    'it still waits for its owner',
  );
});

test('an account has 10 open codes, and displaces no other', async () => {
  const [ada, eve] = [await signedIn(), await signedIn()];
  const first = await approved(ada.principal);
  const kept = await approved(eve.principal);
  for (let i = 0; i < 10; i++) await approved(ada.principal);
  await assert.rejects(async () => logins.redeem(recorder(), first), refusedAs('invalid_grant'));
  await logins.redeem(recorder(), kept);
});

test('guessing short codes slows the account down, and nobody else', async () => {
  const [ada, eve] = [await signedIn(), await signedIn()];
  const device = await logins.beginDevice({ name: 'CLI on laptop', scopes: ALL, address: '192.0.2.1' });
  const guess = () => logins.findDevice(eve.principal, 'BBBB-BBBB');
  for (let i = 0; i < 5; i++) await assert.rejects(guess(), refusedAs('login_code_not_found'));
  await assert.rejects(guess(), refusedAs('rate_limited'));
  const decide = { typed: device.user_code, isApproved: true };
  await assert.rejects(
    logins.decideDevice(by(eve.principal), decide),
    refusedAs('rate_limited'),
    'even the right one',
  );
  assert.equal((await logins.findDevice(ada.principal, device.user_code)).address, '192.0.2.1');
  await logins.decideDevice(by(ada.principal), { ...decide, expiresIn: 60 });
  fixture.clock.advance(1000);
  await assert.rejects(logins.decideDevice(by(eve.principal), decide), refusedAs('login_code_not_found'));
  fixture.clock.advance(POLL_INTERVAL_MS);
  const key = await logins.redeemDevice(recorder(), device.device_code);
  assert.equal(key.username, ada.principal.username);
});

test('a name that could pretend to be another is refused', async () => {
  for (const name of ['a\nb', 'CLI\u202egnp.exe', 'x\u2028y', '\ud800']) {
    const ask = () => logins.beginDevice({ name, scopes: ALL, address: '192.0.2.1' });
    await assert.rejects(ask(), refusedAs('invalid_request'), JSON.stringify(name));
  }
});

test('a session approves only 15 minutes after its password, and refuses at any time', async () => {
  const { principal } = await signedIn();
  fixture.clock.advance(15 * 60_000);
  await assert.rejects(approved(principal), refusedAs('password_required'));
  const device = await logins.beginDevice({ name: 'CLI', scopes: ALL, address: '192.0.2.1' });
  const decide = (isApproved: boolean) =>
    logins.decideDevice(by(principal), { typed: device.user_code, isApproved });
  await assert.rejects(decide(true), refusedAs('password_required'));
  assert.deepEqual(await decide(false), {});
});
