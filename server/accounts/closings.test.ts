import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { OPERATOR } from '../calls/principal.ts';
import { BACKGROUND } from '../metadata/change.ts';
import { formatTime } from '../platform/clock.ts';
import { isAppError } from '../platform/errors.ts';
import { type AccountFixture, by, openAccountFixture } from '../testing/account-fixture.ts';

const DAY_MS = 24 * 3600_000;
const password = 'a good password';
const address = '10.0.0.1';

let fixture: AccountFixture;
before(async () => {
  fixture = await openAccountFixture({ closedAccountDays: 7 });
});
after(() => fixture.close());

const code = (expected: string) => (error: unknown) => isAppError(error) && error.code === expected;
const principalOf = async (apiKey: string | null) =>
  fixture.authenticator.authenticate({ apiKey: apiKey ?? '' });
const close = async (apiKey: string | null) => fixture.closings.close(by(await principalOf(apiKey)));
const login = (name: string, given = password) =>
  fixture.sessions.login(BACKGROUND, { name, password: given, address });
const refusalOf = (work: Promise<unknown>) =>
  work.then(
    () => assert.fail('it was not refused'),
    (error: unknown) => error,
  );
const find = (id: number) => fixture.administration.list({ afterId: id - 1, limit: 1 }).next();

async function register(username: string) {
  const fields = { username, email: `${username}@example.com`, password };
  return await fixture.accounts.register(BACKGROUND, fields);
}

async function administrator(username: string) {
  const fields = { username, email: `${username}@example.com`, password, isAdmin: true };
  return await fixture.administration.create(BACKGROUND, fields);
}

const secretsOf = ({ cookie, token }: { cookie: string; token: string }) => ({ cookies: [cookie], token });

test('closing ends keys and sessions and keeps the name; signing in within 7 days opens it', async () => {
  const { id, api_key: key } = await register('leaver');
  const secrets = secretsOf(await login('leaver'));
  const access = await fixture.accessKeys.create(by(await principalOf(key)), { name: 'k', scopes: ['*'] });
  fixture.changed.length = 0;
  const closed = await close(key);
  assert.deepEqual(closed, {
    id,
    username: 'leaver',
    closed_at: '2026-01-01 00:00:00',
    removed_at: '2026-01-08 00:00:00',
  });
  assert.deepEqual(fixture.changed, [id], 'its machines and databases are told');
  for (const ended of [key, access.api_key])
    await assert.rejects(async () => principalOf(ended), code('invalid_api_key'));
  const bySession = async () => fixture.authenticator.authenticate({ session: secrets });
  await assert.rejects(bySession, code('invalid_session'));
  await assert.rejects(register('leaver'), code('username_taken'));
  const { value: shown } = await find(id);
  assert.deepEqual([shown?.is_active, shown?.removed_at], [false, '2026-01-08 00:00:00']);

  fixture.clock.advance(7 * DAY_MS - 1);
  await fixture.closings.removeDue();
  await assert.rejects(login('leaver', 'not this'), code('invalid_credentials'));
  const opened = await login('leaver');
  const { account } = opened;
  assert.deepEqual([account.id, account.is_active], [id, true]);
  assert.notEqual(account.api_key, key);
  assert.equal((await principalOf(account.api_key)).accountId, id);
  assert.equal((await fixture.authenticator.authenticate({ session: secretsOf(opened) })).accountId, id);
  assert.deepEqual(fixture.changed, [id, id]);
  fixture.clock.advance(DAY_MS);
  await fixture.closings.removeDue();
  await principalOf(account.api_key);
});

