import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Principal } from '../calls/principal.ts';
import { BACKGROUND } from '../metadata/change.ts';
import { isAppError } from '../platform/errors.ts';
import { by, newPrincipal, openAccountFixture } from '../testing/account-fixture.ts';
import type { WantedChange } from './account-changes.ts';

const code = (expected: string) => (error: unknown) => isAppError(error) && error.code === expected;

async function open() {
  const fixture = await openAccountFixture();
  const ada = await newPrincipal(fixture.accounts, 'ada');
  const fields = { username: 'chief', email: 'chief@example.org', isAdmin: true };
  const { id, api_key } = await fixture.administration.create(BACKGROUND, fields);
  const chief = await fixture.authenticator.authenticate({ apiKey: api_key ?? '' });
  const change = (accountId: number, wanted: WantedChange, principal: Principal = chief) =>
    fixture.changes.run(BACKGROUND, (made) =>
      fixture.accountChanges.apply(made, by(principal), { ...wanted, id: accountId }),
    );
  const shown = (accountId: number) => fixture.administration.get(accountId);
  return { ...fixture, ada: ada.accountId, chief, chiefId: id, change, shown };
}

test('an administrator changes address, rights and end, and each is checked', async (t) => {
  const cloud = await open();
  t.after(() => cloud.close());
  const { ada, change } = cloud;
  await change(ada, { email: 'ada@example.net', expires_at: '2999-01-01 00:00:00' });
  const { email, expires_at } = await cloud.shown(ada);
  assert.deepEqual([email, expires_at], ['ada@example.net', '2999-01-01 00:00:00']);
  await assert.rejects(change(ada, { email: 'CHIEF@example.org' }), code('email_taken'));
  await assert.rejects(change(ada, { email: 'nobody' }), code('invalid_request'));
  await assert.rejects(change(ada, { expires_at: '2001-01-01 00:00:00' }), code('invalid_request'));
  await assert.rejects(change(ada, { is_admin: true }), code('invalid_request'));
  await change(ada, { is_admin: true, expires_at: null });
  const made = await cloud.shown(ada);
  assert.deepEqual([made.is_admin, made.expires_at], [true, null]);
  await assert.rejects(change(ada, { expires_at: '2999-01-01 00:00:00' }), code('invalid_request'));
  await assert.rejects(change(987_654, { is_admin: true }), code('account_not_found'));
});

test('the last administrator stays one; of two who demote each other at once one stays', async (t) => {
  const cloud = await open();
  t.after(() => cloud.close());
  const { ada, chiefId, change } = cloud;
  await assert.rejects(change(chiefId, { is_admin: false }), code('last_administrator'));
  await change(ada, { is_admin: true });
  const both = await Promise.allSettled([
    change(chiefId, { is_admin: false }),
    change(ada, { is_admin: false }),
  ]);
  const refused = both.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
  assert.equal(refused.length, 1);
  assert.ok(code('last_administrator')(refused[0]));
});

test('rights are gone at once from keys that are known already', async (t) => {
  const cloud = await open();
  t.after(() => cloud.close());
  const apiKey = (await cloud.apiKeys.current(cloud.ada)) ?? '';
  await cloud.change(cloud.ada, { is_admin: true });
  assert.equal((await cloud.authenticator.authenticate({ apiKey })).isAdmin, true);
  await cloud.change(cloud.ada, { is_admin: false });
  assert.equal((await cloud.authenticator.authenticate({ apiKey })).isAdmin, false);
});

test('the suspension at the end of an account is in the audit log, in the same commit', async (t) => {
  const cloud = await open();
  t.after(() => cloud.close());
  const { ada, change } = cloud;
  await change(ada, { expires_at: new Date(cloud.clock.now() + 60_000).toISOString() });
  cloud.clock.advance(60_000);
  const commits = await cloud.commitsDuring(() => cloud.administration.expire());
  assert.deepEqual(
    commits.map((all) => all.filter(({ sql }) => sql.includes('INSERT INTO audit_rows')).length),
    [1],
  );
  assert.equal((await cloud.shown(ada)).is_active, false);
  const entries = await cloud.auditOf(ada);
  assert.deepEqual(
    entries.map(({ action, actor, via, target, outcome }) => [action, actor, via, target, outcome]),
    [['suspendExpiredAccount', 'cloudlet', 'cloud', String(ada), 'done']],
  );
  await cloud.administration.expire();
  assert.equal((await cloud.auditOf(ada)).length, 1);
});

test('an expired account goes on when its end is put off; another suspension stays', async (t) => {
  const cloud = await open();
  t.after(() => cloud.close());
  const { ada, change } = cloud;
  const soon = () => new Date(cloud.clock.now() + 60_000).toISOString();
  await change(ada, { expires_at: soon() });
  cloud.clock.advance(60_000);
  await cloud.administration.expire();
  assert.equal((await cloud.shown(ada)).suspended_reason, 'the account has expired');
  await change(ada, { expires_at: soon() });
  assert.deepEqual(
    [(await cloud.shown(ada)).is_active, (await cloud.shown(ada)).suspended_reason],
    [true, null],
  );
  await cloud.administration.suspend(by(cloud.chief), { accountId: ada, reason: 'unpaid' });
  await change(ada, { expires_at: null });
  assert.equal((await cloud.shown(ada)).suspended_reason, 'unpaid');
});

test('a password that has to be changed lets nobody in before it is', async (t) => {
  const cloud = await open();
  t.after(() => cloud.close());
  const { ada, change } = cloud;
  const login = (password: string) =>
    cloud.sessions.login({ record: () => [] }, { name: 'ada', password, address: '192.0.2.7' });
  await change(ada, { must_change_password: true });
  assert.equal((await cloud.shown(ada)).must_change_password, true);
  await assert.rejects(login('wrong password'), code('invalid_credentials'));
  const thrown: unknown = await login('correct horse').catch((error: unknown) => error);
  assert.ok(isAppError(thrown, 'password_change_required'));
  const [{ n } = { n: -1 }] = await cloud.metadata.all<{ n: number }>('SELECT count(*) AS n FROM sessions');
  assert.equal(n, 0);
  const token = String(thrown.extra?.reset_token);
  const again = { token, password: 'correct horse', address: '192.0.2.7', hosts: [] };
  await assert.rejects(cloud.resetLinks.use(BACKGROUND, again), code('invalid_request'));
  const own = by({ ...cloud.chief, accountId: ada, isAdmin: false });
  const same = { password: 'correct horse', currentPassword: 'correct horse', address: '192.0.2.7' };
  await assert.rejects(cloud.accounts.update(own, same), code('invalid_request'), 'it has to be another one');
  await cloud.resetLinks.use(
    { record: () => [] },
    { token, password: 'a new horse', address: '192.0.2.7', hosts: [] },
  );
  assert.equal((await login('a new horse')).account.id, ada);
  assert.equal((await cloud.shown(ada)).must_change_password, false);
  await assert.rejects(change(cloud.chiefId, { must_change_password: true }), code('invalid_request'));
});
