/**
 * Contract §3: administrators' calls about accounts, and the calls still allowed to an account without
 * credits.
 */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { sessionOf } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';

const cloud = await CloudProcess.start();
after(() => cloud.stop());
const client = await CheckedClient.open(cloud.api);
const admin = client.as(ADMIN_KEY);
const ACCOUNTS = '/api/admin/accounts';

const credits = (id: number | string) => `${ACCOUNTS}/${id}/credits`;
const grant = (amount: unknown, reason: unknown = 'test') => ({ json: { amount, reason } });

describe('the list of accounts', () => {
  test('has everybody, oldest first, without keys', async () => {
    const made = [await client.register(), await client.register()];
    const list = await admin.expect(200, ACCOUNTS);
    const ids = list.map(({ id }: { id: number }) => id);
    assert.deepEqual(
      ids,
      [...ids].sort((a, b) => a - b),
    );
    for (const { id, api_key } of made) {
      assert.ok(ids.includes(id));
      assert.ok(!JSON.stringify(list).includes(api_key));
    }
    const admins = list.filter((account: { is_admin: boolean }) => account.is_admin);
    assert.deepEqual(
      admins.map(({ username }: { username: string }) => username),
      ['admin'],
    );
    // The name of a flag instead of a password.
    const text = JSON.stringify(list).replaceAll('"must_change_password"', '');
    assert.doesNotMatch(text, /password|argon2/);
  });

  test('comes in pages', async () => {
    for (let i = 0; i < 3; i++) await client.register();
    const found: number[] = [];
    for (let url: string | undefined = `${ACCOUNTS}?limit=2`; url !== undefined; ) {
      const { body, headers } = await admin.call(url);
      assert.ok(body.length <= 2);
      found.push(...body.map(({ id }: { id: number }) => id));
      url = /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1]?.replace(/^https?:\/\/[^/]+/, '');
    }
    assert.deepEqual(
      found,
      (await admin.expect(200, ACCOUNTS)).map(({ id }: { id: number }) => id),
    );
    await admin.refused(400, 'invalid_cursor', [`${ACCOUNTS}?limit=2&cursor=nonsense`]);
  });
});

describe('an account that an administrator makes', () => {
  test('is as asked for', async () => {
    const json = { username: 'made', email: 'made@example.org', is_admin: true };
    const { api_key, is_admin, credits: balance } = await admin.expect(201, ACCOUNTS, { json });
    assert.deepEqual([is_admin, balance], [true, 10]);
    await client.as(api_key).expect(200, ACCOUNTS);
    const again = { ...json, username: 'MADE' };
    await admin.refused(409, 'username_taken', [ACCOUNTS, { json: again }]);
    const bad = { username: 'x', email: 'x', is_admin: 'yes' };
    const problem = await admin.refused(400, 'invalid_request', [ACCOUNTS, { json: bad }]);
    assert.equal(problem.errors.length, 3);
  });
});

describe('one account', () => {
  test('is shown, and changed as a whole or not at all', async () => {
    const { id, api_key } = await client.register();
    const url = `${ACCOUNTS}/${id}`;
    const change = (json: object) => ({ method: 'PATCH', json });
    const shown = await admin.expect(200, url);
    assert.deepEqual([shown.id, shown.is_admin, shown.expires_at], [id, false, null]);
    assert.ok(!JSON.stringify(shown).includes(api_key));
    const expires_at = '2999-07-31 22:00:00';
    await admin.refused(404, 'plan_not_found', [url, change({ plan: 'none', expires_at })]);
    await admin.refused(400, 'invalid_request', [
      url,
      change({ email: 'other@example.org', expires_at: 'soon' }),
    ]);
    assert.deepEqual(await admin.expect(200, url), {
      ...shown,
      last_seen_at: (await admin.expect(200, url)).last_seen_at,
    });
    await admin.expect(200, url, change({ email: `changed-${id}@example.org`, expires_at }));
    const changed = await admin.expect(200, url);
    assert.deepEqual([changed.email, changed.expires_at], [`changed-${id}@example.org`, expires_at]);
    await admin.expect(200, url, change({ expires_at: null, is_admin: true }));
    await client.as(api_key).expect(200, url);
    await admin.expect(200, url, change({ is_admin: false }));
    await client.as(api_key).refused(403, 'admin_required', [url]);
    await admin.refused(404, 'account_not_found', [`${ACCOUNTS}/987654`]);
  });
});

