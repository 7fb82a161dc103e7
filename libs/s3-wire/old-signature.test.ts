import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, test } from 'node:test';
import { EXAMPLE_KEY, EXAMPLE_SECRET } from '../../server/testing/sign-s3.ts';
import { oldClaim } from './old-signature.ts';
import { S3Error } from './s3-error.ts';
import { type RawRequest, readHead } from './signature.ts';

const PLAIN = { hostBucket: null, inHeaders: true };

const isCode = (code: string) => (error: unknown) => error instanceof S3Error && error.code === code;
const NOW = Date.parse('Tue, 27 Mar 2007 19:40:00 GMT');

function head(method: string, rawUrl: string, headers: Readonly<Record<string, string>>): RawRequest {
  return { method, rawUrl, rawHeaders: Object.entries(headers).flat() };
}

function verify(request: RawRequest, { host = 'johnsmith', now = NOW, secret = EXAMPLE_SECRET } = {}) {
  const claim = oldClaim(readHead(request), { hostBucket: host, inHeaders: true });
  assert.ok(claim !== null);
  assert.equal(claim.accessKeyId, EXAMPLE_KEY);
  return claim.verify(secret, now);
}

const signed = (signature: string) => ({ Authorization: `AWS ${EXAMPLE_KEY}:${signature}` });

describe("Amazon's examples", () => {
  const get = head('GET', '/photos/puppy.jpg', {
    Host: 'johnsmith.s3.amazonaws.com',
    Date: 'Tue, 27 Mar 2007 19:36:42 +0000',
    ...signed('bWq2s1WEIj+Ydj0vQ697zp+IXMU='),
  });

  test('are verified', () => {
    assert.equal(verify(get), null);
    const put = {
      'Content-Type': 'image/jpeg',
      'Content-Length': '94328',
      Date: 'Tue, 27 Mar 2007 21:15:45 +0000',
      ...signed('MyyxeRY7whkBe+bq8fHCL/2kKUg='),
    };
    verify(head('PUT', '/photos/puppy.jpg', put), { now: Date.parse(put.Date) });
    const list = { Date: 'Tue, 27 Mar 2007 19:42:41 +0000', ...signed('htDYFYduRNen8P9ZfE/s9SuKy0U=') };
    verify(head('GET', '/?prefix=photos&max-keys=50&marker=puppy', list));
    const acl = { Date: 'Tue, 27 Mar 2007 19:44:46 +0000', ...signed('c2WLPFtWHVgbEmeEG93a4cG37dM=') };
    verify(head('GET', '/?acl', acl));
    const url = `/photos/puppy.jpg?AWSAccessKeyId=${EXAMPLE_KEY}&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D&Expires=1175139620`;
    verify(head('GET', url, { Host: 'johnsmith.s3.amazonaws.com' }));
    assert.throws(() => verify(head('GET', url, {}), { now: 1175139621_000 }), isCode('AccessDenied'));
  });

  test('are refused with another path, method, secret, time or amz header', () => {
    const differs = isCode('SignatureDoesNotMatch');
    assert.throws(() => verify({ ...get, rawUrl: '/photos/kitten.jpg' }), differs);
    assert.throws(() => verify({ ...get, rawUrl: '/photos/puppy.jpg?acl' }), differs);
    assert.throws(() => verify({ ...get, method: 'DELETE' }), differs);
    assert.throws(() => verify(get, { secret: 'x' }), differs);
    const more = ['x-amz-copy-source', '/a/b'];
    assert.throws(() => verify({ ...get, rawHeaders: [...get.rawHeaders, ...more] }), differs);
    assert.throws(() => verify(get, { now: NOW + 3_600_000 }), isCode('RequestTimeTooSkewed'));
  });
});

