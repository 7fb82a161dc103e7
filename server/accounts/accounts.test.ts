import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { transferStatements } from '../billing/ledger/ledger.ts';
import { BACKGROUND } from '../metadata/change.ts';
import { CommitRejected } from '../metadata/metadata.ts';
import { AppError, isAppError } from '../platform/errors.ts';
import { type AccountFixture, by, openAccountFixture, shown } from '../testing/account-fixture.ts';
import { Accounts } from './accounts.ts';
import { apiKeyTextProblem } from './keys/api-key-text.ts';

let fixture: AccountFixture;
before(async () => {
  fixture = await openAccountFixture();
});
after(() => fixture.close());

const address = '127.0.0.1';
let made = 0;

/** A new account, whose user name was not in use. */
async function register(fields: { username?: string; email?: string; password?: string } = {}) {
  const username = fields.username ?? `user-${++made}`;
  const email = fields.email ?? `${username}@example.com`;
  const password = fields.password ?? 'a good password';
  const account = await fixture.accounts.register(BACKGROUND, { username, email, password });
  return { account, password, key: account.api_key ?? '' };
}

const principalOf = (apiKey: string) => fixture.authenticator.authenticate({ apiKey });
const code = (expected: string) => (error: unknown) => isAppError(error) && error.code === expected;

/** Members of an account beyond those of its registration, as long as it has credits. */
const IN_ORDER = {
  is_admin: false,
  is_auditor: false,
  credits_held: 0,
  billing_state: 'ok',
  credits_exhausted_at: null,
  grace_ends_at: null,
  email_confirmed: false,
  mail_about: [],
};

test('registration answers exactly as the contract', async () => {
  fixture.clock.advance(1500);
  const { account, key } = await register({ username: 'Ada', email: 'Ada@Example.com' });
  assert.ok(Number.isInteger(account.id) && account.id > 0);
  assert.equal(apiKeyTextProblem(key), undefined);
  assert.deepEqual(account, {
    id: account.id,
    username: 'Ada',
    email: 'Ada@Example.com',
    api_key: key,
    plan: 'free',
    credits: 10,
    is_active: true,
    created_at: '2026-01-01 00:00:01',
    last_login: null,
  });
  const principal = await principalOf(key);
  assert.equal(principal.accountId, account.id);
  const { canonical_id, ...profile } = await fixture.accounts.profile(principal);
  assert.match(canonical_id, /^[0-9a-f]{64}$/);
  assert.equal(principal.canonicalId, canonical_id);
  assert.deepEqual(profile, { ...account, ...IN_ORDER, display_name: 'Ada' });
});

test('the grant is a ledger transfer of 10 credits', async () => {
  const { account } = await register();
  const rows = await fixture.metadata.all(
    'SELECT debit, amount_micro, code FROM ledger_transfers WHERE credit = ?',
    `account:${account.id}`,
  );
  assert.deepEqual(
    rows.map((row) => ({ ...(row as object) })),
    [{ debit: 'system:grants', amount_micro: 10_000_000, code: 'signup_grant' }],
  );
});

test('neither key nor password stand in the database files', async () => {
  const { key, password } = await register({ password: 'Zx-unmistakable-Zx' });
  for (const name of await readdir(fixture.directory)) {
    const bytes = await readFile(join(fixture.directory, name)).catch(() => Buffer.alloc(0));
    assert.equal(bytes.includes(key), false, name);
    assert.equal(bytes.includes(password), false, name);
  }
});

test('an address whose holder cannot be read is not called taken', async (t) => {
  t.mock.method(fixture.store, 'accountByEmail', async () => {
    throw new AppError('overloaded', 'The database is away');
  });
  await assert.rejects(register({ username: 'nobody-knows' }), code('overloaded'));
});

test('taken without regard to case, both named at once', async () => {
  await register({ username: 'Taken', email: 'taken@example.com' });
  await assert.rejects(register({ username: 'tAKEN', email: 'free@example.com' }), code('username_taken'));
  await assert.rejects(register({ username: 'free-name', email: 'TAKEN@EXAMPLE.COM' }), code('email_taken'));
  await assert.rejects(register({ username: 'free-name', email: 'ｔaken@example.com' }), code('email_taken'));
  await assert.rejects(register({ username: 'TAKEN', email: 'TAKEN@example.com' }), (error: AppError) => {
    assert.equal(error.code, 'username_taken');
    assert.deepEqual(
      error.fields?.map(({ field }) => field),
      ['username', 'email'],
    );
    return true;
  });
});

for (const registration of ['closed', 'invitation'] as const) {
  test(`where registration is ${registration}, only administrators make accounts so`, async (t) => {
    const fixture = await openAccountFixture({ registration });
    t.after(() => fixture.close());
    const fields = { username: 'ada', email: 'ada@example.org', password: 'correct horse' };
    const refused = fixture.accounts.register(BACKGROUND, fields);
    await assert.rejects(refused, (error) => isAppError(error, 'registration_closed'));
    assert.equal((await fixture.administration.create(BACKGROUND, fields)).is_admin, false);
  });
}

