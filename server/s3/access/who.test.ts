import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BucketPolicy, BucketSettings, Grant } from '../../storage/buckets/bucket-settings.ts';
import { isOpen, whoMay } from './who.ts';

const OWNER = { id: 'a'.repeat(64), name: 'ada' };
const FRIEND = { id: 'b'.repeat(64), name: 'bob' };
const ALL = 'arn:aws:s3:::photos/*';

type Json = Readonly<Record<string, unknown>>;

function policy(...Statement: Json[]): BucketPolicy {
  const text = JSON.stringify({ Version: '2012-10-17', Statement });
  return { text, principals: { 'arn:aws:iam::2:root': FRIEND.id } };
}

const allow = (more: Json = {}): Json => {
  return { Effect: 'Allow', Principal: '*', Action: 's3:GetObject', Resource: ALL, ...more };
};

type Asked = Parameters<typeof whoMay>[0];

/** `everyone:read`, `bob:read?` */
function found(settings: BucketSettings, more: Partial<Asked> = {}): string {
  const asked = { bucket: 'photos', owner: OWNER, settings, key: 'a', objectGrants: null, ...more };
  return whoMay(asked)
    .flatMap(({ who, account, ...deeds }) =>
      Object.entries(deeds).flatMap(([deed, answer]) =>
        answer === 'no' ? [] : [`${account?.name ?? who}:${deed}${answer === 'yes' ? '' : '?'}`],
      ),
    )
    .join(' ');
}

test('without a policy or a list nobody but the owner may do anything', () => {
  assert.equal(found({}), '');
  const own: Grant = { ...OWNER, permission: 'FULL_CONTROL' };
  assert.equal(found({ acl: [own] }, { objectGrants: [own] }), '');
});

test('a policy for everyone counts for all, one for an account for it alone', () => {
  assert.equal(found({ policy: policy(allow()) }), 'everyone:read signed:read arn:aws:iam::2:root:read');
  const one = allow({
    Principal: { AWS: 'arn:aws:iam::2:root' },
    Action: ['s3:PutObject', 's3:DeleteObject'],
  });
  assert.equal(found({ policy: policy(one) }), 'arn:aws:iam::2:root:write arn:aws:iam::2:root:delete');
  const list = allow({ Action: 's3:ListBucket', Resource: 'arn:aws:s3:::photos' });
  assert.match(found({ policy: policy(list) }), /^everyone:list signed:list/);
});

test('what hangs on a condition is neither yes nor no', () => {
  const Condition = { IpAddress: { 'aws:SourceIp': '10.0.0.0/8' } };
  assert.match(found({ policy: policy(allow({ Condition })) }), /^everyone:read\? signed:read\?/);
  const deny = { ...allow({ Condition }), Effect: 'Deny' };
  assert.match(found({ policy: policy(allow(), deny) }), /^everyone:read\? signed:read\?/);
  assert.equal(found({ policy: policy(allow(), { ...allow(), Effect: 'Deny' }) }), '');
});

test('the public access block takes away what is public, conditions of the policy included', () => {
  const kept = { blockAcls: false, ignoreAcls: true, blockPolicy: false, restrict: true };
  assert.equal(found({ policy: policy(allow()), publicAccess: kept }), '');
  const Condition = { IpAddress: { 'aws:SourceIp': '10.1.2.0/24' } };
  assert.match(found({ policy: policy(allow({ Condition })), publicAccess: kept }), /^everyone:read\?/);
  const acl: Grant[] = [{ group: 'all', permission: 'READ' }];
  assert.equal(found({ acl, publicAccess: kept }), '');
  assert.equal(found({ acl }), 'everyone:list signed:list');
});

test('lists of the bucket and of the object count until ownership ends them', () => {
  const acl: Grant[] = [
    { group: 'authenticated', permission: 'WRITE' },
    { ...FRIEND, permission: 'READ' },
  ];
  const objectGrants: Grant[] = [{ group: 'all', permission: 'READ' }];
  const all = 'everyone:read signed:read signed:write signed:delete bob:list bob:read bob:write bob:delete';
  assert.equal(found({ acl }, { objectGrants }), all);
  assert.equal(found({ acl, ownership: 'BucketOwnerEnforced' }, { objectGrants }), '');
});

test('a bucket is public by a policy or a list for everyone', () => {
  const asked = (settings: BucketSettings) =>
    isOpen({ bucket: 'photos', owner: OWNER, settings, key: 'a', objectGrants: null });
  assert.equal(asked({}), false);
  assert.equal(asked({ policy: policy(allow()) }), true);
  assert.equal(asked({ acl: [{ group: 'all', permission: 'READ' }] }), true);
  assert.equal(asked({ policy: policy(allow({ Principal: { AWS: 'arn:aws:iam::2:root' } })) }), false);
});
