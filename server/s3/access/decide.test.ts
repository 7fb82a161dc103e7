import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NOBODY, type Principal } from '../../calls/principal.ts';
import type { Grant } from '../../storage/buckets/bucket-settings.ts';
import { randomFrom } from '../../testing/random.ts';
import type { Action } from '../s3-call.ts';
import { decide, type Question, type Rules } from './decide.ts';
import { Effort } from './pattern.ts';
import { compilePolicy, isPublic, type Policy, readPolicy } from './policy.ts';

const ID = { owner: 'a'.repeat(64), other: 'b'.repeat(64), third: 'c'.repeat(64) };
const account = (accountId: number, canonicalId: string, more: Partial<Principal> = {}): Principal => ({
  ...NOBODY,
  accountId,
  canonicalId,
  username: `user-${accountId}`,
  scopes: ['storage:*'],
  via: 'key',
  ...more,
});
const OWNER = account(1, ID.owner);
const OTHER = account(2, ID.other);
const THIRD = account(3, ID.third);
const BUCKET = 'bucket';
const ALL = [`arn:aws:s3:::${BUCKET}`, `arn:aws:s3:::${BUCKET}/*`];
const OPEN: Rules = {
  owner: 1,
  policy: null,
  ownerMayMend: true,
  publicAccess: undefined,
  bucketGrants: [],
  objectGrants: [],
};
const BLOCKED = { blockAcls: true, ignoreAcls: true, blockPolicy: true, restrict: true };

function policyOf(...statements: readonly object[]): Policy {
  const whole = statements.map((each) => ({
    Effect: 'Allow',
    Principal: '*',
    Action: 's3:*',
    Resource: ALL,
    ...each,
  }));
  const draft = readPolicy(JSON.stringify({ Version: '2012-10-17', Statement: whole }));
  const accounts = Object.fromEntries(draft.accounts.map((name) => [name, name]));
  return compilePolicy(draft, BUCKET, accounts);
}

function asks(caller: Principal, more: Partial<Question> = {}): Question {
  const { key = 'key', ...rest } = more;
  const action: Action = 's3:GetObject';
  const plain = {
    action,
    permission: 'storage:read',
    bucket: BUCKET,
    caller,
    values: () => undefined,
    effort: new Effort(),
  } as const;
  return { ...plain, key: 'key' in more ? more.key : key, ...rest };
}

const may = (question: Question, rules: Partial<Rules> = {}) =>
  decide(question, { ...OPEN, ...rules }).isAllowed;

test('only the owner reaches a bucket that nobody was given', () => {
  assert.equal(may(asks(OWNER)), true);
  for (const caller of [OTHER, NOBODY]) assert.equal(may(asks(caller)), false);
});

test('denials win over all that allows, for each caller', () => {
  const grants: Grant[] = [{ group: 'all', permission: 'FULL_CONTROL' }];
  const rules = { bucketGrants: grants, objectGrants: grants };
  const deny = { policy: policyOf({}, { Effect: 'Deny', Action: 's3:GetObject' }) };
  for (const caller of [OWNER, OTHER, NOBODY]) {
    assert.equal(may(asks(caller), { ...rules, policy: policyOf({}) }), true);
    assert.equal(may(asks(caller), { ...rules, ...deny }), false);
  }
  const policies = policyOf({ Effect: 'Deny' });
  const mend = asks(OWNER, { action: 's3:DeleteBucketPolicy', permission: 'storage:admin', key: undefined });
  assert.equal(may(mend, { policy: policies }), true);
  assert.equal(may(mend, { policy: policies, ownerMayMend: false }), false);
  assert.equal(may({ ...mend, caller: OTHER }, { policy: policyOf({}, { Effect: 'Deny' }) }), false);
});

test('object actions need the name of an object, bucket actions that of the bucket', () => {
  const list = asks(OTHER, { action: 's3:ListBucket', key: undefined });
  const [bucketOnly, objectsOnly] = [policyOf({ Resource: ALL[0] }), policyOf({ Resource: ALL[1] })];
  assert.deepEqual(
    [may(list, { policy: bucketOnly }), may(asks(OTHER), { policy: bucketOnly })],
    [true, false],
  );
  assert.deepEqual(
    [may(list, { policy: objectsOnly }), may(asks(OTHER), { policy: objectsOnly })],
    [false, true],
  );
});

