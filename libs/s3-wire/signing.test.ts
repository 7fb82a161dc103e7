import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AwsV4Signer } from 'aws4fetch';
import fc from 'fast-check';
import { EXAMPLE_KEY, EXAMPLE_MS, EXAMPLE_SECRET, EXAMPLE_TIME } from '../../server/testing/sign-s3.ts';
import { claimOf, readHead } from './signature.ts';
import { pathOf, presignedUrl, queryText, signedHeaders } from './signing.ts';

const HOST = 'examplebucket.s3.amazonaws.com';
const SIGNER = { accessKeyId: EXAMPLE_KEY, secret: EXAMPLE_SECRET, region: 'us-east-1', nowMs: EXAMPLE_MS };

/** Whether the verifier accepts a request, and the same request with another secret or path. */
function verdicts(method: string, target: string, headers: Readonly<Record<string, string>>): boolean[] {
  const verdict = (rawUrl: string, secret: string) => {
    const claim = claimOf(readHead({ method, rawUrl, rawHeaders: Object.entries(headers).flat() }));
    assert.equal(claim?.accessKeyId, EXAMPLE_KEY);
    try {
      return claim.verify(secret, EXAMPLE_MS) !== null;
    } catch {
      return false;
    }
  };
  return [
    verdict(target, EXAMPLE_SECRET),
    verdict(target, `${EXAMPLE_SECRET}x`),
    verdict(`/x${target}`, EXAMPLE_SECRET),
  ];
}

test("Amazon's example of a presigned URL", () => {
  const asked = { method: 'GET', path: pathOf('', 'test.txt'), query: {} };
  const url = presignedUrl(asked, { origin: `https://${HOST}`, seconds: 86_400 }, SIGNER);
  assert.match(url, /^https:\/\/examplebucket\.s3\.amazonaws\.com\/test\.txt\?X-Amz-Algorithm=/);
  assert.match(url, /&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404$/);
});

describe('headers', () => {
  test('are those of another signer', async () => {
    const asked = {
      method: 'PUT',
      path: pathOf('bucket', "a b/c(1)*!'é.txt"),
      query: { uploadId: 'a+b/c=', partNumber: '7', 'list-type': '2', prefix: '' },
      headers: { 'content-md5': '1B2M2Y8AsgTpgAmY7PhCfg==', 'if-none-match': '*', range: 'bytes=0-1' },
    };
    const other = await new AwsV4Signer({
      method: 'PUT',
      url: `https://${HOST}${asked.path}?${queryText(asked.query)}`,
      headers: asked.headers,
      accessKeyId: EXAMPLE_KEY,
      secretAccessKey: EXAMPLE_SECRET,
      service: 's3',
      region: 'us-east-1',
      datetime: EXAMPLE_TIME,
    }).sign();
    const { host, ...sent } = signedHeaders(asked, HOST, SIGNER);
    assert.equal(host, HOST);
    assert.deepEqual(sent, Object.fromEntries(other.headers));
  });

  test('leave out what proxies change', () => {
    const headers = { range: 'bytes=0-1', 'user-agent': 'x', 'content-type': 'a/b', 'x-amz-acl': 'private' };
    const { authorization = '' } = signedHeaders(
      { method: 'GET', path: '/b/k', query: {}, headers },
      HOST,
      SIGNER,
    );
    assert.match(authorization, /SignedHeaders=content-type;host;x-amz-acl;x-amz-content-sha256;x-amz-date,/);
  });
});

test('the verifier takes what the signer signs, whatever the key, and nothing else', () => {
  const odd = fc.constantFrom(
    '/',
    '//',
    '../',
    './',
    '+',
    ' ',
    '%',
    '%2F',
    '?',
    '#',
    '&',
    '=',
    '"',
    'é',
    '😀',
  );
  const names = fc.array(fc.oneof(odd, fc.string({ unit: 'grapheme' })), { minLength: 1, maxLength: 6 });
  const text = names.map((parts) => parts.join('').replaceAll(/\p{Cs}/gu, '')).filter((key) => key !== '');
  fc.assert(
    fc.property(text, text, (key, value) => {
      const asked = { method: 'PUT', path: pathOf('bucket', key), query: { prefix: value, uploads: '' } };
      const target = `${asked.path}?${queryText(asked.query)}`;
      const headers = signedHeaders({ ...asked, headers: { 'x-amz-meta-a': ' b  c ' } }, HOST, SIGNER);
      assert.deepEqual(verdicts('PUT', target, headers), [true, false, false]);
      const link = presignedUrl(asked, { origin: `http://${HOST}`, seconds: 60 }, SIGNER);
      const linked = link.slice(`http://${HOST}`.length);
      assert.deepEqual(verdicts('PUT', linked, { host: HOST }), [true, false, false]);
      assert.equal(decodeURIComponent(asked.path), `/bucket/${key}`);
    }),
    { numRuns: 300 },
  );
});

test('paths name a bucket, an object, or an object of the host', () => {
  assert.equal(pathOf('b'), '/b');
  assert.equal(pathOf('b', 'a//b/../c'), '/b/a//b/../c');
  assert.equal(pathOf('b', '/a'), '/b//a');
  assert.equal(pathOf('', 'a'), '/a');
  assert.equal(pathOf(''), '/');
});
