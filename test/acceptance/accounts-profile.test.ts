/** Contract §3: the account's own page: reading, changing, closing, and its key. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { sessionOf } from '../harness/client.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';

const PASSWORD = 'correct horse battery';
let client: CheckedClient;
before(async () => {
  client = await CheckedClient.open((await sharedCloud()).api);
});

const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });
const patch = (json: unknown) => ({ method: 'PATCH', json });

describe('the account', () => {
  test('is the same at both addresses and by both forms of the key', async () => {
    const { api_key, id, username } = await client.register();
    const account = await client.as(api_key).expect(200, '/api/account');
    assert.deepEqual([account.id, account.username, account.api_key], [id, username, api_key]);
    assert.deepEqual(await client.as(api_key).expect(200, '/api/profile'), account);
    assert.deepEqual(await client.expect(200, '/api/account', bearer(api_key)), account);
    assert.match(account.canonical_id, /^[0-9a-f]{64}$/);
    assert.equal(account.display_name, username);
    const lower = { headers: { authorization: `bearer ${api_key}` } };
    assert.deepEqual(await client.expect(200, '/api/account', lower), account);
  });

  test('a key in any other header or form is no key', async () => {
    const { api_key } = await client.register();
    await client.refused(401, 'missing_api_key', [`/api/account?api_key=${api_key}`]);
    for (const authorization of [
      api_key,
      `Basic ${btoa(`x:${api_key}`)}`,
      `Bearer ${api_key} more`,
      'Bearer',
    ])
      await client.refused(401, 'invalid_api_key', ['/api/account', { headers: { authorization } }]);
    for (const key of [api_key.toLowerCase(), api_key.slice(0, -1), `${api_key}0`])
      await client.as(key).refused(401, 'invalid_api_key', ['/api/account']);
  });
});

describe('changing it', () => {
  test('by a key the e-mail address and the password, with the current password', async () => {
    const { api_key, username } = await client.register();
    const user = client.as(api_key);
    const email = `${username}@new.example.org`;
    await user.refused(400, 'invalid_request', ['/api/account', patch({ email })]);
    const changed = await user.expect(200, '/api/account', patch({ email, current_password: PASSWORD }));
    assert.equal(changed.email, email);
    const password = 'another long password';
    await user.expect(200, '/api/account', patch({ password, current_password: PASSWORD }));
    await client.expect(200, '/api/login', { json: { email, password } });
    await client.refused(401, 'invalid_credentials', [
      '/api/login',
      { json: { username, password: PASSWORD } },
    ]);
    assert.equal((await user.expect(200, '/api/account')).api_key, api_key);
  });

  test('a new password ends the other sessions', async () => {
    const { username, api_key } = await client.register();
    const headers = sessionOf(await client.call('/api/login', { json: { username, password: PASSWORD } }));
    const json = { password: 'another long password', current_password: PASSWORD };
    await client.as(api_key).expect(200, '/api/account', patch(json));
    await client.refused(401, 'invalid_session', ['/api/account', { headers }]);
  });

  test('is refused without the current password, with a wrong one, or with invalid fields', async () => {
    const user = client.as((await client.register()).api_key);
    const other = await client.register();
    const email = 'x@example.org';
    const password = 'another long password';
    await user.refused(400, 'invalid_request', ['/api/account', patch({ email, password })]);
    const wrong = { email, current_password: 'wrong password' };
    await user.refused(401, 'invalid_credentials', ['/api/account', patch(wrong)]);
    const bad = { email: 'no address', password: 'short', current_password: PASSWORD };
    const problem = await user.refused(400, 'invalid_request', ['/api/account', patch(bad)]);
    assert.deepEqual(problem.errors.map(({ field }: { field: string }) => field).sort(), [
      'email',
      'password',
    ]);
    const taken = { email: `${other.username}@EXAMPLE.org`, current_password: PASSWORD };
    await user.refused(409, 'email_taken', ['/api/account', patch(taken)]);
  });

  test('nothing else can be changed', async () => {
    const account = await client.register();
    const user = client.as(account.api_key);
    const before = await user.expect(200, '/api/account');
    const json = { username: 'other', credits: 1e6, is_admin: true, plan: 'x', id: 1, is_active: false };
    await user.refused(400, 'invalid_request', ['/api/account', patch(json)]);
    assert.deepEqual(await user.expect(200, '/api/account'), before);
  });
});

describe('closing it', () => {
  test('ends its keys and sessions; signing in opens it again, with its data', async () => {
    const { api_key, username, id } = await client.register();
    const user = client.as(api_key);
    await user.expect(201, '/api/buckets', { json: { name: 'left-behind' } });
    const { body: object } = await user.upload('left-behind', 'a', 'x');
    const { cdn_url } = await user.expect(200, `/api/storage/${object.object_id}/cdn-url`);
    assert.equal((await fetch(cdn_url)).status, 200);
    const json = { name: 'k', scopes: ['*'] };
    const access = await user.expect(201, '/api/account/access-keys', { json });
    const login = { json: { username, password: PASSWORD } };
    const headers = sessionOf(await client.call('/api/login', login));

    const closed = await user.expect(200, '/api/account', { method: 'DELETE' });
    assert.deepEqual([closed.id, closed.username], [id, username]);
    assert.equal(Date.parse(closed.removed_at) - Date.parse(closed.closed_at), 7 * 24 * 3600_000);
    await user.refused(401, 'invalid_api_key', ['/api/account']);
    await client.as(access.api_key).refused(401, 'invalid_api_key', ['/api/buckets']);
    await client.refused(401, 'invalid_session', ['/api/account', { headers }]);
    assert.notEqual((await fetch(cdn_url)).status, 200, 'links of a closed account end');
    const again = { username, email: `${username}@example.org`, password: PASSWORD };
    await client.refused(409, 'username_taken', ['/api/register', { json: again }]);
    const opened = await client.expect(200, '/api/login', login);
    assert.deepEqual([opened.id, opened.is_active], [id, true]);
    await user.refused(401, 'invalid_api_key', ['/api/account']);
    const files = await client.as(opened.api_key).expect(200, '/api/buckets/left-behind/files');
    assert.equal(files.length, 1);
  });

  test('is for the whole account only, not for an access key', async () => {
    const user = client.as((await client.register()).api_key);
    const json = { name: 'k', scopes: ['*'] };
    const { api_key } = await user.expect(201, '/api/account/access-keys', { json });
    await client.as(api_key).refused(403, 'scope_required', ['/api/account', { method: 'DELETE' }]);
    await client.as(api_key).refused(403, 'scope_required', ['/api/account/api-key', { json: {} }]);
  });
});

describe('rotating the key', () => {
  const rotate = '/api/account/api-key';

  test('without an overlap ends the old key at once', async () => {
    const { api_key } = await client.register();
    const answer = await client.as(api_key).expect(200, rotate, { method: 'POST' });
    assert.notEqual(answer.api_key, api_key);
    assert.equal(answer.previous_key_expires_at, null);
    await client.as(api_key).refused(401, 'invalid_api_key', ['/api/account']);
    assert.equal((await client.as(answer.api_key).expect(200, '/api/account')).api_key, answer.api_key);
  });

  test('with one lets the old key live on for it, but not rotate or show the new one', async () => {
    const { api_key } = await client.register();
    const old = client.as(api_key);
    const answer = await old.expect(200, rotate, { json: { overlap_seconds: 3 } });
    assert.match(answer.previous_key_expires_at, /^\d{4}-/);
    assert.equal((await old.expect(200, '/api/account')).api_key, null);
    await old.refused(403, 'scope_required', [rotate, { json: {} }]);
    const end = performance.now() + 10_000;
    while ((await old.call('/api/account')).status === 200) {
      assert.ok(performance.now() < end, 'the overlap ends');
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    await old.refused(401, 'invalid_api_key', ['/api/account']);
    await client.as(answer.api_key).expect(200, '/api/account');
  });

  test('takes only whole numbers of seconds up to 30 days', async () => {
    const user = client.as((await client.register()).api_key);
    for (const overlap_seconds of [-1, 1.5, '60', true, null, 2_592_001])
      await user.refused(400, 'invalid_request', [rotate, { json: { overlap_seconds } }]);
    await user.expect(200, rotate, { json: { overlap_seconds: 2_592_000 } });
  });

  test('repeated with one Idempotency-Key answers the same key', async () => {
    const { username } = await client.register();
    const headers = sessionOf(await client.call('/api/login', { json: { username, password: PASSWORD } }));
    const call = { json: {}, headers: { ...headers, 'idempotency-key': 'rotate-once' } };
    const first = await client.expect(200, rotate, call);
    assert.deepEqual(await client.expect(200, rotate, call), first);
    await client.as(first.api_key).expect(200, '/api/account');
  });
});
