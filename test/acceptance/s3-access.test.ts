/** Who can access a bucket: other accounts, anonymous callers, and policies about them. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { Client } from '../harness/client.ts';
import { ADMIN_KEY, type CloudProcess } from '../harness/cloud-process.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';
import {
  anonymously,
  assertRefused,
  newKeyPair,
  newS3,
  newUpload,
  policy,
  S3Client,
  setPolicy,
  statement,
  textOf,
  textsOf,
} from './s3-kit.ts';

let cloud: CloudProcess;
let owner: Client;
let other: Client;
let s3: S3Client;
let stranger: S3Client;
let ids: { owner: string; other: string; otherName: string; otherNumber: number };
let made = 0;

before(async () => {
  cloud = await sharedCloud();
  [owner, other] = [await new Client(cloud.api).newUser(), await new Client(cloud.api).newUser()];
  [s3, stranger] = [await newS3(cloud.data, owner), await newS3(cloud.data, other)];
  const [mine, theirs] = [(await owner.call('/api/account')).body, (await other.call('/api/account')).body];
  ids = {
    owner: mine.canonical_id,
    other: theirs.canonical_id,
    otherName: theirs.username,
    otherNumber: theirs.id,
  };
});

async function newBucket(keys: readonly string[] = ['a']): Promise<string> {
  const name = `access-${++made}`;
  await s3.ok('PUT', `/${name}`);
  for (const key of keys) await s3.ok('PUT', `/${name}/${key}`, { body: `bytes of ${key}` });
  return name;
}

const get = (path: string, query = '') => anonymously(cloud.data, 'GET', path, { query });
const toOther = (more: object) => ({ Principal: { AWS: ids.other }, ...more });

describe('without permission', () => {
  test('strangers and nobody learn that a bucket is there, and no more', async () => {
    const bucket = await newBucket();
    for (const path of [`/${bucket}`, `/${bucket}/a`, `/${bucket}/missing`]) {
      await stranger.refused(403, 'AccessDenied', ['GET', path]);
      assertRefused(await get(path), 403, 'AccessDenied');
    }
    for (const method of ['PUT', 'DELETE']) {
      await stranger.refused(403, 'AccessDenied', [method, `/${bucket}/a`, { body: 'x' }]);
      assertRefused(await anonymously(cloud.data, method, `/${bucket}/a`), 403, 'AccessDenied');
    }
    assertRefused(await get('/no-such-bucket/a'), 404, 'NoSuchBucket');
    await stranger.refused(404, 'NoSuchBucket', ['GET', '/no-such-bucket/a']);
    assert.equal((await s3.ok('GET', `/${bucket}/a`)).text, 'bytes of a');
    assert.doesNotMatch((await stranger.ok('GET', '/')).text, new RegExp(bucket));
  });

  test('other routes of the data origin stay what they are', async () => {
    for (const path of ['/', '/cdn/obj-x/y', '/db/x/v2/pipeline']) {
      const { headers } = await get(path);
      assert.doesNotMatch(String(headers['content-type']), /xml/, path);
    }
  });
});

describe('a policy', () => {
  test('is kept as it was sent, and removed', async () => {
    const bucket = await newBucket();
    const query = 'policy';
    await s3.refused(404, 'NoSuchBucketPolicy', ['GET', `/${bucket}`, { query }]);
    const text = policy(statement(bucket, { Action: 's3:GetObject', Resource: `arn:aws:s3:::${bucket}/*` }));
    assert.equal((await s3.ok('PUT', `/${bucket}`, { query, body: text })).status, 204);
    const read = await s3.ok('GET', `/${bucket}`, { query });
    assert.deepEqual([read.text, read.headers['content-type']], [text, 'application/json']);
    assert.equal((await s3.ok('DELETE', `/${bucket}`, { query })).status, 204);
    await s3.refused(404, 'NoSuchBucketPolicy', ['GET', `/${bucket}`, { query }]);
    assertRefused(await get(`/${bucket}/a`), 403, 'AccessDenied');
  });

  test('lets everyone read, and nothing else', async () => {
    const bucket = await newBucket();
    await setPolicy(s3, bucket, policy(statement(bucket, { Action: 's3:GetObject' })));
    const read = await get(`/${bucket}/a`);
    assert.deepEqual([read.status, read.text], [200, 'bytes of a']);
    assert.match(String(read.headers['content-security-policy']), /^sandbox/);
    assert.equal((await stranger.ok('GET', `/${bucket}/a`)).text, 'bytes of a');
    assertRefused(await get(`/${bucket}/a`, 'response-content-type=text%2Fhtml'), 400, 'InvalidRequest');
    // A caller that may not list does not learn which names are missing.
    assertRefused(await get(`/${bucket}/missing`), 403, 'AccessDenied');
    assertRefused(await get(`/${bucket}`), 403, 'AccessDenied');
    assertRefused(await anonymously(cloud.data, 'PUT', `/${bucket}/b`, { body: 'x' }), 403, 'AccessDenied');
    await stranger.refused(403, 'AccessDenied', ['DELETE', `/${bucket}/a`]);
    await stranger.refused(403, 'AccessDenied', ['GET', `/${bucket}`, { query: 'policy' }]);
  });

  test('that lets list says what is missing', async () => {
    const bucket = await newBucket();
    await setPolicy(s3, bucket, policy(statement(bucket, { Action: ['s3:ListBucket', 's3:GetObject'] })));
    assertRefused(await get(`/${bucket}/missing`), 404, 'NoSuchKey');
    assert.equal((await anonymously(cloud.data, 'HEAD', `/${bucket}/missing`)).status, 404);
    const listed = await get(`/${bucket}`, 'list-type=2&fetch-owner=true');
    assert.deepEqual(textsOf(listed.text, 'Key'), ['a']);
    assert.equal(textOf(listed.text, 'ID'), ids.owner);
    assert.equal((await anonymously(cloud.data, 'HEAD', `/${bucket}`)).status, 200);
  });

  test('names accounts by canonical id, number and user', async () => {
    const bucket = await newBucket();
    const third = await newS3(cloud.data, await new Client(cloud.api).newUser());
    for (const AWS of [
      ids.other,
      String(ids.otherNumber),
      `arn:aws:iam::${ids.otherNumber}:root`,
      `arn:aws:iam::${ids.other}:user/${ids.otherName}`,
      `arn:aws:iam:::user/${ids.other}`,
      ['arn:aws:iam:::user/', ids.otherName].join(''),
    ]) {
      await setPolicy(s3, bucket, policy(statement(bucket, { Principal: { AWS: [AWS] } })));
      assert.equal((await stranger.ok('GET', `/${bucket}/a`)).text, 'bytes of a', AWS);
      await third.refused(403, 'AccessDenied', ['GET', `/${bucket}/a`]);
      assertRefused(await get(`/${bucket}/a`), 403, 'AccessDenied');
    }
    await stranger.refused(405, 'MethodNotAllowed', ['GET', `/${bucket}`, { query: 'policy' }]);
  });

  test('that is not understood is refused', async () => {
    const bucket = await newBucket();
    const arn = `arn:aws:s3:::${bucket}/*`;
    const wrong: readonly (string | Readonly<Record<string, unknown>>)[] = [
      '',
      '{',
      '[]',
      '{"Version":"2012-10-17"}',
      '{"Version":"2000-01-01","Statement":[]}',
      { Effect: 'allow' },
      { Principal: { AWS: 'f'.repeat(64) } },
      { Principal: { AWS: 'arn:aws:iam::*:root' } },
      { Principal: { Service: 'logging.s3.amazonaws.com' } },
      { Principal: 'everyone' },
      { Principal: {} },
      { Principal: undefined },
      { Principal: undefined, NotPrincipal: { AWS: ids.other } },
      { Action: 's3:Nothing' },
      { Action: 's3:ListBucket', Resource: `arn:aws:s3:::${bucket}/*` },
      { Action: ['s3:ListBucket', 's3:GetObject'], Resource: `arn:aws:s3:::${bucket}` },
      { Action: 'ec2:RunInstances' },
      { Action: undefined },
      { Resource: 'arn:aws:s3:::another/*' },
      { Resource: undefined },
      { Resource: arn, NotResource: arn },
      { Condition: { StringEquals: { 'aws:nothing': 'x' } } },
      { Condition: { StringEquals: {} } },
      { Condition: { StringNotEquals: { 's3:prefix': [] } } },
      { Condition: { StringIs: { 's3:prefix': 'x' } } },
      { Condition: { IpAddress: { 'aws:SourceIp': 'here' } } },
      { Condition: { NumericEquals: { 's3:max-keys': 'ten' } } },
      { Surplus: true },
    ];
    for (const each of wrong) {
      const body = typeof each === 'string' ? each : policy(statement(bucket, each));
      const code = body === '' ? 'MissingRequestBodyError' : 'MalformedPolicy';
      await s3.refused(400, code, ['PUT', `/${bucket}`, { query: 'policy', body }]);
    }
    const two = (Sid: string) => policy(statement(bucket, { Sid }), statement(bucket, { Sid }));
    const same = { query: 'policy', body: two('a') };
    await s3.refused(400, 'MalformedPolicy', ['PUT', `/${bucket}`, same]);
    await setPolicy(s3, bucket, two(''));
    // Some editors save it in this form.
    await setPolicy(s3, bucket, `\ufeff${two('').replaceAll(',', ',\r\n')}`);
    JSON.parse((await s3.ok('GET', `/${bucket}`, { query: 'policy' })).text);
    await s3.ok('DELETE', `/${bucket}`, { query: 'policy' });
    const long = policy(statement(bucket, { Sid: 'x'.repeat(21_000) }));
    await s3.refused(400, 'MalformedPolicy', ['PUT', `/${bucket}`, { query: 'policy', body: long }]);
    await s3.refused(404, 'NoSuchBucketPolicy', ['GET', `/${bucket}`, { query: 'policy' }]);
  });

  test('that denies wins, over the owner too, who may mend it', async () => {
    const bucket = await newBucket();
    const all = statement(bucket, {});
    await setPolicy(s3, bucket, policy(all, statement(bucket, { Effect: 'Deny' })));
    await s3.refused(403, 'AccessDenied', ['GET', `/${bucket}/a`]);
    await stranger.refused(403, 'AccessDenied', ['GET', `/${bucket}/a`]);
    assertRefused(await get(`/${bucket}/a`), 403, 'AccessDenied');
    await s3.ok('GET', `/${bucket}`, { query: 'policy' });
    await s3.ok('DELETE', `/${bucket}`, { query: 'policy' });
    assert.equal((await s3.ok('GET', `/${bucket}/a`)).text, 'bytes of a');
  });

  test('says who it does not mean, and of what', async () => {
    const bucket = await newBucket(['a', 'secret/b']);
    await setPolicy(
      s3,
      bucket,
      policy(
        statement(bucket, { Action: 's3:GetObject' }),
        statement(bucket, {
          Effect: 'Deny',
          Principal: undefined,
          NotPrincipal: { AWS: [ids.other, ids.owner] },
        }),
        statement(bucket, { Effect: 'Deny', ...toOther({ NotAction: 's3:Get*', Action: undefined }) }),
        statement(bucket, {
          Effect: 'Deny',
          ...toOther({ Resource: undefined, NotResource: `arn:aws:s3:::${bucket}/?` }),
        }),
      ),
    );
    assertRefused(await get(`/${bucket}/a`), 403, 'AccessDenied');
    await stranger.ok('GET', `/${bucket}/a`);
    await stranger.refused(403, 'AccessDenied', ['GET', `/${bucket}/secret/b`]);
    await s3.ok('GET', `/${bucket}/secret/b`);
  });
});

describe('conditions', () => {
  const read = (bucket: string, Condition: object) => statement(bucket, toOther({ Condition }));

  test('on prefix, address, agent and time', async () => {
    const bucket = await newBucket(['in/a', 'out/a']);
    const list = (prefix: string) => stranger.call('GET', `/${bucket}`, { query: `prefix=${prefix}` });
    await setPolicy(s3, bucket, policy(read(bucket, { StringLike: { 's3:prefix': 'in/*' } })));
    assert.deepEqual([(await list('in/')).status, (await list('out/')).status], [200, 403]);
    await stranger.refused(403, 'AccessDenied', ['GET', `/${bucket}`]);
    const cases: readonly [object, number][] = [
      [{ IpAddress: { 'aws:SourceIp': ['127.0.0.0/8', '::1/128'] } }, 200],
      [{ IpAddress: { 'aws:SourceIp': '10.0.0.0/8' } }, 403],
      [{ NotIpAddress: { 'aws:SourceIp': '10.0.0.0/8' } }, 200],
      [{ Bool: { 'aws:SecureTransport': 'true' } }, 403],
      [{ Bool: { 'aws:SecureTransport': false } }, 200],
      [{ StringEquals: { 'aws:username': ids.otherName } }, 200],
      [{ StringEqualsIgnoreCase: { 'aws:UserAgent': 'THE/AGENT' } }, 200],
      [{ StringEquals: { 'aws:UserAgent': 'THE/AGENT' } }, 403],
      [{ StringLike: { 'aws:Referer': 'http://good.example/*' } }, 200],
      [{ StringNotLike: { 'aws:Referer': 'http://good.example/*' } }, 403],
      [{ StringEquals: { 's3:x-amz-acl': 'private' } }, 403],
      [{ StringEqualsIfExists: { 's3:x-amz-acl': 'private' } }, 200],
      [{ StringNotEquals: { 's3:x-amz-acl': 'private' } }, 200],
      [{ Null: { 's3:x-amz-acl': 'true' } }, 200],
      [{ Null: { 'aws:Referer': 'true' } }, 403],
      [{ DateGreaterThan: { 'aws:CurrentTime': '2020-01-01T00:00:00Z' } }, 200],
      [{ DateLessThan: { 'aws:EpochTime': '1577836800' } }, 403],
      [{ NumericLessThan: { 's3:max-keys': '10' } }, 403],
      [{ StringEquals: { 's3:authType': 'REST-HEADER' } }, 200],
    ];
    const headers = { 'user-agent': 'the/agent', referer: 'http://good.example/page' };
    for (const [condition, status] of cases) {
      await setPolicy(s3, bucket, policy(read(bucket, condition)));
      const reply = await stranger.call('GET', `/${bucket}/in/a`, { headers });
      assert.equal(reply.status, status, JSON.stringify(condition));
    }
  });

  test('on the tags that are there and those that are asked for', async () => {
    const bucket = await newBucket(['open', 'shut']);
    const tagging = (value: string) =>
      `<Tagging><TagSet><Tag><Key>security</Key><Value>${value}</Value></Tag></TagSet></Tagging>`;
    const tag = (s3Client: S3Client, key: string, value: string) =>
      s3Client.call('PUT', `/${bucket}/${key}`, { query: 'tagging', body: tagging(value) });
    assert.equal((await tag(s3, 'open', 'public')).status, 200);
    assert.equal((await tag(s3, 'shut', 'private')).status, 200);
    const existing = { StringEquals: { 's3:ExistingObjectTag/security': 'public' } };
    await setPolicy(s3, bucket, policy(read(bucket, existing)));
    for (const query of ['', 'tagging', 'acl']) {
      assert.equal((await stranger.call('GET', `/${bucket}/open`, { query })).status, 200, query);
      assert.equal((await stranger.call('GET', `/${bucket}/shut`, { query })).status, 403, query);
    }
    const requested = { StringEquals: { 's3:RequestObjectTag/security': 'public' } };
    const keys = { 'ForAllValues:StringEquals': { 's3:RequestObjectTagKeys': ['security', 'virus'] } };
    await setPolicy(s3, bucket, policy(read(bucket, { ...requested, ...keys })));
    assert.equal((await tag(stranger, 'shut', 'private')).status, 403);
    assert.equal((await tag(stranger, 'shut', 'public')).status, 200);
    const put = (tags: string) =>
      stranger.call('PUT', `/${bucket}/new`, { headers: { 'x-amz-tagging': tags }, body: 'x' });
    assert.equal((await put('security=public&other=1')).status, 403);
    assert.equal((await put('security=public&virus=no')).status, 200);
  });

  test('on the source of a copy and on headers of an upload', async () => {
    const [bucket, source] = [await newBucket(), await newBucket(['public/a', 'private/a'])];
    await setPolicy(s3, source, policy(statement(source, { Action: 's3:GetObject' })));
    const copy = (key: string, more: Record<string, string> = {}) =>
      stranger.call('PUT', `/${bucket}/copied`, {
        headers: { 'x-amz-copy-source': `/${source}/${key}`, ...more },
      });
    assert.equal((await copy('public/a')).status, 403);
    const from = { StringLike: { 's3:x-amz-copy-source': `${source}/public/*` } };
    const kept = { StringEqualsIfExists: { 's3:x-amz-metadata-directive': 'COPY' } };
    await setPolicy(s3, bucket, policy(read(bucket, { ...from, ...kept })));
    assert.equal((await copy('public/a')).status, 200);
    assert.equal((await copy('private/a')).status, 403);
    assert.equal((await copy('public/a', { 'x-amz-metadata-directive': 'REPLACE' })).status, 403);
    const deny = statement(bucket, {
      Effect: 'Deny',
      Action: 's3:PutObject',
      Condition: { Null: { 's3:x-amz-server-side-encryption': 'true' } },
    });
    await setPolicy(s3, bucket, policy(deny));
    await s3.refused(403, 'AccessDenied', ['PUT', `/${bucket}/a`, { body: 'x' }]);
    const headers = { 'x-amz-server-side-encryption': 'AES256' };
    await s3.ok('PUT', `/${bucket}/a`, { body: 'x', headers });
  });
});

describe('attackers', () => {
  test('gain nothing by a limited key of the owner', async () => {
    const bucket = await newBucket(['in/a', 'out/a']);
    await setPolicy(s3, bucket, policy(statement(bucket, {})));
    const client = async (fields: object) => new S3Client(cloud.data, await newKeyPair(owner, { ...fields }));
    const limited = await client({ buckets: [{ name: bucket, prefix: 'in/' }] });
    await limited.ok('GET', `/${bucket}/in/a`);
    await limited.refused(403, 'AccessDenied', ['GET', `/${bucket}/out/a`]);
    await limited.refused(403, 'AccessDenied', ['GET', `/${bucket}`]);
    const reader = await client({ scopes: ['storage:read'] });
    await reader.refused(403, 'AccessDenied', ['PUT', `/${bucket}/in/b`, { body: 'x' }]);
    const writer = await client({ scopes: ['storage:write', 'storage:read'] });
    for (const query of ['policy', 'acl', 'publicAccessBlock', 'ownershipControls']) {
      await writer.refused(403, 'AccessDenied', ['PUT', `/${bucket}`, { query, body: '' }]);
    }
    const shared = { 'x-amz-acl': 'public-read' };
    await writer.refused(403, 'AccessDenied', ['PUT', `/${bucket}/in/b`, { body: 'x', headers: shared }]);
    // The limits and scopes of another account's key apply too.
    await stranger.ok('PUT', '/of-the-stranger');
    const theirs = new S3Client(
      cloud.data,
      await newKeyPair(other, { buckets: [{ name: 'of-the-stranger' }] }),
    );
    await theirs.refused(403, 'AccessDenied', ['GET', `/${bucket}/in/a`]);
    const theirReader = new S3Client(cloud.data, await newKeyPair(other, { scopes: ['storage:read'] }));
    await theirReader.ok('GET', `/${bucket}/in/a`);
    await theirReader.refused(403, 'AccessDenied', ['PUT', `/${bucket}/in/a`, { body: 'x' }]);
  });

  test('cannot use uploads that others began', async () => {
    const bucket = await newBucket();
    await setPolicy(s3, bucket, policy(statement(bucket, {})));
    const uploadId = await newUpload(s3, `/${bucket}/big`);
    const theirs = await newUpload(stranger, `/${bucket}/theirs`);
    const part = (id: string) => `partNumber=1&uploadId=${id}`;
    await stranger.refused(403, 'AccessDenied', [
      'PUT',
      `/${bucket}/big`,
      { query: part(uploadId), body: 'x' },
    ]);
    await stranger.refused(403, 'AccessDenied', [
      'DELETE',
      `/${bucket}/big`,
      { query: `uploadId=${uploadId}` },
    ]);
    await stranger.ok('PUT', `/${bucket}/theirs`, { query: part(theirs), body: 'x' });
    const listed = await s3.ok('GET', `/${bucket}/theirs`, { query: `uploadId=${theirs}` });
    assert.match(listed.text, new RegExp(`<Initiator><ID>${ids.other}</ID>`));
    await stranger.ok('DELETE', `/${bucket}/theirs`, { query: `uploadId=${theirs}` });
    await s3.ok('GET', `/${bucket}/big`, { query: `uploadId=${uploadId}` });
  });

  test('list and abort the uploads that they began with the right to upload alone, unless that is denied', async () => {
    const bucket = await newBucket();
    const allowed = statement(bucket, toOther({ Action: 's3:PutObject' }));
    await setPolicy(s3, bucket, policy(allowed));
    const [mine, theirs] = [await newUpload(s3, `/${bucket}/m`), await newUpload(stranger, `/${bucket}/t`)];
    const of = (uploadId: string) => ({ query: `uploadId=${uploadId}` });
    await stranger.ok('GET', `/${bucket}/t`, of(theirs));
    for (const method of ['GET', 'DELETE']) {
      await stranger.refused(403, 'AccessDenied', [method, `/${bucket}/m`, of(mine)]);
      await stranger.refused(403, 'AccessDenied', [method, `/${bucket}/t`, of('none')]);
      assertRefused(await anonymously(cloud.data, method, `/${bucket}/t`, of(theirs)), 403, 'AccessDenied');
    }
    const denied = statement(bucket, toOther({ Effect: 'Deny', Action: 's3:*Upload*' }));
    await setPolicy(s3, bucket, policy(allowed, denied));
    for (const method of ['GET', 'DELETE'])
      await stranger.refused(403, 'AccessDenied', [method, `/${bucket}/t`, of(theirs)]);
    await setPolicy(s3, bucket, policy(allowed));
    await stranger.ok('DELETE', `/${bucket}/t`, of(theirs));
  });

  test('of a suspended owner get nothing, whatever he allowed', async () => {
    const account = await new Client(cloud.api).register();
    const suspended = await newS3(cloud.data, new Client(cloud.api, account.api_key));
    await suspended.ok('PUT', '/of-the-suspended');
    await suspended.ok('PUT', '/of-the-suspended/a', { body: 'x' });
    await setPolicy(suspended, 'of-the-suspended', policy(statement('of-the-suspended', {})));
    assert.equal((await get('/of-the-suspended/a')).text, 'x');
    const path = `/api/admin/accounts/${account.id}/suspend`;
    const admin = new Client(cloud.api, ADMIN_KEY);
    assert.equal((await admin.call(path, { json: { reason: 'test' } })).status, 200);
    assertRefused(await get('/of-the-suspended/a'), 403, 'AccessDenied');
    await stranger.refused(403, 'AccessDenied', ['GET', '/of-the-suspended/a']);
  });
});
