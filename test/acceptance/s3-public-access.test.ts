/** Blocking public access, and locks by other accounts. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { Client } from '../harness/client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';
import {
  anonymously,
  assertRefused,
  newS3,
  policy,
  type S3Client,
  setPolicy,
  statement,
  textOf,
} from './s3-kit.ts';

const ALL = 'http://acs.amazonaws.com/groups/global/AllUsers';

let cloud: CloudProcess;
let owner: S3Client;
let other: S3Client;
let otherId: string;
let made = 0;

before(async () => {
  cloud = await sharedCloud();
  owner = await newS3(cloud.data, await new Client(cloud.api).newUser());
  const user = await new Client(cloud.api).newUser();
  other = await newS3(cloud.data, user);
  otherId = (await user.call('/api/account')).body.canonical_id;
});

async function newBucket(headers: Record<string, string> = {}): Promise<string> {
  const name = `kept-${++made}`;
  await owner.ok('PUT', `/${name}`, { headers });
  await owner.ok('PUT', `/${name}/a`, { body: 'bytes of a' });
  return name;
}

const anonymous = (method: string, path: string) => anonymously(cloud.data, method, path);

async function setBlock(bucket: string, ...names: readonly string[]): Promise<void> {
  const body = `<PublicAccessBlockConfiguration>${names.map((name) => `<${name}>true</${name}>`).join('')}</PublicAccessBlockConfiguration>`;
  await owner.ok('PUT', `/${bucket}`, { query: 'publicAccessBlock', body });
}

describe('the public access block', () => {
  test('is read, set and removed', async () => {
    const bucket = await newBucket();
    const query = 'publicAccessBlock';
    await owner.refused(404, 'NoSuchPublicAccessBlockConfiguration', ['GET', `/${bucket}`, { query }]);
    await setBlock(bucket, 'BlockPublicAcls', 'RestrictPublicBuckets');
    const { text } = await owner.ok('GET', `/${bucket}`, { query });
    const names = ['BlockPublicAcls', 'IgnorePublicAcls', 'BlockPublicPolicy', 'RestrictPublicBuckets'];
    assert.deepEqual(
      names.map((name) => textOf(text, name)),
      ['true', 'false', 'false', 'true'],
    );
    assert.equal((await owner.ok('DELETE', `/${bucket}`, { query })).status, 204);
    await owner.refused(404, 'NoSuchPublicAccessBlockConfiguration', ['GET', `/${bucket}`, { query }]);
  });

  test('refuses and ignores public lists', async () => {
    const bucket = await newBucket();
    const open = { 'x-amz-acl': 'public-read' };
    await owner.ok('PUT', `/${bucket}/a`, { query: 'acl', headers: open });
    await owner.ok('PUT', `/${bucket}`, { query: 'acl', headers: open });
    await setBlock(bucket, 'BlockPublicAcls');
    for (const path of [`/${bucket}`, `/${bucket}/a`]) {
      await owner.refused(403, 'AccessDenied', ['PUT', path, { query: 'acl', headers: open }]);
      const headers = { 'x-amz-grant-read': `uri="${ALL}"` };
      await owner.refused(403, 'AccessDenied', ['PUT', path, { query: 'acl', headers }]);
    }
    await owner.refused(403, 'AccessDenied', ['PUT', `/${bucket}/b`, { headers: open, body: 'x' }]);
    assert.equal((await anonymous('GET', `/${bucket}/a`)).status, 200);
    await setBlock(bucket, 'IgnorePublicAcls');
    assertRefused(await anonymous('GET', `/${bucket}/a`), 403, 'AccessDenied');
    assertRefused(await anonymous('GET', `/${bucket}`), 403, 'AccessDenied');
    await owner.ok('PUT', `/${bucket}/b`, { headers: open, body: 'x' });
  });

  test('refuses and restricts public policies', async () => {
    const bucket = await newBucket();
    const status = async () =>
      textOf((await owner.ok('GET', `/${bucket}`, { query: 'policyStatus' })).text, 'IsPublic');
    assert.equal(await status(), 'false');
    const open = policy(statement(bucket, { Action: 's3:GetObject' }));
    const named = policy(statement(bucket, { Action: 's3:GetObject', Principal: { AWS: otherId } }));
    await setBlock(bucket, 'BlockPublicPolicy');
    await owner.refused(403, 'AccessDenied', ['PUT', `/${bucket}`, { query: 'policy', body: open }]);
    await setPolicy(owner, bucket, named);
    assert.equal(await status(), 'false');
    await owner.ok('DELETE', `/${bucket}`, { query: 'publicAccessBlock' });
    await setPolicy(owner, bucket, open);
    assert.equal(await status(), 'true');
    assert.equal((await anonymous('GET', `/${bucket}/a`)).status, 200);
    await setBlock(bucket, 'RestrictPublicBuckets');
    assertRefused(await anonymous('GET', `/${bucket}/a`), 403, 'AccessDenied');
    await other.refused(403, 'AccessDenied', ['GET', `/${bucket}/a`]);
    assert.equal((await owner.ok('GET', `/${bucket}/a`)).text, 'bytes of a');
    await owner.ok('DELETE', `/${bucket}`, { query: 'policy' });
    await owner.ok('PUT', `/${bucket}`, { query: 'acl', headers: { 'x-amz-acl': 'authenticated-read' } });
    assert.equal(await status(), 'true');
  });
});

describe('object lock', () => {
  test('of strangers is what a policy allows', async () => {
    const bucket = await newBucket({ 'x-amz-bucket-object-lock-enabled': 'true' });
    await setPolicy(
      owner,
      bucket,
      policy(statement(bucket, { Action: ['s3:PutObject', 's3:DeleteObjectVersion'] })),
    );
    const until = new Date(Date.now() + 3_600_000).toISOString();
    const locked = { 'x-amz-object-lock-mode': 'GOVERNANCE', 'x-amz-object-lock-retain-until-date': until };
    const put = (s3: S3Client, headers: Record<string, string>) =>
      s3.call('PUT', `/${bucket}/locked`, { headers, body: 'x' });
    assertRefused(await put(other, locked), 403, 'AccessDenied');
    assertRefused(await put(other, { 'x-amz-object-lock-legal-hold': 'ON' }), 403, 'AccessDenied');
    const kept = await put(owner, locked);
    assert.equal(kept.status, 200, kept.text);
    const query = `versionId=${kept.headers['x-amz-version-id']}`;
    const headers = { 'x-amz-bypass-governance-retention': 'true' };
    await other.refused(403, 'AccessDenied', ['DELETE', `/${bucket}/locked`, { query, headers }]);
    const nobody = await anonymously(cloud.data, 'DELETE', `/${bucket}/locked`, { query, headers });
    assertRefused(nobody, 403, 'AccessDenied');
    await owner.ok('DELETE', `/${bucket}/locked`, { query, headers });
  });
});