test('an account that is named is no other, and a principal is never a pattern', () => {
  const policy = policyOf({ Principal: { AWS: [ID.other] } });
  assert.equal(may(asks(OTHER), { policy }), true);
  for (const caller of [THIRD, NOBODY, { ...THIRD, canonicalId: '' }])
    assert.equal(may(asks(caller), { policy }), false);
  const like = policyOf({ Principal: { AWS: [`${'b'.repeat(63)}*`] } });
  assert.equal(may(asks(OTHER), { policy: like }), false);
});

test('lists grant what they say, and nothing by blocked groups', () => {
  const read: Grant[] = [{ group: 'all', permission: 'READ' }];
  const signed: Grant[] = [{ group: 'authenticated', permission: 'READ' }];
  const named: Grant[] = [{ id: ID.other, name: 'other', permission: 'FULL_CONTROL' }];
  assert.equal(may(asks(NOBODY), { objectGrants: read }), true);
  assert.equal(may(asks(NOBODY), { objectGrants: signed }), false);
  assert.equal(may(asks(OTHER), { objectGrants: signed }), true);
  assert.equal(may(asks(OTHER), { objectGrants: read, publicAccess: BLOCKED }), false);
  assert.equal(may(asks(OTHER), { objectGrants: named, publicAccess: BLOCKED }), true);
  assert.equal(may(asks(OTHER), { objectGrants: null, bucketGrants: null }), false);
  // The list of a bucket says nothing of reading its objects.
  assert.equal(may(asks(OTHER), { bucketGrants: named }), false);
  const put = asks(OTHER, { action: 's3:PutObject', permission: 'storage:append' });
  assert.equal(may(put, { bucketGrants: named }), true);
  assert.equal(may(put, { bucketGrants: read }), false);
});

test('a public policy allows others nothing where the bucket restricts it', () => {
  const publicAccess = { ...BLOCKED, ignoreAcls: false };
  const policy = policyOf({}, { Principal: { AWS: ID.other } });
  assert.equal(may(asks(OTHER), { policy, publicAccess }), false);
  assert.equal(may(asks(OWNER), { policy, publicAccess }), true);
  assert.equal(may(asks(OTHER), { policy: policyOf({ Principal: { AWS: ID.other } }), publicAccess }), true);
  const from = (address: string) =>
    isPublic(policyOf({ Condition: { IpAddress: { 'aws:SourceIp': address } } }));
  assert.deepEqual(['10.0.0.0/8', '0.0.0.0/0', '10.0.0.1'].map(from), [false, true, false]);
  assert.equal(isPublic(policyOf({ Condition: { StringEquals: { 'aws:UserAgent': 'x' } } })), true);
});

