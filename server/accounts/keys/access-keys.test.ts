import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { mayTouch, type Principal, permits } from '../../calls/principal.ts';
import { BACKGROUND } from '../../metadata/change.ts';
import { isAppError } from '../../platform/errors.ts';
import {
  type AccountFixture,
  by,
  openAccountFixture,
  TEST_ACCESS_KEYS,
} from '../../testing/account-fixture.ts';
import type { AccessKeyBody } from '../schema.ts';
import { s3SecretContext } from '../sign-in/authenticator.ts';

let fixture: AccountFixture;
before(async () => {
  fixture = await openAccountFixture();
});
after(() => fixture.close());

let made = 0;
const code = (expected: string) => (error: unknown) => isAppError(error) && error.code === expected;
const principalOf = async (apiKey: string) => fixture.authenticator.authenticate({ apiKey });

async function holder(): Promise<Principal> {
  const username = `user-${++made}`;
  const fields = { username, email: `${username}@example.com`, password: 'a good password' };
  const account = await fixture.accounts.register(BACKGROUND, fields);
  return await principalOf(account.api_key ?? '');
}

const create = (principal: Principal, body: Partial<AccessKeyBody> = {}) =>
  fixture.accessKeys.create(by(principal), { name: 'k', scopes: ['*'], ...body });

async function listed(principal: Principal, afterId = '', limit = 1000) {
  const keys = [];
  for await (const key of fixture.accessKeys.list(principal, { afterId, limit })) keys.push(key);
  return keys;
}

test('secrets are shown once; the list has the rest; the S3 secret is sealed', async () => {
  const owner = await holder();
  const key = await create(owner, {
    name: 'Backup ☁',
    scopes: ['storage:read', 'storage:read'],
    buckets: [{ name: 'photos', prefix: '2026/' }, { name: 'logs' }],
    expires_in: 60,
  });
  assert.match(key.id, /^key-[0-9a-z]{26}$/);
  assert.match(key.access_key_id, /^[A-Z2-7]{20}$/);
  assert.match(key.secret_access_key, /^[0-9A-Za-z]{40}$/);
  const { api_key: apiKey, secret_access_key: secret, s3_endpoint: endpoint, ...shown } = key;
  assert.equal(endpoint, 'http://127.0.0.1:9000');
  assert.deepEqual(await listed(owner), [shown]);
  assert.deepEqual(shown.scopes, ['storage:read']);
  assert.deepEqual(shown.buckets, [
    { name: 'photos', prefix: '2026/' },
    { name: 'logs', prefix: '' },
  ]);
  assert.equal(shown.expires_at, '2026-01-01 00:01:00');
  const sql = 'SELECT s3_sealed_secret AS sealed FROM api_keys WHERE key_id = ?';
  const row = await fixture.metadata.get<{ sealed: Uint8Array }>(sql, key.id);
  assert.equal(
    fixture.sealer.unseal(row?.sealed ?? Buffer.alloc(0), s3SecretContext(key.id)).toString(),
    secret,
  );

  const principal = await principalOf(apiKey);
  assert.equal(permits(principal, 'storage:read'), true);
  assert.equal(permits(principal, 'storage:write'), false);
  assert.equal(permits(principal, 'account:read'), false);
  assert.equal(mayTouch(principal, 'photos', '2026/a'), true);
  assert.equal(mayTouch(principal, 'photos', '2025/a'), false);
  await fixture.authenticator.flush();
  assert.equal((await listed(owner))[0]?.last_used_at, '2026-01-01 00:00:00');
  fixture.clock.advance(60_000);
  await assert.rejects(principalOf(apiKey), code('invalid_api_key'));
});

test('revoked: refused at once; another account cannot; twice is 404', async () => {
  const [owner, stranger] = [await holder(), await holder()];
  const key = await create(owner);
  await principalOf(key.api_key);
  await assert.rejects(fixture.accessKeys.revoke(by(stranger), key.id), code('access_key_not_found'));
  await assert.rejects(fixture.accessKeys.revoke(by(owner), 'nonsense'), code('access_key_not_found'));
  await assert.rejects(
    fixture.accessKeys.revoke(by(owner), owner.credentialId),
    code('access_key_not_found'),
  );
  await principalOf(key.api_key);
  assert.deepEqual(await fixture.accessKeys.revoke(by(owner), key.id), { id: key.id });
  await assert.rejects(principalOf(key.api_key), code('invalid_api_key'));
  await assert.rejects(fixture.accessKeys.revoke(by(owner), key.id), code('access_key_not_found'));
  assert.deepEqual(await listed(stranger), []);
});