test('50 parallel registrations of one name: one wins, and only one account and grant exist', async () => {
  const fields = { username: 'Race', email: 'race@example.com', password: 'a good password' };
  const results = await Promise.allSettled(
    Array.from({ length: 50 }, () => fixture.accounts.register(BACKGROUND, fields)),
  );
  assert.equal(results.filter((result) => result.status === 'fulfilled').length, 1);
  const refusals = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
  assert.ok(refusals.every((error) => isAppError(error, 'username_taken')));
  const count = await fixture.metadata.get<{ n: number }>(
    "SELECT count(*) AS n FROM accounts WHERE username_folded = 'race'",
  );
  assert.equal(count?.n, 1);
});

test('parallel registrations of different names get different ids', async () => {
  const all = await Promise.all(Array.from({ length: 40 }, () => register()));
  assert.equal(new Set(all.map(({ account }) => account.id)).size, 40);
});

test('two nodes that register at once give different ids, and refuse nobody', async () => {
  const deps = { ...fixture, transfer: transferStatements, signupMicro: 1, registration: 'open' } as const;
  const nodes = [new Accounts(deps), new Accounts(deps)];
  const registerAt = (i: number) => {
    const fields = {
      username: `of-nodes-${i}`,
      email: `of-nodes-${i}@example.com`,
      password: 'a good password',
    };
    return nodes[i % 2]?.register(BACKGROUND, fields);
  };
  const atOnce = await Promise.all(Array.from({ length: 20 }, (_, i) => registerAt(i)));
  // The second node is far behind when it continues.
  const atOne = await Promise.all(Array.from({ length: 60 }, (_, i) => registerAt(20 + 2 * i)));
  const ids = [...atOnce, ...atOne, await registerAt(21)].map((account) => account?.id);
  assert.equal(new Set(ids).size, 81);
});

test('the record of the answer is part of the commit: refused together, stored together', async () => {
  const fields = { username: 'receipt', email: 'receipt@example.com', password: 'a good password' };
  const insert = (answer: unknown) => [
    { sql: 'INSERT INTO settings (name, value) VALUES (?, ?)', params: ['receipt', JSON.stringify(answer)] },
  ];
  const account = await fixture.accounts.register({ record: (answer) => insert(answer) }, fields);
  const stored = await fixture.metadata.get<{ value: string }>(
    "SELECT value FROM settings WHERE name = 'receipt'",
  );
  assert.deepEqual(JSON.parse(stored?.value ?? ''), account);
  const second = { ...fields, username: 'receipt2', email: 'receipt2@example.com' };
  await assert.rejects(
    fixture.accounts.register({ record: (answer) => insert(answer) }, second),
    CommitRejected,
  );
  assert.equal(await fixture.store.accountByUsername('receipt2'), undefined);
});

test('rotation: without overlap the old key ends at once', async () => {
  const { account, key } = await register();
  const rotated = await fixture.apiKeys.rotate(by(await principalOf(key)), 0);
  assert.equal(rotated.previous_key_expires_at, null);
  assert.equal(rotated.id, account.id);
  assert.notEqual(rotated.api_key, key);
  await assert.rejects(async () => principalOf(key), code('invalid_api_key'));
  assert.equal((await principalOf(rotated.api_key ?? '')).accountId, account.id);
});

test('rotation with overlap: both keys work until it ends; the old one cannot see the new one', async () => {
  const { account, key } = await register();
  const rotated = await fixture.apiKeys.rotate(by(await principalOf(key)), 60);
  const old = await principalOf(key);
  assert.equal(old.accountId, account.id);
  assert.equal((await fixture.accounts.profile(old)).api_key, null);
  await assert.rejects(fixture.apiKeys.rotate(by(old), 0), code('scope_required'));
  await assert.rejects(fixture.closings.close(by(old)), code('scope_required'));
  const forever = { name: 'k', scopes: ['*' as const] };
  await assert.rejects(fixture.accessKeys.create(by(old), forever), code('scope_required'));
  fixture.clock.advance(59_999);
  assert.equal((await principalOf(key)).accountId, account.id);
  fixture.clock.advance(1);
  await assert.rejects(async () => principalOf(key), code('invalid_api_key'));
  assert.equal((await principalOf(rotated.api_key ?? '')).accountId, account.id);
});

test('a rotation without overlap ends the older overlaps too', async () => {
  const { key } = await register();
  const second = await fixture.apiKeys.rotate(by(await principalOf(key)), 3600);
  await principalOf(key);
  await fixture.apiKeys.rotate(by(await principalOf(second.api_key ?? '')), 0);
  for (const old of [key, second.api_key ?? ''])
    await assert.rejects(async () => principalOf(old), code('invalid_api_key'));
});

