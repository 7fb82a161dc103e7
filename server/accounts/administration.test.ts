import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Ledger } from '../billing/ledger/ledger.ts';
import { OPERATOR, permits } from '../calls/principal.ts';
import { BACKGROUND } from '../metadata/change.ts';
import { isAppError } from '../platform/errors.ts';
import { type AccountFixture, by, openAccountFixture } from '../testing/account-fixture.ts';

let fixture: AccountFixture;
before(async () => {
  fixture = await openAccountFixture();
});
after(() => fixture.close());

let made = 0;
const code = (expected: string) => (error: unknown) => isAppError(error) && error.code === expected;
const principalOf = async (apiKey: string | null) =>
  fixture.authenticator.authenticate({ apiKey: apiKey ?? '' });
const credit = (id: number, amount: number) =>
  fixture.administration.credit(by(OPERATOR), id, { amount, reason: 'test' });

async function register(username = `user-${++made}`) {
  const fields = { username, email: `${username}@example.com`, password: 'a good password' };
  return await fixture.accounts.register(BACKGROUND, fields);
}

test('credits: granted and taken exactly, never below zero, each a ledger entry', async () => {
  const { id } = await register();
  assert.equal((await credit(id, 0.1)).credits, 10.1);
  assert.equal((await credit(id, -10.1)).credits, 0);
  assert.equal((await credit(id, 0.000001)).credits, 0.000001);
  await assert.rejects(credit(id, -0.000002), code('insufficient_credits'));
  for (const amount of [0, -0, 0.0000001, 1e9 + 1, Number.NaN]) {
    await assert.rejects(credit(id, amount), code('invalid_request'), String(amount));
  }
  await credit(id, 999_999_999);
  await assert.rejects(credit(id, 1), code('invalid_request'));
  await assert.rejects(credit(424242, 1), code('account_not_found'));
  const rows = await fixture.metadata.all<{ amount_micro: number }>(
    'SELECT amount_micro FROM ledger_transfers WHERE debit = ? OR credit = ? ORDER BY seq',
    `account:${id}`,
    `account:${id}`,
  );
  assert.deepEqual(
    rows.map((row) => Number(row.amount_micro)),
    [10e6, 1e5, 101e5, 1, 999_999_999e6],
  );
});

test('parallel withdrawals never overdraw', async () => {
  const { id } = await register();
  const results = await Promise.allSettled(Array.from({ length: 64 }, () => credit(id, -0.4)));
  const refused = results.filter((result) => result.status === 'rejected');
  assert.ok(
    refused.every(({ reason }) => code('insufficient_credits')(reason)),
    'nobody has to try again',
  );
  assert.equal(results.filter((result) => result.status === 'fulfilled').length, 25);
  const row = await fixture.store.account(id);
  assert.equal(Number(row?.credits_micro), 0);
  assert.equal((await new Ledger({ metadata: fixture.metadata }).verify()).problem, null);
});

test('parallel grants: every answer shows a balance that was', async () => {
  const { id } = await register();
  const answers = await Promise.all(Array.from({ length: 64 }, () => credit(id, 1)));
  const shown = answers.map((answer) => answer.credits).sort((a, b) => a - b);
  assert.deepEqual(
    shown,
    Array.from({ length: 64 }, (_, i) => 11 + i),
  );
});

test('an id of the caller’s own is booked once, and never stands for something else', async () => {
  const { id } = await register();
  const give = (amount: number, reason = 'test') =>
    fixture.administration.credit(by(OPERATOR), id, { amount, reason, transferId: `t-${id}` });
  const answers = await Promise.allSettled(Array.from({ length: 8 }, () => give(2)));
  for (const answer of answers) assert.equal(answer.status, 'fulfilled');
  assert.equal((await give(2)).credits, 12);
  await assert.rejects(give(3), code('transfer_exists'));
  await assert.rejects(give(-2), code('transfer_exists'));
  await assert.rejects(give(2, 'another'), code('transfer_exists'));
  const other = await register();
  const elsewhere = { amount: 2, reason: 'test', transferId: `t-${id}` };
  await assert.rejects(
    fixture.administration.credit(by(OPERATOR), other.id, elsewhere),
    code('transfer_exists'),
  );
  assert.equal(Number((await fixture.store.account(id))?.credits_micro), 12_000_000);
});

test('the ledger says who did it', async () => {
  const { id } = await register();
  const ada = { ...OPERATOR, accountId: 4, username: 'ada' };
  await fixture.administration.credit(by(ada), id, { amount: 1, reason: 'a gift' });
  await credit(id, -1);
  const rows = await fixture.metadata.all<{ reference: string }>(
    "SELECT reference FROM ledger_transfers WHERE code LIKE 'admin%' AND ? IN (debit, credit) ORDER BY seq",
    `account:${id}`,
  );
  assert.deepEqual(
    rows.map(({ reference }) => reference),
    ['by ada (account 4): a gift', 'by the operator: test'],
  );
});