test('one that was closed while a new password was forced is opened by setting it', async () => {
  const { id, api_key: key } = await register('forced');
  const change = { must_change_password: true, id };
  await fixture.changes.run(BACKGROUND, (made) => fixture.accountChanges.apply(made, by(OPERATOR), change));
  await close(key);
  const refused = await refusalOf(login('forced'));
  assert.ok(isAppError(refused, 'password_change_required'), String(refused));
  assert.equal((await find(id)).value?.is_active, false, 'the sign-in alone opens nothing');
  fixture.changed.length = 0;
  const set = { token: String(refused.extra?.reset_token), address, hosts: [] };
  await assert.rejects(fixture.resetLinks.use(BACKGROUND, { ...set, password }), code('invalid_request'));
  await fixture.resetLinks.use(BACKGROUND, { ...set, password: 'another password' });
  assert.deepEqual(fixture.changed, [id], 'its machines and databases are told');
  const { account } = await login('forced', 'another password');
  assert.deepEqual([account.is_active, typeof account.api_key], [true, 'string']);
  assert.equal((await principalOf(account.api_key)).accountId, id);
  fixture.clock.advance(8 * DAY_MS);
  await fixture.closings.removeDue();
  await principalOf(account.api_key);
});

test('after 7 days it is removed: no way in, its name is free, the ledger stays', async () => {
  const { id, api_key: key } = await register('gone');
  await close(key);
  fixture.clock.advance(7 * DAY_MS);
  await assert.rejects(login('gone'), code('invalid_credentials'));
  fixture.changed.length = 0;
  await fixture.closings.removeDue();
  await fixture.closings.removeDue();
  assert.deepEqual(fixture.changed, [id]);
  await assert.rejects(login('gone'), code('invalid_credentials'));
  assert.ok((await register('gone')).id > id);
  const booked = 'SELECT 1 FROM ledger_transfers WHERE credit = ?';
  assert.equal((await fixture.metadata.all(booked, `account:${id}`)).length, 1);
});

test('what is suspended is not opened by signing in, and what is closed not by the end of a suspension', async () => {
  const { id, api_key: key } = await register('both');
  await close(key);
  await fixture.administration.suspend(by(OPERATOR), { accountId: id, reason: 'abuse' });
  await assert.rejects(login('both'), code('account_suspended'));
  assert.equal((await fixture.administration.resume(BACKGROUND, id)).is_active, false);
  assert.equal((await login('both')).account.is_active, true);
});

