import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OPERATOR, type Principal } from '../../calls/principal.ts';
import { BACKGROUND } from '../../metadata/change.ts';
import { isAppError } from '../../platform/errors.ts';
import { by, newPrincipal, openAccountFixture, shown } from '../../testing/account-fixture.ts';
import type { WantedChange } from '../account-changes.ts';

const ADDRESS = '192.0.2.7';
const HOSTS = ['127.0.0.1'];
const OLD = 'correct horse';
const MOVED = { currentPassword: OLD, address: ADDRESS };
const NEW = 'another battery';
const code = (expected: string) => (error: unknown) => isAppError(error) && error.code === expected;

/** The administrator Ada, and calls that use links. */
async function open(options: Parameters<typeof openAccountFixture>[0] = {}) {
  const fixture = await openAccountFixture(options);
  const ada = await newPrincipal(fixture.accounts, 'ada');
  const fields = { username: 'chief', email: 'chief@example.org', password: OLD, isAdmin: true };
  const { id, api_key } = await fixture.administration.create(BACKGROUND, fields);
  const chief = await fixture.authenticator.authenticate({ apiKey: api_key ?? '' });
  const tokenFor = async (accountId: number, principal: Principal = OPERATOR) => {
    const { url } = await fixture.resetLinks.create(by(principal), accountId);
    return new URL(url).hash.slice('#token='.length);
  };
  const use = (token: string, password = NEW) =>
    fixture.resetLinks.use({ record: () => [] }, { token, password, address: ADDRESS, hosts: HOSTS });
  const login = (password: string, name = 'ada') =>
    fixture.sessions.login({ record: () => [] }, { name, password, address: ADDRESS });
  return { ...fixture, ada, chief, chiefId: id, tokenFor, use, login };
}

test('a link sets the password once, ends the sessions and keeps the keys', async (t) => {
  const cloud = await open();
  t.after(() => cloud.close());
  const session = await cloud.login(OLD);
  const key = (await cloud.apiKeys.current(cloud.ada.accountId)) ?? '';
  await cloud.accessKeys.create(by(cloud.ada), { name: 'k', scopes: ['storage:read'] });
  await cloud.accessKeys.create(by(cloud.ada), { name: 'old', scopes: ['storage:read'], expires_in: 1 });
  cloud.clock.advance(2000);
  const token = await cloud.tokenFor(cloud.ada.accountId);
  const stored = await cloud.metadata.all('SELECT token_hash FROM setup_links');
  assert.equal(stored.length, 1);
  assert.doesNotMatch(JSON.stringify(stored), new RegExp(token));
  await assert.rejects(cloud.use(token, 'short'), code('invalid_request'));
  const kept = { account_id: cloud.ada.accountId, username: 'ada', sessions_ended: 1, keys_kept: 2 };
  assert.deepEqual(await cloud.use(token), kept);
  await assert.rejects(cloud.use(token, 'a third one'), code('invalid_link'));
  await assert.rejects(
    Promise.resolve(cloud.authenticator.authenticate(shown(session))),
    code('invalid_session'),
  );
  const principal = await cloud.authenticator.authenticate({ apiKey: key });
  assert.equal(principal.accountId, cloud.ada.accountId);
  await assert.rejects(cloud.login(OLD), code('invalid_credentials'));
  await cloud.login(NEW);
});

test('of 20 who use one link at once, one sets the password', async (t) => {
  const cloud = await open();
  t.after(() => cloud.close());
  const token = await cloud.tokenFor(cloud.ada.accountId);
  const tries = Array.from({ length: 20 }, (_, number) => cloud.use(token, `password ${number}`));
  const results = await Promise.allSettled(tries);
  const winners = results.flatMap(({ status }, number) => (status === 'fulfilled' ? [number] : []));
  assert.equal(winners.length, 1);
  const refusals = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
  assert.ok(refusals.every(code('invalid_link')));
  await cloud.login(`password ${winners[0]}`);
});

test('an hour, a newer link, another password and the end of the account end it, all alike', async (t) => {
  const cloud = await open({ closedAccountDays: 7 });
  t.after(() => cloud.close());
  const { accountId } = cloud.ada;
  const earlier = await cloud.tokenFor(accountId);
  const others = await cloud.tokenFor(cloud.chiefId);
  const late = await cloud.tokenFor(accountId);
  const refusal = async (token: string) => {
    const thrown: unknown = await cloud.use(token).catch((error: unknown) => error);
    assert.ok(isAppError(thrown, 'invalid_link'));
    return { message: thrown.message, hint: thrown.hint };
  };
  const words = await refusal('nonsense');
  assert.deepEqual(await refusal(earlier), words);
  cloud.clock.advance(3600_000);
  assert.deepEqual(await refusal(late), words);
  assert.deepEqual(await refusal(others), words);
  const forgotten = await cloud.tokenFor(accountId);
  const change = { password: NEW, currentPassword: OLD, address: ADDRESS };
  await cloud.accounts.update(by(cloud.ada), change);
  assert.deepEqual(await refusal(forgotten), words);
  const last = await cloud.tokenFor(accountId);
  const apiKey = (await cloud.apiKeys.current(accountId)) ?? '';
  await cloud.closings.close(by(await cloud.authenticator.authenticate({ apiKey })));
  assert.deepEqual(await refusal(last), words);
  const closed = cloud.resetLinks.create(by(OPERATOR), accountId);
  await assert.rejects(closed, (error) => code('account_inactive')(error) && /closed/.test(String(error)));
  await cloud.login(NEW);
  await cloud.use(await cloud.tokenFor(accountId));
});