describe('a header', () => {
  const at = 'Tue, 27 Mar 2007 19:36:42 GMT';
  const sign = (text: string) => signed(createHmac('sha1', EXAMPLE_SECRET).update(text).digest('base64'));

  test('x-amz-date stands in for Date, and the bucket may be in the path', () => {
    const text = `PUT\n\n\n\nx-amz-date:${at}\nx-amz-meta-a:1,2\n/b/k?versionId=x`;
    const headers = ['X-Amz-Meta-A', '1', 'X-Amz-Meta-A', ' 2', 'X-Amz-Date', at, 'Date', 'odd'];
    const rawHeaders = [...headers, ...Object.entries(sign(text)).flat()];
    const claim = oldClaim(
      readHead({ method: 'PUT', rawUrl: '/b/k?versionId=x&prefix=y', rawHeaders }),
      PLAIN,
    );
    assert.equal(claim?.verify(EXAMPLE_SECRET, NOW), null);
  });

  test('may sign a bucket with a slash after its name, and a key never', () => {
    for (const [path, text] of [
      ['/b?acl', '/b/?acl'],
      ['/b?prefix=x', '/b/'],
    ] as const) {
      const request = head('GET', path, { Date: at, ...sign(`GET\n\n\n${at}\n${text}`) });
      assert.equal(oldClaim(readHead(request), PLAIN)?.verify(EXAMPLE_SECRET, NOW), null);
    }
    const key = head('GET', '/b/k', { Date: at, ...sign(`GET\n\n\n${at}\n/b/k/`) });
    assert.throws(
      () => oldClaim(readHead(key), PLAIN)?.verify(EXAMPLE_SECRET, NOW),
      isCode('SignatureDoesNotMatch'),
    );
  });

  test('that is malformed is refused, and one of version 4 is left alone', () => {
    for (const authorization of ['AWS HAHAHA', 'AWS', 'AWS :x', 'AWS a:']) {
      const request = head('GET', '/', { Authorization: authorization, Date: at });
      assert.throws(() => oldClaim(readHead(request), PLAIN), isCode('InvalidArgument'));
    }
    for (const date of ['Bad Date', '', 'Tue, 07 Jul 1950 21:53:04 GMT']) {
      const request = head('GET', '/', { ...signed('x'), 'x-amz-date': date });
      assert.throws(() => oldClaim(readHead(request), PLAIN), isCode('AccessDenied'));
    }
    assert.equal(
      oldClaim(readHead(head('GET', '/', { Authorization: 'AWS4-HMAC-SHA256 Credential=a' })), PLAIN),
      null,
    );
    assert.equal(oldClaim(readHead(head('GET', '/', {})), PLAIN), null);
  });
});

describe('a presigned URL', () => {
  const sign = (text: string) =>
    encodeURIComponent(createHmac('sha1', EXAMPLE_SECRET).update(text, 'latin1').digest('base64'));
  const url = (text: string, query: string) =>
    `/b/k?AWSAccessKeyId=${EXAMPLE_KEY}&Expires=1175139620&Signature=${sign(text)}${query}`;
  const claim = (rawUrl: string, headers: Readonly<Record<string, string>> = {}) =>
    oldClaim(readHead(head('PUT', rawUrl, headers)), PLAIN);
  const differs = isCode('SignatureDoesNotMatch');

  test('covers the headers of Amazon that its query has, as boto3 writes them', () => {
    const text = 'PUT\n\n\n1175139620\nx-amz-acl:public-read\nx-amz-meta-a:b c\n/b/k';
    const query = '&x-amz-acl=public-read&x-amz-meta-a=b%20c';
    const found = claim(url(text, query));
    assert.deepEqual([found?.verify(EXAMPLE_SECRET, NOW), found?.isPresigned], [null, true]);
    // A client may send these too.
    assert.equal(claim(url(text, query), { 'x-amz-meta-a': 'b c' })?.verify(EXAMPLE_SECRET, NOW), null);
    for (const changed of [
      url(text, query.replace('public-read', 'public-read-write')),
      url(text, '&x-amz-meta-a=b%20c'),
      url('PUT\n\n\n1175139620\n/b/k', '&x-amz-copy-source=%2Fb%2Fother'),
    ]) {
      assert.throws(() => claim(changed)?.verify(EXAMPLE_SECRET, NOW), differs);
    }
  });
});
