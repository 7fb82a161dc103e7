/** Contract §3: additional keys, with scopes, limits and expiry. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';

const KEYS = '/api/account/access-keys';
const cloud = await sharedCloud();
const client = await CheckedClient.open(cloud.api);
let owner: CheckedClient;

before(async () => {
  owner = client.as((await client.register()).api_key);
  for (const name of ['photos', 'papers']) await owner.expect(201, '/api/buckets', { json: { name } });
});

const create = (fields: object) => owner.expect(201, KEYS, { json: { name: 'k', scopes: ['*'], ...fields } });

describe('an access key', () => {
  test('is shown whole once, and never again', async () => {
    const made = await create({ name: 'backup – nightly', scopes: ['storage:read'] });
    assert.match(made.id, /^key-[0-9a-z]{26}$/);
    assert.match(made.api_key, /^clk_[0-9A-Za-z]{38}$/);
    assert.match(made.access_key_id, /^[A-Z0-9]{20}$/);
    assert.match(made.secret_access_key, /^[0-9A-Za-z]{40}$/);
    assert.deepEqual([made.name, made.scopes, made.buckets], ['backup – nightly', ['storage:read'], null]);
    const listed = await owner.expect(200, KEYS);
    const { api_key, secret_access_key, s3_endpoint, ...rest } = made;
    assert.match(s3_endpoint, /^http:\/\/127\.0\.0\.1:\d+$/);
    assert.deepEqual(listed.at(-1), rest);
    assert.ok(!JSON.stringify(listed).includes(api_key));
    assert.ok(!JSON.stringify(listed).includes(secret_access_key));
  });

  test('may do what its scopes say and no more', async () => {
    const reader = client.as((await create({ scopes: ['storage:read'] })).api_key);
    const writer = client.as((await create({ scopes: ['storage:write'] })).api_key);
    await reader.expect(200, '/api/buckets');
    await reader.refused(403, 'scope_required', ['/api/buckets', { json: { name: 'by-reader' } }]);
    assert.equal((await writer.upload('photos', 'w.txt', 'x')).status, 200);
    await writer.refused(403, 'scope_required', ['/api/buckets/photos/files']);
    await writer.refused(403, 'scope_required', ['/api/account']);
    const both = client.as((await create({ scopes: ['storage:*'] })).api_key);
    await both.expect(200, '/api/buckets/photos/files');
    assert.equal((await both.upload('photos', 'b.txt', 'x')).status, 200);
  });

  test("does not learn the account's own key", async () => {
    const key = client.as((await create({})).api_key);
    assert.equal((await key.expect(200, '/api/account')).api_key, null);
  });

  test('stays within its buckets and prefixes', async () => {
    await owner.upload('photos', 'public/a', 'a');
    const secret = await owner.upload('photos', 'private/b', 'b');
    const paper = await owner.upload('papers', 'public/c', 'c');
    const { api_key } = await create({
      scopes: ['storage:*'],
      buckets: [{ name: 'photos', prefix: 'public/' }],
    });
    const key = client.as(api_key);
    assert.equal((await key.upload('photos', 'public/d', 'd')).status, 200);
    const outside = await key.upload('photos', 'private/d', 'd');
    assert.ok([403, 404].includes(outside.status), `${outside.status}`);
    await key.refused(404, 'object_not_found', [`/api/storage/${secret.body.object_id}`]);
    await key.refused(404, 'object_not_found', [`/api/storage/${paper.body.object_id}/download`]);
    await key.refused(403, 'scope_required', ['/api/buckets/photos/files']);
    const files = await key.expect(200, '/api/buckets/photos/files?prefix=public/');
    assert.deepEqual(
      files.map(({ name }: { name: string }) => name),
      ['public/a', 'public/d'],
    );
    await key.refused(404, 'bucket_not_found', ['/api/buckets/papers/files']);
    const buckets = await key.expect(200, '/api/buckets');
    assert.deepEqual(
      buckets.map(({ name }: { name: string }) => name),
      ['photos'],
    );
  });

  test('cannot make a key that may do more, or for longer, than itself', async () => {
    const scoped = client.as((await create({ scopes: ['account:*', 'storage:read'] })).api_key);
    const ask = (json: object): [string, { json: object }] => [KEYS, { json: { name: 'more', ...json } }];
    await scoped.refused(403, 'scope_required', ask({ scopes: ['storage:write'] }));
    await scoped.refused(403, 'scope_required', ask({ scopes: ['*'] }));
    await scoped.expect(201, ...ask({ scopes: ['storage:read'] }));
    const limited = { scopes: ['account:*', 'storage:*'], buckets: [{ name: 'photos', prefix: 'a/' }] };
    const narrow = client.as((await create(limited)).api_key);
    await narrow.refused(403, 'scope_required', ask({ scopes: ['storage:read'] }));
    const wider = { scopes: ['storage:read'], buckets: [{ name: 'photos' }] };
    await narrow.refused(403, 'scope_required', ask(wider));
    const brief = client.as((await create({ expires_in: 600 })).api_key);
    await brief.refused(403, 'scope_required', ask({ scopes: ['storage:read'] }));
    await brief.refused(403, 'scope_required', ask({ scopes: ['storage:read'], expires_in: 6000 }));
    await brief.expect(201, ...ask({ scopes: ['storage:read'], expires_in: 60 }));
  });

  test('cannot revoke a key that may do more than itself', async () => {
    const broad = await create({ scopes: ['*'] });
    const narrow = await create({ scopes: ['storage:read'] });
    const keeper = client.as((await create({ scopes: ['account:*', 'storage:*'] })).api_key);
    await keeper.refused(403, 'scope_required', [`${KEYS}/${broad.id}`, { method: 'DELETE' }]);
    await client.as(broad.api_key).expect(200, '/api/account');
    await keeper.expect(200, `${KEYS}/${narrow.id}`, { method: 'DELETE' });
  });

  test('ends at its end', async () => {
    const made = await create({ expires_in: 1 });
    assert.match(made.expires_at, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
    const key = client.as(made.api_key);
    const end = performance.now() + 10_000;
    while ((await key.call('/api/account')).status === 200) {
      assert.ok(performance.now() < end, 'the key ends');
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    await key.refused(401, 'invalid_api_key', ['/api/account']);
    assert.equal((await create({ expires_at: '2099-12-31 23:59:59' })).expires_at, '2099-12-31 23:59:59');
    assert.equal((await create({ expires_at: '2099-12-31T23:59:59Z' })).expires_at, '2099-12-31 23:59:59');
  });

  test('says when it was last used', async () => {
    const { id, api_key } = await create({});
    await client.as(api_key).expect(200, '/api/account');
    const end = performance.now() + 15_000;
    const lastUse = async () =>
      (await owner.expect(200, KEYS)).find((key: { id: string }) => key.id === id).last_used_at;
    while ((await lastUse()) === null) {
      assert.ok(performance.now() < end, 'the last use is stored');
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    assert.match(await lastUse(), /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
  });

  test('is gone at once when it is revoked', async () => {
    const { id, api_key } = await create({});
    const key = client.as(api_key);
    await key.expect(200, '/api/account');
    assert.deepEqual(await owner.expect(200, `${KEYS}/${id}`, { method: 'DELETE' }), { id });
    await key.refused(401, 'invalid_api_key', ['/api/account']);
    await owner.refused(404, 'access_key_not_found', [`${KEYS}/${id}`, { method: 'DELETE' }]);
    await owner.refused(404, 'access_key_not_found', [`${KEYS}/nonsense`, { method: 'DELETE' }]);
  });
});

describe('refused', () => {
  const invalid: Record<string, object> = {
    'no name': { name: undefined },
    'an empty name': { name: '' },
    'a name of 101 characters': { name: 'n'.repeat(101) },
    'a name with a line break': { name: 'a\nb' },
    'no scopes': { scopes: [] },
    'an unknown scope': { scopes: ['storage:everything'] },
    'scopes as one string': { scopes: 'storage:read' },
    'an empty list of buckets': { buckets: [] },
    'buckets as strings': { buckets: ['photos'] },
    'an end in the past': { expires_at: '2001-01-01 00:00:00' },
    'an end that is no date': { expires_at: '2099-02-30 00:00:00' },
    'an end in words': { expires_at: 'tomorrow' },
    'two ends': { expires_in: 60, expires_at: '2099-01-01 00:00:00' },
    'a negative life': { expires_in: -1 },
    'a life in words': { expires_in: '60' },
  };
  for (const [what, fields] of Object.entries(invalid)) {
    test(what, async () => {
      const json = { name: 'k', scopes: ['storage:read'], ...fields };
      const problem = await owner.refused(400, 'invalid_request', [KEYS, { json }]);
      assert.ok(problem.errors.length > 0);
    });
  }

  test('the 201st key', async () => {
    const user = client.as((await client.register()).api_key);
    const json = { name: 'k', scopes: ['storage:read'] };
    for (let i = 0; i < 200; i++) await user.expect(201, KEYS, { json });
    await user.refused(409, 'too_many_access_keys', [KEYS, { json }]);
    const keys = await user.expect(200, KEYS);
    assert.equal(keys.length, 200);
    await user.expect(200, `${KEYS}/${keys[0].id}`, { method: 'DELETE' });
    await user.expect(201, KEYS, { json });
    const pages: string[] = [];
    for (let url: string | undefined = `${KEYS}?limit=33`; url !== undefined; ) {
      const { status, body, headers } = await user.call(url);
      assert.equal(status, 200);
      pages.push(...body.map(({ id }: { id: string }) => id));
      url = /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1]?.replace(/^https?:\/\/[^/]+/, '');
    }
    const all = (await user.expect(200, KEYS)).map(({ id }: { id: string }) => id);
    assert.deepEqual(pages, all);
    for (const query of ['limit=0', 'limit=1001', 'limit=x', 'limit=1.5'])
      await user.refused(400, 'invalid_request', [`${KEYS}?${query}`]);
    await user.refused(400, 'invalid_cursor', [`${KEYS}?limit=1&cursor=nonsense`]);
  });
});