describe('credits', () => {
  test('are granted and taken away, to the micro-credit', async () => {
    const { id, api_key } = await client.register();
    const steps: [number, number][] = [
      [5, 15],
      [0.000001, 15.000001],
      [-0.1, 14.900001],
      [0.2, 15.100001],
      [-15.100001, 0],
      [0.3, 0.3],
    ];
    for (const [amount, balance] of steps) {
      assert.equal((await admin.expect(200, credits(id), grant(amount))).credits, balance);
      assert.equal((await client.as(api_key).expect(200, '/api/account')).credits, balance);
    }
  });

  test('never fall below zero', async () => {
    const { id, api_key } = await client.register();
    await admin.refused(402, 'insufficient_credits', [credits(id), grant(-10.000001)]);
    assert.equal((await client.as(api_key).expect(200, '/api/account')).credits, 10);
    const answers = await Promise.all(Array.from({ length: 8 }, () => admin.call(credits(id), grant(-3))));
    const statuses = answers.map(({ status }) => status).sort();
    assert.deepEqual(statuses, [200, 200, 200, 402, 402, 402, 402, 402]);
    assert.equal((await client.as(api_key).expect(200, '/api/account')).credits, 1);
  });

  test('are a number of at most 6 decimals with a reason', async () => {
    const { id, api_key } = await client.register();
    for (const amount of [0, 0.0000001, 1.0000001, 1e10, -1e10, '5', null, true, [5], undefined])
      await admin.refused(400, 'invalid_request', [credits(id), grant(amount)]);
    for (const reason of ['', '  ', 'a\nb', 5, null, 'r'.repeat(501)])
      await admin.refused(400, 'invalid_request', [credits(id), grant(1, reason)]);
    const infinite = {
      body: '{"amount":1e999,"reason":"x"}',
      headers: { 'content-type': 'application/json' },
    };
    await admin.refused(400, 'invalid_request', [credits(id), infinite]);
    assert.equal((await client.as(api_key).expect(200, '/api/account')).credits, 10);
  });

  test('are granted once per Idempotency-Key, also when both requests run at once', async () => {
    const { id, api_key } = await client.register();
    const call = { ...grant(5), headers: { 'idempotency-key': `grant-${id}` } };
    const answers = await Promise.all([admin.call(credits(id), call), admin.call(credits(id), call)]);
    for (const { status } of answers) assert.ok(status === 200 || status === 409, `${status}`);
    assert.equal((await admin.expect(200, credits(id), call)).credits, 15);
    const other = { ...grant(6), headers: call.headers };
    await admin.refused(422, 'idempotency_mismatch', [credits(id), other]);
    assert.equal((await client.as(api_key).expect(200, '/api/account')).credits, 15);
  });

  test('of nobody cannot be changed', async () => {
    for (const id of ['0', '999999', '-1', '1e3', 'x', '01', '99999999999999999999'])
      await admin.refused(404, 'account_not_found', [credits(id), grant(1)]);
  });
});

describe('suspending', () => {
  test('refuses keys and logins with the reason, until resumed', async () => {
    const { id, api_key, username } = await client.register();
    const user = client.as(api_key);
    const login = { json: { username, password: 'correct horse battery' } };
    await user.expect(201, '/api/buckets', { json: { name: 'kept' } });
    const suspended = await admin.expect(200, `${ACCOUNTS}/${id}/suspend`, { json: { reason: 'unpaid' } });
    assert.deepEqual([suspended.is_active, suspended.suspended_reason], [false, 'unpaid']);
    const problem = await user.refused(403, 'account_suspended', ['/api/buckets']);
    assert.match(problem.detail, /unpaid/);
    await client.refused(403, 'account_suspended', ['/api/login', login]);
    const wrong = { json: { username, password: 'wrong password' } };
    await client.refused(401, 'invalid_credentials', ['/api/login', wrong]);
    const resumed = await admin.expect(200, `${ACCOUNTS}/${id}/resume`, { method: 'POST' });
    assert.deepEqual([resumed.is_active, resumed.suspended_reason], [true, null]);
    assert.equal((await user.expect(200, '/api/buckets')).length, 1);
    await client.expect(200, '/api/login', login);
  });

  test('oneself, or nobody, is refused', async () => {
    const { id } = await admin.expect(200, '/api/account');
    const json = { reason: 'x' };
    await admin.refused(400, 'invalid_request', [`${ACCOUNTS}/${id}/suspend`, { json }]);
    await admin.refused(404, 'account_not_found', [`${ACCOUNTS}/999999/suspend`, { json }]);
    await admin.refused(404, 'account_not_found', [`${ACCOUNTS}/999999/resume`, { method: 'POST' }]);
    await admin.refused(404, 'account_not_found', [`${ACCOUNTS}/999999/api-key`, { method: 'POST' }]);
  });
});