test('overlaps are bounded; 20 parallel rotations leave one current key', async () => {
  const { account, key } = await register();
  const principal = await principalOf(key);
  const results = await Promise.allSettled(
    Array.from({ length: 20 }, () => fixture.apiKeys.rotate(by(principal), 3600)),
  );
  assert.ok(results.some((result) => result.status === 'fulfilled'));
  const rows = await fixture.store.mainKeys(account.id);
  assert.equal(rows.filter((row) => row.expires_at === null).length, 1);
  let current = await fixture.apiKeys.current(account.id);
  await assert.rejects(async () => {
    for (let i = 0; i < 20; i++) {
      current = (await fixture.apiKeys.rotate(by(await principalOf(current ?? '')), 3600)).api_key;
    }
  }, code('too_many_access_keys'));
});

test('a password changes only with the current one, an address also by a session', async () => {
  const { account, key, password } = await register();
  const principal = await principalOf(key);
  const another = { password: 'another password', address };
  await assert.rejects(fixture.accounts.update(by(principal), another), code('invalid_request'));
  const change = { email: 'new@example.com', address };
  const scopes = ['account:write'] as const;
  const { api_key } = await fixture.accessKeys.create(by(principal), { name: 'k', scopes: [...scopes] });
  const narrow = await principalOf(api_key);
  await assert.rejects(fixture.accounts.update(by(narrow), change), code('invalid_request'));
  assert.equal((await fixture.accounts.profile(principal)).email, account.email);
  await assert.rejects(fixture.accounts.update(by(principal), change), code('invalid_request'));
  const opened = await fixture.sessions.login(BACKGROUND, { name: account.username, password, address });
  const secrets = { cookies: [opened.cookie], token: opened.token };
  const session = await fixture.authenticator.authenticate({ session: secrets });
  assert.equal((await fixture.accounts.update(by(session), change)).email, 'new@example.com');
  const wrong = { ...change, currentPassword: 'wrong password' };
  await assert.rejects(fixture.accounts.update(by(principal), wrong), code('invalid_credentials'));
  const right = { email: 'newer@example.com', address, currentPassword: password };
  assert.equal((await fixture.accounts.update(by(narrow), right)).email, 'newer@example.com');
  const case_ = { email: 'NEW@example.com', currentPassword: password, address };
  assert.equal((await fixture.accounts.update(by(principal), case_)).email, 'NEW@example.com');
  assert.deepEqual(
    await fixture.accounts.update(by(principal), { address }),
    await fixture.accounts.profile(principal),
  );
  const other = await register();
  const taken = { email: other.account.email, currentPassword: password, address };
  await assert.rejects(fixture.accounts.update(by(principal), taken), code('email_taken'));
  assert.equal((await fixture.accounts.profile(principal)).email, 'NEW@example.com');
  assert.equal(account.id, (await fixture.store.accountByEmail('new@example.com'))?.id);
});

test('guessing the current password is slowed', async () => {
  const { key, password } = await register();
  const principal = await principalOf(key);
  for (let i = 0; i < 10; i++) {
    const guess = { email: 'x@example.com', currentPassword: 'wrong password', address };
    await assert.rejects(fixture.accounts.update(by(principal), guess), code('invalid_credentials'));
  }
  const right = { email: 'x@example.com', currentPassword: password, address };
  await assert.rejects(fixture.accounts.update(by(principal), right), code('rate_limited'));
  await fixture.accounts.update(by(principal), { ...right, address: '10.9.9.9' });
});

test('closing ends keys and sessions, frees the name, keeps the ledger', async () => {
  const { account, key, password } = await register({ username: 'Leaver', email: 'leaver@example.com' });
  const session = await fixture.sessions.login(BACKGROUND, { name: 'leaver', password, address });
  const principal = await principalOf(key);
  const access = await fixture.accessKeys.create(by(principal), { name: 'k', scopes: ['*'] });
  await principalOf(access.api_key);
  const closed = await fixture.closings.close(by(principal));
  assert.deepEqual([closed.id, closed.username], [account.id, 'Leaver']);
  await assert.rejects(async () => principalOf(key), code('invalid_api_key'));
  await assert.rejects(async () => principalOf(access.api_key), code('invalid_api_key'));
  await assert.rejects(
    async () => fixture.authenticator.authenticate(shown(session)),
    code('invalid_session'),
  );
  await assert.rejects(
    fixture.sessions.login(BACKGROUND, { name: 'leaver', password, address }),
    code('invalid_credentials'),
  );
  assert.equal(fixture.changed.at(-1), principal.accountId);
  await assert.rejects(fixture.closings.close(by(principal)), code('account_not_found'));
  // A request in progress when the account is closed gives no access afterwards.
  const late = fixture.apiKeys.issue(account.id);
  await fixture.metadata.commit([late.statement]);
  await assert.rejects(async () => principalOf(late.text), code('invalid_api_key'));
  const again = await register({ username: 'leaver', email: 'LEAVER@example.com' });
  assert.ok(again.account.id > account.id);
  const ledger = await fixture.metadata.all(
    'SELECT 1 FROM ledger_transfers WHERE credit = ?',
    `account:${account.id}`,
  );
  assert.equal(ledger.length, 1);
});
