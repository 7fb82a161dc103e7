import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseS3Url } from './s3-address.ts';

test('host, bucket, prefix, parameters and secret are read', () => {
  const secret = 'a/b+c%25';
  const address = parseS3Url(`s3://key:${encodeURIComponent(secret)}@s3.example.com/bucket/some/prefix/`);
  assert.deepEqual(address, {
    host: 's3.example.com',
    port: 443,
    tls: true,
    style: 'path',
    region: 'us-east-1',
    bucket: 'bucket',
    prefix: 'some/prefix/',
    accessKeyId: 'key',
    secretAccessKey: secret,
    label: 's3://s3.example.com/bucket/some/prefix',
  });
  const own = parseS3Url('s3://k:s@[::1]:9000/bucket?tls=off&region=eu-west-1&style=host');
  assert.deepEqual(
    [own.host, own.port, own.tls, own.region, own.style, own.prefix],
    ['::1', 9000, false, 'eu-west-1', 'host', ''],
  );
  assert.equal(parseS3Url('s3://k:s@h/bucket?tls=off').port, 80);
  assert.equal(parseS3Url('s3://k:s@h:443/bucket?tls=off').port, 443);
  assert.equal(parseS3Url('s3://k:s@h:80/bucket').port, 80);
});

test('credentials of a file replace those of the URL', () => {
  const { accessKeyId, secretAccessKey } = parseS3Url('s3://host/bucket', 'key:se/cret+\n');
  assert.deepEqual([accessKeyId, secretAccessKey], ['key', 'se/cret+']);
  const marked = parseS3Url('s3://host/bucket', '\ufeffkey:se/cret+\r\n');
  assert.deepEqual([marked.accessKeyId, marked.secretAccessKey], ['key', 'se/cret+']);
});

test('what is wrong is named, without the secret', () => {
  for (const [url, words] of [
    ['', /must be like/],
    ['https://key:hidden@host/bucket', /must be like/],
    ['s3://host/bucket', /KEY:SECRET/],
    ['s3://key@host/bucket', /KEY:SECRET/],
    ['s3://key:hidden@host', /must name a bucket/],
    ['s3://key:hidden@host/B', /must name a bucket/],
    ['s3://key:hidden@host/bucket/a b', /prefix/],
    ['s3://key:hidden@host/bucket?ssl=off', /unknown parameter ssl/],
    ['s3://key:hidden@host/bucket?tls=no', /tls/],
  ] as const) {
    assert.throws(
      () => parseS3Url(url),
      ({ message }: Error) => {
        assert.match(message, words);
        assert.doesNotMatch(message, /hidden/);
        return true;
      },
    );
  }
  assert.throws(() => parseS3Url('s3://host/bucket', 'no-colon'), /KEY:SECRET on one line/);
});
