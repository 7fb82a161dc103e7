/** Who can access a bucket, and what its lifecycle would remove, over the JSON API: the answers match S3. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';
import { newS3, pathOf, type S3Client, transmit } from './s3-kit.ts';

let cloud: CloudProcess;
let owner: CheckedClient;
let s3: S3Client;
let friend: { client: CheckedClient; s3: S3Client; id: string };
const BUCKET = 'shared-by-json';
const SETTINGS = `/api/buckets/${BUCKET}/settings`;

before(async () => {
  cloud = await sharedCloud();
  const anyone = await CheckedClient.open(cloud.api);
  owner = anyone.as((await anyone.register()).api_key);
  s3 = await newS3(cloud.data, owner);
  const client = anyone.as((await anyone.register()).api_key);
  const id = (await client.expect(200, '/api/account')).canonical_id;
  friend = { client, s3: await newS3(cloud.data, client), id };
  await s3.ok('PUT', `/${BUCKET}`);
  await s3.ok('PUT', pathOf(BUCKET, 'in/a'), { body: 'shared' });
  await s3.ok('PUT', pathOf(BUCKET, 'b'), { body: 'kept' });
});

const change = (json: object) => [SETTINGS, { method: 'PATCH', json }] as const;
const allow = (Principal: unknown, more: object = {}) => ({
  Version: '2012-10-17',
  Statement: [
    { Effect: 'Allow', Principal, Action: 's3:GetObject', Resource: `arn:aws:s3:::${BUCKET}/in/*`, ...more },
  ],
});

interface Reach {
  readonly who: string;
  readonly account: string | null;
  readonly read: string;
}

/** Who may read, as the cloud says it. */
async function readers(object: string): Promise<string[]> {
  const path = `/api/buckets/${BUCKET}/access?object=${encodeURIComponent(object)}`;
  const { reach } = await owner.expect(200, path);
  return reach
    .filter(({ read }: Reach) => read !== 'no')
    .map(({ who, read }: Reach) => (read === 'yes' ? who : `${who}?`));
}