test('an administrator is left: the last cannot close, nor two at once, nor be suspended', async () => {
  const first = await administrator('first');
  await assert.rejects(close(first.api_key), code('last_administrator'));
  const second = await administrator('second');
  const callers = await Promise.all([first, second].map(({ api_key }) => principalOf(api_key)));
  const ends = await Promise.allSettled(callers.map((caller) => fixture.closings.close(by(caller))));
  assert.deepEqual(ends.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
  const refused = ends.find((end) => end.status === 'rejected');
  assert.ok(code('last_administrator')(refused?.reason));
  const left = refused === ends[0] ? first : second;
  const suspend = (id: number) =>
    fixture.administration.suspend(by(OPERATOR), { accountId: id, reason: 'test' });
  await assert.rejects(suspend(left.id), code('last_administrator'));
  const third = await administrator('third');
  await suspend(third.id);
  await assert.rejects(close(left.api_key), code('last_administrator'), 'one who is suspended cannot act');
  await fixture.administration.resume(BACKGROUND, third.id);
  await close(left.api_key);
});

test('an administrator removes an account: nobody gets in, and it is kept or gone after 7 days', async () => {
  const { id, api_key: key } = await register('pupil');
  const chief = await administrator('the-head');
  const call = async () => by(await principalOf(chief.api_key));
  const remove = async (accountId: number) => fixture.closings.remove(await call(), accountId, 'has left');
  await login('pupil');
  const at = fixture.clock.now();
  const condemned = await remove(id);
  assert.equal(condemned.removed_at, formatTime(at + 7 * DAY_MS));
  assert.match(condemned.suspended_reason ?? '', /removed by an administrator: has left/);
  await assert.rejects(async () => principalOf(key), code('account_suspended'));
  // The owner's password reopens a closed account, but not this one.
  await assert.rejects(login('pupil'), code('account_suspended'));
  await assert.rejects(remove(id), code('write_conflict'));
  await assert.rejects(remove(chief.id), code('invalid_request'));
  await assert.rejects(remove(999_999), code('account_not_found'));

  const kept = await fixture.closings.keep(await call(), id);
  assert.deepEqual([kept.is_active, kept.removed_at, kept.suspended_reason], [true, null, null]);
  assert.equal((await principalOf(key)).accountId, id);
  await assert.rejects(fixture.closings.keep(await call(), id), code('write_conflict'));

  await remove(id);
  fixture.clock.advance(7 * DAY_MS);
  await fixture.closings.removeDue();
  await assert.rejects(async () => principalOf(key), code('invalid_api_key'));
  await assert.rejects(fixture.closings.keep(await call(), id), code('account_not_found'));
  assert.notEqual((await register('pupil')).id, id);
});

test('a removal that is undone leaves the suspension from before it, and its end', async () => {
  const { id, api_key: key } = await register('mischief');
  const { api_key } = await administrator('the-deputy');
  const call = async () => by(await principalOf(api_key));
  await fixture.administration.suspend(by(OPERATOR), { accountId: id, reason: 'mining' });
  const { removed_at, suspended_reason } = await fixture.closings.remove(await call(), id, 'has left');
  assert.ok(removed_at !== null);
  assert.equal(suspended_reason, 'mining');
  const kept = await fixture.closings.keep(await call(), id);
  assert.deepEqual([kept.is_active, kept.removed_at, kept.suspended_reason], [false, null, 'mining']);
  const says = (error: unknown) => code('account_suspended')(error) && /mining/.test(String(error));
  await assert.rejects(async () => principalOf(key), says);
  assert.deepEqual((await find(id)).value, kept);
  await fixture.administration.resume(BACKGROUND, id);
  await principalOf(key);
});

test('the end of a suspension, or a later end of the account, does not undo a removal', async () => {
  const { id } = await register('expelled');
  const { api_key } = await administrator('the-rector');
  const call = async () => by(await principalOf(api_key));
  const expire = async (at: number) =>
    fixture.changes.run(BACKGROUND, async (change) =>
      fixture.accountChanges.apply(change, await call(), { id, expires_at: new Date(at).toISOString() }),
    );
  await expire(fixture.clock.now() + 1000);
  fixture.clock.advance(1000);
  await fixture.administration.expire();
  await fixture.closings.remove(await call(), id, 'has left');
  await assert.rejects(fixture.administration.resume(BACKGROUND, id), code('write_conflict'));
  await expire(fixture.clock.now() + DAY_MS);
  await assert.rejects(login('expelled'), code('account_suspended'));
  await fixture.closings.keep(await call(), id);
  await fixture.administration.resume(BACKGROUND, id);
  await login('expelled');
});

test('a removal at the end of the 7 days is in the audit log, in the same commit', async () => {
  const { id, api_key: key } = await register('logged');
  await close(key);
  fixture.clock.advance(7 * DAY_MS);
  const commits = await fixture.commitsDuring(() => fixture.closings.removeDue());
  const removed = commits.filter((statements) => statements.some(({ sql }) => sql.includes('closed_at = ?')));
  assert.ok(removed.length > 0);
  for (const statements of removed)
    assert.equal(statements.filter(({ sql }) => sql.includes('INSERT INTO audit_rows')).length, 1);
  const [entry] = await fixture.auditOf(id);
  assert.deepEqual(
    [entry?.action, entry?.actor, entry?.actor_id, entry?.via, entry?.target, entry?.detail],
    ['removeClosedAccount', 'cloudlet', null, 'cloud', String(id), { username: 'logged' }],
  );
});

test('that link does not open an account that was suspended meanwhile', async () => {
  const { id, api_key: key } = await register('stopped');
  const change = { must_change_password: true, id };
  await fixture.changes.run(BACKGROUND, (made) => fixture.accountChanges.apply(made, by(OPERATOR), change));
  await close(key);
  const refused = await refusalOf(login('stopped'));
  assert.ok(isAppError(refused, 'password_change_required'), String(refused));
  await fixture.administration.suspend(by(OPERATOR), { accountId: id, reason: 'mining' });
  const token = String(refused.extra?.reset_token);
  const set = { token, password: 'another password', address, hosts: [] };
  await assert.rejects(fixture.resetLinks.use(BACKGROUND, set), code('account_suspended'));
});