/** Random rules, and every caller with every key: what must hold whatever they are. */
test('no rules let anyone do more than the bucket’s owner, his key, or a rule allows', () => {
  const next = randomFrom(11);
  const pick = <T>(values: readonly T[]): T => values[next(values.length)] as T;
  const principals = ['*', { AWS: ID.other }, { AWS: [ID.third, ID.owner] }];
  const actions = ['s3:*', 's3:GetObject', 's3:Get*', ['s3:PutObject', 's3:ListBucket'], '*'];
  const statement = () => ({
    Effect: pick(['Allow', 'Deny', 'Allow']),
    Principal: pick(principals),
    Action: pick(actions),
    Resource: pick([ALL, ALL[0], ALL[1], `arn:aws:s3:::${BUCKET}/k*`]),
  });
  const grants = (): Grant[] =>
    Array.from({ length: next(3) }, () => {
      const permission = pick(['READ', 'WRITE', 'FULL_CONTROL'] as const);
      const id = pick([ID.other, ID.third]);
      return next(2) === 0
        ? { group: pick(['all', 'authenticated'] as const), permission }
        : { id, name: '', permission };
    });
  const asked = [
    ['s3:GetObject', 'storage:read', 'key'],
    ['s3:PutObject', 'storage:append', 'key'],
    ['s3:ListBucket', 'storage:read', undefined],
  ] as const;
  for (let round = 0; round < 5000; round++) {
    const policy = next(3) === 0 ? null : policyOf(...Array.from({ length: 1 + next(3) }, statement));
    const publicAccess = next(2) === 0 ? undefined : BLOCKED;
    const rules: Rules = { ...OPEN, policy, publicAccess, bucketGrants: grants(), objectGrants: grants() };
    const [action, permission, key] = pick(asked);
    const how = { action, permission, key };
    const without = { ...rules, policy: null, bucketGrants: [], objectGrants: [] };
    for (const caller of [OWNER, OTHER, THIRD, NOBODY]) {
      const question = asks(caller, how);
      const { isAllowed, reason } = decide(question, rules);
      // A restricted key has fewer permissions, never more: a key without the scope, and one of another
      // bucket.
      if (caller.via === 'key') {
        assert.equal(
          decide({ ...question, caller: { ...caller, scopes: ['compute:*'] } }, rules).isAllowed,
          false,
        );
        const elsewhere = { ...caller, bucketLimits: [{ bucket: 'another', prefix: '' }] };
        assert.equal(decide({ ...question, caller: elsewhere }, rules).isAllowed, false);
      }
      if (!isAllowed) continue;
      assert.ok(caller === OWNER ? reason === 'owner' : reason === 'policy' || reason === 'list');
      if (caller !== OWNER) assert.equal(decide(question, without).isAllowed, false);
      // An additional denial closes it, and an additional grant never does.
      const denied = policyOf({ Effect: 'Deny' });
      const more = { statements: [...(policy?.statements ?? []), ...denied.statements] };
      assert.equal(decide(question, { ...rules, policy: more }).isAllowed, false);
      // A signed request may do everything that an anonymous one may, except under rules that name accounts.
      if (caller === NOBODY && policy === null) assert.equal(decide(asks(OTHER, how), rules).isAllowed, true);
    }
  }
});

test('a policy that takes too long denies, and its owner may still mend it', () => {
  const fills = (text: (index: number) => string) => {
    const texts = [];
    for (let bytes = 0; bytes < 19_500; bytes += (texts.at(-1)?.length ?? 0) + 3)
      texts.push(text(texts.length));
    return texts;
  };
  const agent = 'a'.repeat(15_000);
  const values: Question['values'] = (name) => (name === 'aws:useragent' ? [agent] : undefined);
  const slow = [
    { Resource: fills((index) => `arn:aws:s3:::${BUCKET}/*?${'a'.repeat(400 + index)}b*`) },
    { Condition: { StringLike: { 'aws:UserAgent': [`*?${'a'.repeat(7000)}b*`] } } },
    { Condition: { StringNotEqualsIgnoreCase: { 'aws:UserAgent': fills(String) } } },
    { Condition: { NumericNotEquals: { 'aws:UserAgent': fills(String) } } },
  ];
  for (const statement of slow) {
    const rules = { ...OPEN, policy: policyOf(statement) };
    for (const caller of [OWNER, OTHER, NOBODY]) {
      const asked = asks(caller, { key: 'a'.repeat(1024), values, effort: new Effort() });
      assert.deepEqual(
        decide(asked, rules),
        { isAllowed: false, reason: 'effort' },
        JSON.stringify(statement),
      );
    }
    const mending = asks(OWNER, {
      key: undefined,
      action: 's3:PutBucketPolicy',
      permission: 'storage:admin',
      values,
    });
    assert.equal(decide(mending, rules).isAllowed, true);
  }
});

test('a policy of full size with a wildcard in each pattern is no effort', () => {
  const texts = Array.from({ length: 400 }, (_, index) => `arn:aws:s3:::${BUCKET}/*${index}x*`);
  const rules = { ...OPEN, policy: policyOf({ Resource: [...texts, ...ALL] }) };
  const asked = asks(OTHER, { key: `${'k'.repeat(1000)}/7`, effort: new Effort() });
  assert.deepEqual(decide(asked, rules), { isAllowed: true, reason: 'policy' });
});