test('another address or other rights end it', async (t) => {
  const cloud = await open();
  t.after(() => cloud.close());
  const { accountId } = cloud.ada;
  const change = (wanted: WantedChange, principal: Principal = cloud.chief) =>
    cloud.changes.run(BACKGROUND, (made) =>
      cloud.accountChanges.apply(made, by(principal), { ...wanted, id: accountId }),
    );
  const moves: readonly (() => Promise<unknown>)[] = [
    () => cloud.accounts.update(by(cloud.ada), { ...MOVED, email: 'moved@example.org' }),
    () => change({ email: 'again@example.org' }),
    // Who has it could open the account of an administrator, which none may.
    () => change({ is_admin: true }),
  ];
  for (const move of moves) {
    const token = await cloud.tokenFor(accountId, cloud.chief);
    await move();
    await assert.rejects(cloud.use(token), code('invalid_link'), String(move));
  }
  await change({ is_admin: false });
  const token = await cloud.tokenFor(accountId);
  await change({ email: 'AGAIN@example.org', must_change_password: true }, OPERATOR);
  assert.equal((await cloud.use(token)).account_id, accountId, 'the same address in capitals ends none');
});

test('an account that is suspended or removed is not let in', async (t) => {
  const cloud = await open();
  t.after(() => cloud.close());
  const { accountId } = cloud.ada;
  const token = await cloud.tokenFor(accountId);
  await cloud.administration.suspend(by(cloud.chief), { accountId, reason: 'unpaid' });
  await assert.rejects(
    cloud.use(token),
    (error) => code('account_suspended')(error) && /unpaid/.test(String(error)),
  );
  const made = cloud.resetLinks.create(by(OPERATOR), accountId);
  await assert.rejects(made, (error) => code('account_inactive')(error) && /suspended/.test(String(error)));
  await cloud.administration.resume(BACKGROUND, accountId);
  await cloud.use(token);
  await cloud.removeAccount(cloud.ada);
  await assert.rejects(cloud.resetLinks.create(by(OPERATOR), accountId), code('account_not_found'));
});

test('neither a set-up link nor a reset link is taken for the other, or ends it', async (t) => {
  const cloud = await openAccountFixture();
  t.after(() => cloud.close());
  const ada = await newPrincipal(cloud.accounts, 'ada');
  const { url } = await cloud.resetLinks.create(by(OPERATOR), ada.accountId);
  const reset = new URL(url).hash.slice('#token='.length);
  const setUp = await cloud.setupLinks.createSetupLink(BACKGROUND, (made) => made);
  assert.equal(await cloud.setupLinks.isGood(reset), false);
  const fields = { username: 'chief', email: 'chief@example.org', password: OLD };
  await assert.rejects(cloud.setupLinks.setUp(BACKGROUND, reset, fields), code('invalid_link'));
  const use = (token: string) =>
    cloud.resetLinks.use(BACKGROUND, { token, password: NEW, address: ADDRESS, hosts: HOSTS });
  await assert.rejects(use(setUp), code('invalid_link'));
  await use(reset);
  await cloud.setupLinks.setUp(BACKGROUND, setUp, fields);
});

test('who forgot the password and tried some need not wait with the new one', async (t) => {
  const cloud = await open({ loginFailures: 2 });
  t.after(() => cloud.close());
  for (const name of ['ada', 'ada', 'ada@example.org', 'ada@example.org'])
    await assert.rejects(cloud.login('a guess', name));
  await assert.rejects(cloud.login(OLD), code('rate_limited'));
  await cloud.use(await cloud.tokenFor(cloud.ada.accountId));
  await cloud.login(NEW);
  await cloud.login(NEW, 'ada@example.org');
});

test('a session whose password was given long ago makes none; who made one is told and logged', async (t) => {
  const cloud = await open();
  t.after(() => cloud.close());
  const { accountId } = cloud.ada;
  const session = await cloud.authenticator.authenticate(shown(await cloud.login(OLD, 'chief')));
  await cloud.tokenFor(accountId, session);
  cloud.clock.advance(15 * 60_000);
  await assert.rejects(cloud.tokenFor(accountId, session), code('password_required'));
  await cloud.metadata.commit([
    {
      sql: `INSERT INTO webhooks (webhook_id, account_id, url, description, events, sealed_secret, created_at)
        VALUES ('whk-1', ?, 'https://hooks.invalid', '', '["*"]', x'00', 0)`,
      params: [accountId],
    },
  ]);
  await cloud.use(await cloud.tokenFor(accountId, cloud.chief));
  const rows = await cloud.metadata.all<{ type: string; body: string }>(
    'SELECT type, body FROM webhook_events ORDER BY event_id',
  );
  assert.deepEqual(rows.map(({ type }) => type).sort(), [
    'account.password_reset',
    'account.reset_link_created',
  ]);
  const chief = `chief (account ${cloud.chiefId})`;
  const told = rows.find(({ type }) => type === 'account.reset_link_created')?.body ?? '{}';
  assert.equal(JSON.parse(told).data.by, chief);
  assert.doesNotMatch(JSON.stringify([rows, cloud.logged]), /token|reset-password/);
  const lines = cloud.logged.slice(-2);
  assert.deepEqual(lines, [
    { account_id: accountId, username: 'ada', by: chief, message: 'a reset link was created' },
    {
      account_id: accountId,
      username: 'ada',
      address: ADDRESS,
      message: 'a password was set with a reset link',
    },
  ]);
});