/** Whether S3 lets them read. */
async function served(key: string): Promise<{ everyone: boolean; account: boolean }> {
  const target = pathOf(BUCKET, key);
  const host = new URL(cloud.data).host;
  // A header of S3, so that the request counts as S3.
  const headers = { host, 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' };
  const open = await transmit(cloud.data, { method: 'GET', target, headers, body: Buffer.alloc(0) });
  const known = await friend.s3.call('GET', target);
  return { everyone: open.status === 200, account: known.status === 200 };
}

describe('access', () => {
  test('is the owner’s alone at first', async () => {
    const access = await owner.expect(200, `/api/buckets/${BUCKET}/access`);
    assert.deepEqual([access.is_public, access.reach.length], [false, 2]);
    assert.deepEqual(await readers('in/a'), []);
    assert.deepEqual(await served('in/a'), { everyone: false, account: false });
  });

  test('by a policy for everyone and for one account is what S3 gives', async () => {
    await owner.expect(200, ...change({ policy: allow('*') }));
    assert.deepEqual(await readers('in/a'), ['everyone', 'signed']);
    assert.deepEqual(await readers('b'), []);
    assert.deepEqual(await served('in/a'), { everyone: true, account: true });
    assert.deepEqual(await served('b'), { everyone: false, account: false });
    assert.equal((await owner.expect(200, `/api/buckets/${BUCKET}/access`)).is_public, true);
    const [read] = JSON.parse((await s3.ok('GET', `/${BUCKET}`, { query: 'policy' })).text).Statement;
    assert.equal(read.Principal, '*');

    const { policy } = await owner.expect(200, ...change({ policy: allow({ AWS: friend.id }) }));
    assert.deepEqual(policy.Statement[0].Principal, { AWS: friend.id });
    assert.deepEqual(await readers('in/a'), ['account']);
    assert.deepEqual(await served('in/a'), { everyone: false, account: true });
    const { reach } = await owner.expect(200, `/api/buckets/${BUCKET}/access`);
    assert.equal(reach[2].account, friend.id);

    const Condition = { IpAddress: { 'aws:SourceIp': '192.0.2.0/24' } };
    await owner.expect(200, ...change({ policy: allow('*', { Condition }) }));
    assert.deepEqual(await readers('in/a'), ['everyone?', 'signed?']);
    await owner.expect(200, ...change({ policy: null }));
    assert.deepEqual(await readers('in/a'), []);
  });

  test('is kept from the public by the block, which also refuses policies', async () => {
    const none = { block_acls: false, ignore_acls: false, block_policy: false, restrict: false };
    await owner.expect(200, ...change({ policy: allow('*'), public_access: { ...none, restrict: true } }));
    assert.deepEqual(await readers('in/a'), []);
    assert.deepEqual(await served('in/a'), { everyone: false, account: false });
    await owner.expect(200, ...change({ policy: null, public_access: { ...none, block_policy: true } }));
    const { errors } = await owner.refused(400, 'invalid_request', [...change({ policy: allow('*') })]);
    assert.deepEqual([errors[0].field, (await owner.expect(200, SETTINGS)).policy], ['policy', null]);
    await owner.expect(200, ...change({ policy: allow('*'), public_access: null }));
    await owner.expect(200, ...change({ policy: null }));
    assert.match(
      (await s3.call('GET', `/${BUCKET}`, { query: 'publicAccessBlock' })).text,
      /NoSuchPublicAccessBlockConfiguration/,
    );
  });

  test('by lists counts until ownership ends them', async () => {
    await s3.ok('PUT', pathOf(BUCKET, 'in/a'), { query: 'acl', headers: { 'x-amz-acl': 'public-read' } });
    assert.deepEqual(await readers('in/a'), ['everyone', 'signed']);
    assert.deepEqual(await served('in/a'), { everyone: true, account: true });
    await owner.expect(200, ...change({ ownership: 'BucketOwnerEnforced' }));
    assert.deepEqual(await readers('in/a'), []);
    assert.deepEqual(await served('in/a'), { everyone: false, account: false });
    await owner.expect(200, ...change({ ownership: null }));
    await s3.ok('PUT', `/${BUCKET}`, { query: 'acl', headers: { 'x-amz-acl': 'public-read' } });
    await owner.refused(400, 'invalid_request', [...change({ ownership: 'BucketOwnerEnforced' })]);
    await s3.ok('PUT', `/${BUCKET}`, { query: 'acl', headers: { 'x-amz-acl': 'private' } });
  });

  test('refuses policies that S3 refuses, and says why', async () => {
    const other = allow('*', { Resource: 'arn:aws:s3:::another/*' });
    const wrong = [
      {},
      { Statement: [] },
      allow({ AWS: 'f'.repeat(64) }),
      other,
      allow('*', { Effect: 'Maybe' }),
    ];
    for (const policy of [...wrong, allow('*', { Action: 's3:Nothing' })]) {
      const { errors } = await owner.refused(400, 'invalid_request', [...change({ policy })]);
      assert.equal(errors[0].field, 'policy');
      const body = JSON.stringify(policy);
      await s3.refused(400, 'MalformedPolicy', ['PUT', `/${BUCKET}`, { query: 'policy', body }]);
    }
    for (const [key, instead] of [
      ['s3:TlsVersion', 'use aws:SecureTransport'],
      ['s3:object-lock-remaining-retention-days', 'use s3:object-lock-retain-until-date'],
      ['aws:SourceArn', 'services do not make requests for accounts'],
      ['aws:ResourceAccount', 'use s3:ResourceAccount'],
    ] as const) {
      const policy = allow('*', { Condition: { StringEquals: { [key]: 'x' } } });
      const { errors } = await owner.refused(400, 'invalid_request', [...change({ policy })]);
      const put = { query: 'policy', body: JSON.stringify(policy) };
      const { text } = await s3.refused(400, 'MalformedPolicy', ['PUT', `/${BUCKET}`, put]);
      for (const said of [errors[0].message, text])
        assert.ok(said.includes(`condition key - ${key}, which is not evaluated: ${instead}`), said);
    }
    const long = allow('*', { Sid: 'x'.repeat(21 * 1024) });
    await owner.refused(400, 'invalid_request', [...change({ policy: long })]);
    await friend.client.refused(404, 'bucket_not_found', [`/api/buckets/${BUCKET}/access`]);
  });
});

describe('the preview of lifecycle rules', () => {
  const preview = (lifecycle: object[]) =>
    [`/api/buckets/${BUCKET}/lifecycle-preview`, { json: { lifecycle } }] as const;

  test('says which objects leave and when, and removes nothing', async () => {
    const rule = { id: 'tmp', enabled: true, prefix: 'in/', days: 1 };
    const found = await owner.expect(200, ...preview([rule]));
    assert.deepEqual([found.looked_at, found.is_cut, found.due], [1, false, 0]);
    const [{ name, size, rule: id, leaves_at }] = found.objects;
    assert.deepEqual([name, size, id], ['in/a', 6, 'tmp']);
    assert.match(leaves_at, / 00:00:00$/);
    const past = [{ enabled: true, date: '2020-01-01' }];
    const all = await owner.expect(200, ...preview(past));
    assert.deepEqual([all.looked_at, all.due, all.objects.length], [2, 2, 2]);
    assert.equal((await s3.ok('GET', pathOf(BUCKET, 'b'))).text, 'kept');
    assert.equal((await owner.expect(200, SETTINGS)).lifecycle, null);
    const old = [{ enabled: true, noncurrent_days: 3 }];
    assert.deepEqual((await owner.expect(200, ...preview(old))).objects, []);
  });

  test('refuses what S3 refuses', async () => {
    for (const rules of [[], [{ enabled: true }], [{ enabled: true, days: 0 }]]) {
      const { errors } = await owner.refused(400, 'invalid_request', [...preview(rules)]);
      assert.match(errors[0].field, /^lifecycle/);
    }
  });
});
