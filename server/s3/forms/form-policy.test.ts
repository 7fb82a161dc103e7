import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { S3Error } from '../../../libs/s3-wire/index.ts';
import { assertMeets, readPolicy } from './form-policy.ts';

const isCode = (code: string) => (error: unknown) => error instanceof S3Error && error.code === code;
const base64 = (text: string) => Buffer.from(text).toString('base64');
const written = (document: unknown) => base64(JSON.stringify(document));
const expiration = '2030-01-01T00:00:00Z';
const NOW = Date.parse('2029-01-01T00:00:00Z');

function meets(conditions: readonly unknown[], fields: Readonly<Record<string, string>>, now = NOW): boolean {
  try {
    const all = new Map(Object.entries({ bucket: 'b', ...fields }));
    assertMeets(all, readPolicy(written({ expiration, conditions: [{ bucket: 'b' }, ...conditions] })), now);
    return true;
  } catch (error) {
    assert.ok(isCode('AccessDenied')(error), String(error));
    return false;
  }
}

test('a policy that is not well-formed is refused', () => {
  const conditions = [{ bucket: 'b' }];
  const bad = [
    '',
    '!',
    base64('{'),
    written([]),
    written(null),
    written({ conditions }),
    written({ expiration }),
    written({ EXPIRATION: expiration, conditions }),
    written({ expiration, CONDITIONS: conditions }),
    written({ expiration: 'Tue, 27 Mar 2007 19:36:42 GMT', conditions }),
    written({ expiration: '2030-13-01T00:00:00Z', conditions }),
    ...[
      {},
      { a: 'b', c: 'd' },
      { a: 1 },
      'a',
      null,
      ['eq', '$a'],
      ['eq', 'a', 'b'],
      ['like', '$a', 'b'],
      ['eq', '$a', 1],
      ['content-length-range', 0],
      ['content-length-range', -1, 0],
      ['content-length-range', 0, 1, 2],
      ['content-length-range', 'x', 1],
    ].map((condition) => written({ expiration, conditions: [condition] })),
  ];
  for (const policy of bad) assert.throws(() => readPolicy(policy), isCode('InvalidPolicyDocument'), policy);
});

describe('a form', () => {
  test('must meet every condition', () => {
    const conditions = [{ acl: 'private' }, ['starts-with', '$KEY', 'user/'], ['eq', '$x-amz-meta-a', '1']];
    const good = { acl: 'private', key: 'user/a', 'x-amz-meta-a': '1' };
    assert.ok(meets(conditions, good));
    assert.ok(!meets(conditions, { ...good, acl: 'public-read' }));
    assert.ok(!meets(conditions, { ...good, key: 'other' }));
    assert.ok(!meets(conditions, { ...good, 'x-amz-meta-a': '' }));
    assert.ok(!meets(conditions, { acl: 'private', key: 'user/a' }));
    assert.ok(!meets(conditions, { ...good, bucket: 'other' }));
    assert.ok(!meets(conditions, good, Date.parse(expiration)));
    const marked = Buffer.from(`\ufeff${JSON.stringify({ expiration, conditions })}\r\n`).toString('base64');
    assert.equal(readPolicy(marked).conditions.length, conditions.length);
    // A condition that allows any prefix also allows a missing field.
    const any = [...conditions, ['starts-with', '$x-amz-meta-b', '']];
    assert.ok(meets(any, good));
    assert.ok(!meets([...conditions, ['starts-with', '$x-amz-meta-b', 'b']], good));
    assert.ok(!meets([...conditions, ['eq', '$x-amz-meta-b', '']], good));
  });

  test('has no field that no condition mentions', () => {
    const conditions = [['starts-with', '$key', '']];
    const signing = { policy: 'p', signature: 's', awsaccesskeyid: 'a', 'x-amz-signature': 's' };
    assert.ok(meets(conditions, { key: 'k', 'x-ignore-a': '1', ...signing }));
    assert.ok(!meets(conditions, { key: 'k', acl: 'public-read' }));
    assert.ok(!meets(conditions, { key: 'k', 'x-amz-credential': 'c' }));
    assert.throws(() => {
      const policy = readPolicy(written({ expiration, conditions: [{ key: 'k' }] }));
      assertMeets(new Map(Object.entries({ key: 'k', bucket: 'b' })), policy, NOW);
    }, isCode('AccessDenied'));
  });

  test('may name several types, each of which begins as it must', () => {
    const conditions = [['STARTS-WITH', '$Content-Type', 'image/']];
    assert.ok(meets(conditions, { 'content-type': 'image/png, image/gif' }));
    assert.ok(!meets(conditions, { 'content-type': 'image/png,text/html' }));
  });
});

test('sizes are as narrow as the narrowest range, and a dollar sign may be escaped', () => {
  const ranges = [
    ['content-length-range', 1, 100],
    ['content-length-range', '10', 200],
  ];
  const { sizes } = readPolicy(written({ expiration, conditions: ranges }));
  assert.deepEqual(sizes, { minBytes: 10, maxBytes: 100 });
  const text = `{"expiration":"${expiration}","conditions":[["eq","$key","\\$a\\\\$b"]]}`;
  assert.equal(readPolicy(base64(text)).conditions[0]?.value, '$a\\$b');
});