test('reasons are plain text', async () => {
  const { id } = await register();
  for (const reason of ['', ' ', 'a\0b', 'a\nb', '\ud800']) {
    const grant = fixture.administration.credit(by(OPERATOR), id, { amount: 1, reason });
    await assert.rejects(grant, code('invalid_request'), JSON.stringify(reason));
  }
});

test('the list has every open account once, oldest first, and no secret', async () => {
  for (let i = 0; i < 5; i++) await register();
  const all = [];
  for await (const account of fixture.administration.list({ afterId: 0, limit: Number.POSITIVE_INFINITY }))
    all.push(account);
  const ids = all.map((account) => account.id);
  assert.deepEqual(
    ids,
    [...ids].sort((a, b) => a - b),
  );
  assert.equal(JSON.stringify(all).includes('clk_'), false);
  assert.equal(JSON.stringify(all).includes('argon2'), false);
  const page = [];
  for await (const account of fixture.administration.list({ afterId: ids[1] ?? 0, limit: 2 }))
    page.push(account.id);
  assert.deepEqual(page, ids.slice(2, 4));
});

test('accounts without a password have keys but no login', async () => {
  const fields = { username: 'robot', email: 'robot@example.com' };
  const robot = await fixture.administration.create(BACKGROUND, fields);
  assert.equal(robot.is_admin, false);
  await principalOf(robot.api_key);
  for (const password of ['', 'password']) {
    const login = { name: 'robot', password, address: '::1' };
    await assert.rejects(fixture.sessions.login(BACKGROUND, login), code('invalid_credentials'));
  }
  const change = { password: 'a good password', address: '::1' };
  await fixture.accounts.update(by(await principalOf(robot.api_key)), change);
  await fixture.sessions.login(BACKGROUND, { name: 'robot', password: 'a good password', address: '::1' });
});

test('suspending oneself is refused; unknown accounts are not found', async () => {
  const fields = { username: 'chief', email: 'chief@example.com', isAdmin: true };
  const chief = await fixture.administration.create(BACKGROUND, fields);
  const principal = await principalOf(chief.api_key);
  const self = { accountId: chief.id, reason: 'x' };
  await assert.rejects(fixture.administration.suspend(by(principal), self), code('invalid_request'));
  const unknown = { accountId: 424242, reason: 'x' };
  await assert.rejects(fixture.administration.suspend(by(OPERATOR), unknown), code('account_not_found'));
  await assert.rejects(fixture.administration.resume(BACKGROUND, 424242), code('account_not_found'));
});

test('a suspension and its end are announced, and the end lets machines start again in its own commit', async () => {
  const { id } = await register();
  const creditStates = () =>
    fixture.metadata.get('SELECT resume_due FROM billing_accounts WHERE account_id = ?', id);
  fixture.changed.length = 0;
  await fixture.administration.suspend(by(OPERATOR), { accountId: id, reason: 'x' });
  assert.deepEqual([fixture.changed, await creditStates()], [[id], { resume_due: 0 }]);
  await fixture.administration.resume(BACKGROUND, id);
  assert.deepEqual([fixture.changed, await creditStates()], [[id, id], { resume_due: 1 }]);
});

test('showing a key makes one only when there is none', async () => {
  const { id, api_key: key } = await register();
  assert.equal((await fixture.administration.showKey(by(OPERATOR), id)).api_key, key);
  await fixture.metadata.commit([fixture.store.deleteMainKeys(id)]);
  const shown = await fixture.administration.showKey(by(OPERATOR), id);
  assert.notEqual(shown.api_key, key);
  assert.equal((await principalOf(shown.api_key)).accountId, id);
});

test('the preset key: any string, idempotent, replaced when changed, never a user’s account', async () => {
  const squatter = await register('ADMIN');
  const first = 'operator chosen key / 24+';
  await fixture.administration.ensureAdminKey(first);
  await fixture.administration.ensureAdminKey(first);
  const principal = await principalOf(first);
  assert.equal(permits(principal, 'admin'), true);
  assert.notEqual(principal.accountId, squatter.id);
  assert.equal(principal.username, 'admin-2');
  assert.equal((await fixture.accounts.profile(principal)).api_key, first);
  assert.equal((await principalOf(squatter.api_key)).isAdmin, false);
  const second = 'another key of the operator';
  await fixture.administration.ensureAdminKey(second);
  assert.equal((await principalOf(second)).accountId, principal.accountId);
  await assert.rejects(principalOf(first), code('invalid_api_key'));
});