test('a key makes no key that may do more, reach further or live longer', async () => {
  const owner = await holder();
  const limited = await principalOf(
    (
      await create(owner, {
        scopes: ['account:*', 'storage:read'],
        buckets: [{ name: 'photos', prefix: 'a/' }],
        expires_in: 3600,
      })
    ).api_key,
  );
  const within = {
    scopes: ['storage:read' as const],
    buckets: [{ name: 'photos', prefix: 'a/b' }],
    expires_in: 60,
  };
  await create(limited, within);
  const beyond: Partial<AccessKeyBody>[] = [
    { ...within, scopes: ['*'] },
    { ...within, scopes: ['storage:*'] },
    { ...within, scopes: ['storage:read', 'compute:read'] },
    { ...within, buckets: [{ name: 'photos' }] },
    { ...within, buckets: [{ name: 'other', prefix: 'a/' }] },
    { scopes: ['storage:read'], expires_in: 60 },
    { ...within, expires_in: 3601 },
    { scopes: within.scopes, buckets: within.buckets },
  ];
  for (const body of beyond)
    await assert.rejects(create(limited, body), code('scope_required'), JSON.stringify(body));
});

test('a key revokes only what it could have made, itself included', async () => {
  const owner = await holder();
  const limits = {
    scopes: ['account:*' as const, 'storage:read' as const],
    buckets: [{ name: 'photos', prefix: 'a/' }],
    expires_in: 3600,
  };
  const own = await create(owner, limits);
  const limited = await principalOf(own.api_key);
  const { scopes, buckets } = limits;
  const beyond: Partial<AccessKeyBody>[] = [
    { scopes: ['*'], buckets, expires_in: 60 },
    { scopes: ['storage:write'], buckets, expires_in: 60 },
    { scopes, expires_in: 60 },
    { scopes, buckets: [{ name: 'photos' }], expires_in: 60 },
    { scopes, buckets, expires_in: 3601 },
    { scopes, buckets },
  ];
  for (const body of beyond) {
    const made = await create(owner, body);
    const revoking = fixture.accessKeys.revoke(by(limited), made.id);
    await assert.rejects(revoking, code('scope_required'), JSON.stringify(body));
    await principalOf(made.api_key);
    await fixture.accessKeys.revoke(by(owner), made.id);
  }
  const within = await create(owner, { scopes: ['storage:read'], buckets, expires_in: 60 });
  for (const id of [within.id, own.id]) await fixture.accessKeys.revoke(by(limited), id);
});

test('an access key never sees the main key, rotates it or closes the account', async () => {
  const owner = await holder();
  const all = await principalOf((await create(owner)).api_key);
  assert.equal((await fixture.accounts.profile(all)).api_key, null);
  await assert.rejects(fixture.apiKeys.rotate(by(all), 0), code('scope_required'));
  await assert.rejects(fixture.closings.close(by(all)), code('scope_required'));
});

test('a limited key of an administrator is no administrator', async () => {
  const fields = { username: 'chief', email: 'chief@example.com', isAdmin: true };
  const chief = await fixture.administration.create(BACKGROUND, fields);
  const owner = await principalOf(chief.api_key ?? '');
  assert.equal(permits(owner, 'admin'), true);
  for (const body of [{ scopes: ['storage:*' as const] }, { buckets: [{ name: 'photos' }] }]) {
    const principal = await principalOf((await create(owner, body)).api_key);
    assert.equal(principal.isAdmin, false);
    assert.equal(permits(principal, 'admin'), false);
  }
  assert.equal((await principalOf((await create(owner)).api_key)).isAdmin, true);
});

test('at most 100, also when 40 come at once at 90; pages follow each other', async () => {
  const owner = await holder();
  for (let i = 0; i < 90; i++) {
    await create(owner, { name: `k${i}` });
    fixture.clock.advance(1);
  }
  const results = await Promise.allSettled(Array.from({ length: 40 }, () => create(owner)));
  assert.equal(results.filter((result) => result.status === 'fulfilled').length, 10);
  const refusals = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
  assert.ok(refusals.every((error) => isAppError(error, 'too_many_access_keys')));
  const all = await listed(owner);
  assert.equal(all.length, TEST_ACCESS_KEYS);
  assert.equal(all[0]?.name, 'k0');
  const [first, second] = [await listed(owner, '', 60), await listed(owner, all[59]?.id, 60)];
  assert.deepEqual([...first, ...second], all);
});

test('names with control characters are refused', async () => {
  const owner = await holder();
  for (const name of ['a\nb', '\0', 'a\ud800'])
    await assert.rejects(create(owner, { name }), code('invalid_request'));
});