describe('removing', () => {
  test('keeps everybody out, with all that is there, until the account is kept', async () => {
    const { id, api_key, username } = await client.register();
    const user = client.as(api_key);
    await user.expect(201, '/api/buckets', { json: { name: 'mine' } });
    const removed = await admin.expect(200, `${ACCOUNTS}/${id}/remove`, { json: { reason: 'has left' } });
    const days = (Date.parse(`${removed.removed_at}Z`) - Date.now()) / 86_400_000;
    assert.ok(days > 6.9 && days <= 7, removed.removed_at);
    await user.refused(403, 'account_suspended', ['/api/account']);
    const json = { username, password: 'correct horse battery' };
    await client.refused(403, 'account_suspended', ['/api/login', { json }]);
    const again = { json: { reason: 'has left' } };
    await admin.refused(409, 'write_conflict', [`${ACCOUNTS}/${id}/remove`, again]);
    await admin.refused(404, 'account_not_found', [`${ACCOUNTS}/999999/remove`, again]);
    const kept = await admin.expect(200, `${ACCOUNTS}/${id}/keep`, { method: 'POST' });
    assert.deepEqual([kept.is_active, kept.removed_at], [true, null]);
    assert.equal((await user.expect(200, '/api/buckets')).length, 1);
    await client.expect(200, '/api/login', { json });
    await admin.refused(409, 'write_conflict', [`${ACCOUNTS}/${id}/keep`, { method: 'POST' }]);
    const { id: own } = await admin.expect(200, '/api/account');
    await admin.refused(400, 'invalid_request', [`${ACCOUNTS}/${own}/remove`, again]);
  });
});

describe('a reset link', () => {
  const tokenOf = ({ url }: { url: string }) => new URL(url).hash.slice('#token='.length);
  const linkOf = (id: number | string) => `${ACCOUNTS}/${id}/reset-link`;
  const reset = (token: string, password = 'a new password'): [string, { json: object }] => [
    '/api/reset-password',
    { json: { token, password } },
  ];

  test('sets the password, once: sessions end, keys stay, and nobody is signed in', async () => {
    const { id, username, api_key } = await client.register();
    const login = (password: string) => client.call('/api/login', { json: { username, password } });
    const headers = sessionOf(await login('correct horse battery'));
    const made = await admin.expect(201, linkOf(id), { method: 'POST' });
    assert.equal(new URL(made.url).pathname, '/reset-password');
    assert.equal(new URL(made.url).search, '', 'no server is sent the token with an address');
    const ends = Date.parse(`${made.expires_at.replace(' ', 'T')}Z`) - Date.now();
    assert.ok(ends > 3_000_000 && ends <= 3_600_000, made.expires_at);
    const token = tokenOf(made);
    await client.refused(400, 'invalid_request', reset(token, 'short'));
    const answer = await client.call(...reset(token));
    assert.deepEqual(answer.body, { account_id: id, username, sessions_ended: 1, keys_kept: 1 });
    assert.equal(answer.headers.get('set-cookie'), null);
    await client.refused(401, 'invalid_session', ['/api/account', { headers }]);
    assert.equal((await login('correct horse battery')).status, 401);
    assert.equal((await login('a new password')).status, 200);
    await client.as(api_key).expect(200, '/api/account');

    const later = tokenOf(await admin.expect(201, linkOf(id), { method: 'POST' }));
    const last = tokenOf(await admin.expect(201, linkOf(id), { method: 'POST' }));
    const refusals = [];
    for (const bad of [token, later, '', 'x', last.slice(1), `${last}x`]) {
      const problem = await client.refused(403, 'invalid_link', reset(bad));
      refusals.push(JSON.stringify({ ...problem, request_id: '' }));
    }
    assert.equal(new Set(refusals).size, 1, 'used, replaced and made up look alike');
    assert.ok(!refusals.join().includes(username));
  });

  test('is used by one of those who try at once', async () => {
    const { id, username } = await client.register();
    const token = tokenOf(await admin.expect(201, linkOf(id), { method: 'POST' }));
    const passwords = ['first password', 'second password', 'third password'];
    const answers = await Promise.all(passwords.map((password) => client.call(...reset(token, password))));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 403, 403]);
    const password = passwords[answers.findIndex(({ status }) => status === 200)];
    await client.expect(200, '/api/login', { json: { username, password } });
  });

  test('is stored nowhere in the clear, also when the caller would rather not wait', async () => {
    const { id } = await client.register();
    const call = { method: 'POST', headers: { prefer: 'respond-async', 'idempotency-key': 'a-link' } };
    const first = await admin.expect(201, linkOf(id), call);
    const second = await admin.expect(201, linkOf(id), call);
    assert.notEqual(first.url, second.url);
    await client.refused(403, 'invalid_link', reset(tokenOf(first)));
    await client.expect(200, ...reset(tokenOf(second)));
  });

  test('is made for an account without a password, whose session makes one as an administrator', async () => {
    const json = { username: 'second', email: 'second@example.org' };
    const { id } = await admin.expect(201, ACCOUNTS, { json });
    const login = { json: { username: 'second', password: 'a new password' } };
    await client.refused(401, 'invalid_credentials', ['/api/login', login]);
    await client.expect(200, ...reset(tokenOf(await admin.expect(201, linkOf(id), { method: 'POST' }))));
    await admin.expect(200, `${ACCOUNTS}/${id}`, { method: 'PATCH', json: { is_admin: true } });
    const session = sessionOf(await client.call('/api/login', login));
    const { id: other } = await client.register();
    const byPage = { method: 'POST', headers: session };
    const token = tokenOf(await client.expect(201, linkOf(other), byPage));
    await admin.expect(200, `${ACCOUNTS}/${other}/suspend`, { json: { reason: 'unpaid' } });
    await client.refused(403, 'account_suspended', reset(token));
    await admin.refused(409, 'account_inactive', [linkOf(other), { method: 'POST' }]);
    for (const nobody of ['0', '999999', 'x'])
      await admin.refused(404, 'account_not_found', [linkOf(nobody), { method: 'POST' }]);
  });
});

