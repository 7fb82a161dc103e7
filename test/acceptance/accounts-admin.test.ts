/** Contract §3: what administrators do with accounts, and what an account without credits still may. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
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
    assert.doesNotMatch(JSON.stringify(list), /password|argon2/);
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