test('no administrator opens the account of another; the answer names the command of the operator', async () => {
  const json = { username: 'colleague', email: 'colleague@example.org', is_admin: true };
  const { id, api_key } = await admin.expect(201, ACCOUNTS, { json });
  const url = `${ACCOUNTS}/${id}`;
  const email = { method: 'PATCH', json: { email: 'mine@example.org' } };
  for (const call of [
    [`${url}/reset-link`, { method: 'POST' }],
    [`${url}/api-key`, { method: 'POST' }],
    [url, email],
  ] as const) {
    const problem = await admin.refused(403, 'operator_required', [...call]);
    assert.match(problem.hint, /cloudlet admin reset-link colleague/, call[0]);
  }
  // Revoking the permissions first gives no access either.
  await admin.expect(200, url, { method: 'PATCH', json: { is_admin: false } });
  for (const call of [
    [`${url}/reset-link`, { method: 'POST' }],
    [`${url}/api-key`, { method: 'POST' }],
    [url, email],
  ] as const) {
    const problem = await admin.refused(403, 'operator_required', [...call]);
    assert.match(problem.detail, /colleague was an administrator/, call[0]);
  }
  await admin.expect(200, url, { method: 'PATCH', json: { is_admin: true } });
  const own = client.as(api_key);
  await own.expect(200, `${url}/api-key`, { method: 'POST' });
  await own.expect(200, url, email);
  await own.refused(403, 'operator_required', [`${url}/reset-link`, { method: 'POST' }]);
});

describe('tokens of reset links', () => {
  test('are not guessed by the thousand', async () => {
    const guess = { json: { token: 'a guess', password: 'a new password' } };
    const answers = await Promise.all(
      Array.from({ length: 61 }, () => client.call('/api/reset-password', guess)),
    );
    const codes = new Set(answers.map(({ body }) => body.code));
    assert.deepEqual([...codes].sort(), ['invalid_link', 'rate_limited']);
    const limited = answers.find(({ body }) => body.code === 'rate_limited');
    assert.match(limited?.body.detail, /password resets/);
    assert.equal(limited?.status, 429);
  });
});

describe('without credits', () => {
  test('nothing can be stored, and what is there can be read and deleted', async () => {
    const { id, api_key } = await client.register();
    const user = client.as(api_key);
    await user.expect(201, '/api/buckets', { json: { name: 'old' } });
    const { body: object } = await user.upload('old', 'a.txt', 'still here');
    await admin.expect(200, credits(id), grant(-10));

    await user.refused(402, 'insufficient_credits', ['/api/buckets', { json: { name: 'new' } }]);
    const { status, body } = await user.upload('old', 'b.txt', 'x');
    assert.deepEqual([status, body.code], [402, 'insufficient_credits']);
    assert.equal((await user.expect(200, '/api/buckets/old/files')).length, 1);
    assert.equal(String(await user.download(object.object_id)), 'still here');
    await user.expect(200, `/api/storage/${object.object_id}/cdn-url`);
    await user.expect(200, `/api/storage/${object.object_id}`, { method: 'DELETE' });
    await user.expect(200, '/api/buckets/old', { method: 'DELETE' });

    await admin.expect(200, credits(id), grant(0.000001));
    await user.expect(201, '/api/buckets', { json: { name: 'new' } });
  });
});
