import assert from 'node:assert/strict';
import { before, beforeEach, describe, test } from 'node:test';
import { AwsClient } from 'aws4fetch';
import { Client } from '../harness/client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import { md5Of, newS3, newS3Bucket, pathOf, type S3Client, sharedS3, textOf, textsOf } from './s3-kit.ts';

let cloud: CloudProcess;
let s3: S3Client;
let bucket: string;
before(async () => {
  ({ cloud, s3 } = await sharedS3());
});
beforeEach(async () => {
  bucket = await newS3Bucket(s3);
});

const at = (key: string) => pathOf(bucket, key);
const put = (key: string, body: string | Uint8Array, headers = {}) =>
  s3.ok('PUT', at(key), { body, headers });

describe('buckets', () => {
  test('are made, listed, found and removed', async () => {
    const own = await newS3(cloud.data, await new Client(cloud.api).newUser());
    for (const name of ['one-more', 'other', 'one-bucket']) {
      const made = await own.ok('PUT', `/${name}`);
      assert.equal(made.headers.location, `/${name}`);
    }
    const all = await own.ok('GET', '/');
    assert.deepEqual(textsOf(all.text, 'Name'), ['one-bucket', 'one-more', 'other']);
    assert.match(textOf(all.text, 'ID'), /^[0-9a-f]{64}$/);
    assert.doesNotMatch(textOf(all.text, 'ID'), /^0{40}/);
    const page = await own.ok('GET', '/', { query: 'max-buckets=1&prefix=one-' });
    assert.deepEqual(textsOf(page.text, 'Name'), ['one-bucket']);
    const token = textOf(page.text, 'ContinuationToken');
    const rest = await own.ok('GET', '/', { query: `continuation-token=${token}&max-buckets=1&prefix=one-` });
    assert.deepEqual(textsOf(rest.text, 'Name'), ['one-more']);
    assert.deepEqual(textsOf(rest.text, 'ContinuationToken'), []);
    assert.equal((await own.ok('HEAD', '/other')).headers['x-amz-bucket-region'], 'us-east-1');
    assert.equal((await own.ok('DELETE', '/other')).status, 204);
    await own.refused(404, 'NoSuchBucket', ['DELETE', '/other']);
    // In us-east-1 this is not an error.
    assert.equal((await own.ok('PUT', '/one-more')).status, 200);
    const elsewhere =
      '<CreateBucketConfiguration><LocationConstraint>eu-west-1</LocationConstraint></CreateBucketConfiguration>';
    await own.refused(409, 'BucketAlreadyOwnedByYou', ['PUT', '/one-more', { body: elsewhere }]);
    const headers = { 'x-amz-acl': 'public-read' };
    await own.refused(409, 'BucketAlreadyExists', ['PUT', '/one-more', { headers }]);
  });

  test('have names by the rules of Amazon', async () => {
    const odd = ['ab', 'Upper', 'a..b', 'a.-b', '192.168.0.1', 'xn--a', 'under_score', 'a'.repeat(64)];
    for (const name of [...odd, 'some.mrap', 'some--x-s3', 'some--table-s3', 'amzn-s3-demo-a']) {
      await s3.refused(400, 'InvalidBucketName', ['PUT', `/${name}`]);
    }
  });

  test('say where they are', async () => {
    const body =
      '<CreateBucketConfiguration><LocationConstraint>eu-west-1</LocationConstraint></CreateBucketConfiguration>';
    await s3.ok('PUT', '/abroad', { body });
    assert.equal(
      textOf((await s3.ok('GET', '/abroad', { query: 'location' })).text, 'LocationConstraint'),
      'eu-west-1',
    );
    assert.match(
      (await s3.ok('GET', `/${bucket}`, { query: 'location' })).text,
      /<LocationConstraint[^>]*(?:\/>|><\/)/,
    );
  });

  test('are removed only when empty', async () => {
    await put('a', 'x');
    await s3.refused(409, 'BucketNotEmpty', ['DELETE', `/${bucket}`]);
    assert.equal((await s3.ok('DELETE', at('a'))).status, 204);
    await s3.ok('DELETE', `/${bucket}`);
    await s3.refused(404, 'NoSuchBucket', ['GET', `/${bucket}`]);
  });

  test('have an encryption that can be set', async () => {
    const query = 'encryption';
    await s3.refused(404, 'ServerSideEncryptionConfigurationNotFoundError', ['GET', `/${bucket}`, { query }]);
    const body =
      '<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>AES256</SSEAlgorithm></ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>';
    await s3.ok('PUT', `/${bucket}`, { query, body });
    assert.equal(textOf((await s3.ok('GET', `/${bucket}`, { query })).text, 'SSEAlgorithm'), 'AES256');
    const { headers } = await put('sealed', 'secret');
    assert.equal(headers['x-amz-server-side-encryption'], 'AES256');
    const read = await s3.ok('GET', at('sealed'));
    assert.equal(read.text, 'secret');
    assert.equal(read.headers['x-amz-server-side-encryption'], 'AES256');
    assert.equal(read.headers.etag, `"${md5Of('secret')}"`);
  });

  test('answer empty settings, and refuse to set what is not offered', async () => {
    const empty = [
      'accelerate',
      'logging',
      'notification',
      'requestPayment',
      'analytics',
      'inventory',
      'metrics',
    ];
    for (const query of empty) await s3.ok('GET', `/${bucket}`, { query });
    for (const query of ['website', 'replication', 'tagging']) {
      assert.equal((await s3.call('GET', `/${bucket}`, { query })).status, 404, query);
    }
    for (const query of ['analytics', 'inventory', 'metrics', 'replication', 'website']) {
      await s3.refused(501, 'NotImplemented', ['PUT', `/${bucket}`, { query, body: '<x/>' }]);
    }
    await put('o', 'x');
    await s3.refused(404, 'NoSuchKey', ['GET', at('o'), { query: 'torrent' }]);
    await s3.refused(501, 'NotImplemented', ['POST', at('o'), { query: 'restore', body: '<x/>' }]);
    await s3.refused(501, 'NotImplemented', [
      'POST',
      at('o'),
      { query: 'select&select-type=2', body: '<x/>' },
    ]);
    await s3.refused(405, 'MethodNotAllowed', ['POST', at('o')]);
  });

  test("grant nothing to others where the bucket's owner owns all: other lists are refused", async () => {
    await put('listed', 'x');
    const query = 'ownershipControls';
    const rule = '<Rule><ObjectOwnership>BucketOwnerEnforced</ObjectOwnership></Rule>';
    await s3.ok('PUT', `/${bucket}`, { query, body: `<OwnershipControls>${rule}</OwnershipControls>` });
    for (const path of [`/${bucket}`, at('listed')]) {
      const { text } = await s3.ok('GET', path, { query: 'acl' });
      assert.match(text, /xsi:type="CanonicalUser"><ID>[0-9a-f]{64}<.*<Permission>FULL_CONTROL</);
      for (const name of ['private', 'public-read']) {
        const list = { query: 'acl', headers: { 'x-amz-acl': name } };
        await s3.refused(400, 'AccessControlListNotSupported', ['PUT', path, list]);
      }
    }
    const granted = { headers: { 'x-amz-acl': 'authenticated-read' }, body: 'y' };
    await s3.refused(400, 'AccessControlListNotSupported', ['PUT', at('granted'), granted]);
    await s3.refused(404, 'NoSuchKey', ['GET', at('granted')]);
    await s3.ok('DELETE', `/${bucket}`, { query });
  });
});

describe('objects', () => {
  test('come back with their type, headers and metadata', async () => {
    const headers = {
      'content-type': 'text/x-test; charset=utf-8',
      'cache-control': 'max-age=5',
      'content-disposition': 'attachment; filename="a b.txt"',
      'content-encoding': 'gzip',
      'content-language': 'de, en',
      expires: 'Thu, 01 Dec 2033 16:00:00 GMT',
      'x-amz-meta-colour': 'dark  red',
      'x-amz-meta-UPPER': 'Kept',
      'x-amz-meta-__proto__': 'kept too',
      'x-amz-meta-name': Buffer.from('Grüße 🎈').toString('latin1'),
    };
    const sent = await put('a', 'some bytes', headers);
    assert.equal(sent.headers.etag, `"${md5Of('some bytes')}"`);
    for (const method of ['GET', 'HEAD']) {
      const got = await s3.ok(method, at('a'));
      assert.equal(got.text, method === 'GET' ? 'some bytes' : '');
      for (const name of [
        'content-type',
        'cache-control',
        'content-disposition',
        'content-encoding',
        'expires',
      ] as const)
        assert.equal(got.headers[name], headers[name], name);
      assert.equal(got.headers['content-language'], 'de, en');
      assert.equal(got.headers['x-amz-meta-upper'], 'Kept');
      assert.equal(got.headers['x-amz-meta-__proto__'], 'kept too');
      assert.match(String(got.headers['x-amz-meta-colour']), /^dark +red$/);
      assert.equal(Buffer.from(String(got.headers['x-amz-meta-name']), 'latin1').toString(), 'Grüße 🎈');
      assert.deepEqual([got.headers['content-length'], got.headers['accept-ranges']], ['10', 'bytes']);
      assert.equal(got.headers['x-amz-version-id'], undefined);
      assert.ok(Math.abs(Date.parse(got.headers['last-modified'] ?? '') - Date.now()) < 60_000);
    }
  });

  test('are replaced, and gone once deleted; deleting again is no error', async () => {
    await put('a', 'one');
    await put('a', 'two!');
    assert.equal((await s3.ok('GET', at('a'))).text, 'two!');
    for (let time = 0; time < 2; time++) assert.equal((await s3.ok('DELETE', at('a'))).status, 204);
    await s3.refused(404, 'NoSuchKey', ['GET', at('a')]);
    const head = await s3.call('HEAD', at('a'));
    assert.deepEqual([head.status, head.text], [404, '']);
    assert.match(String(head.headers['x-amz-request-id']), /^req-/);
  });

  test('may be empty and large', async () => {
    await put('empty', '');
    assert.equal((await s3.ok('GET', at('empty'))).text, '');
    assert.equal((await s3.call('GET', at('empty'), { headers: { range: 'bytes=0-' } })).status, 416);
    const one = await s3.ok('GET', at('empty'), { query: 'partNumber=1' });
    assert.deepEqual([one.text, one.headers['content-range']], ['', undefined]);
    const large = Buffer.alloc(9 * 2 ** 20 + 13, 'a large object ');
    const { headers } = await put('large', large);
    assert.equal(headers.etag, `"${md5Of(large)}"`);
    assert.ok((await s3.ok('GET', at('large'))).bytes.equals(large));
    const range = { range: 'bytes=8388600-8388620' };
    const part = await s3.ok('GET', at('large'), { headers: range });
    assert.ok(part.bytes.equals(large.subarray(8388600, 8388621)));
    assert.equal(part.headers['content-range'], `bytes 8388600-8388620/${large.length}`);
  });

  test('are read in ranges', async () => {
    await put('r', '0123456789');
    for (const [range, wanted] of [
      ['bytes=2-4', '234'],
      ['bytes=7-', '789'],
      ['bytes=-2', '89'],
      ['bytes=5-100', '56789'],
      ['bytes=-100', '0123456789'],
    ] as const) {
      const got = await s3.call('GET', at('r'), { headers: { range } });
      assert.deepEqual([got.status, got.text], [206, wanted], range);
    }
    for (const range of ['bytes=1-2,4-5', 'lines=1-2', 'bytes=x', 'bytes=5-2']) {
      const got = await s3.call('GET', at('r'), { headers: { range } });
      assert.deepEqual([got.status, got.text], [200, '0123456789'], range);
    }
    const beyond = await s3.refused(416, 'InvalidRange', [
      'GET',
      at('r'),
      { headers: { range: 'bytes=10-' } },
    ]);
    assert.equal(beyond.headers['content-range'], 'bytes */10');
    const head = await s3.call('HEAD', at('r'), { headers: { range: 'bytes=2-4' } });
    assert.deepEqual([head.status, head.headers['content-length']], [206, '3']);
  });

  test('are answered with other headers where the query says so', async () => {
    await put('a', 'x');
    const query =
      'response-content-type=text%2Fcsv&response-cache-control=no-store&response-content-disposition=inline';
    const { headers } = await s3.ok('GET', at('a'), { query });
    assert.deepEqual([headers['content-type'], headers['cache-control']], ['text/csv', 'no-store']);
    assert.equal(headers['content-disposition'], 'inline');
    assert.match(String(headers['content-security-policy']), /sandbox/);
  });

  test('have tags', async () => {
    const tags = (pairs: [string, string][]) =>
      `<Tagging><TagSet>${pairs.map(([key, value]) => `<Tag><Key>${key}</Key><Value>${value}</Value></Tag>`).join('')}</TagSet></Tagging>`;
    await put('t', 'x', { 'x-amz-tagging': 'a=1&b=two%20words' });
    assert.equal((await s3.ok('GET', at('t'))).headers['x-amz-tagging-count'], '2');
    const query = 'tagging';
    const first = (await s3.ok('GET', at('t'), { query })).text;
    assert.deepEqual(
      [textsOf(first, 'Key'), textsOf(first, 'Value')],
      [
        ['a', 'b'],
        ['1', 'two words'],
      ],
    );
    await s3.ok('PUT', at('t'), { query, body: tags([['c', 'Ü']]) });
    assert.deepEqual(textsOf((await s3.ok('GET', at('t'), { query })).text, 'Value'), ['Ü']);
    for (const pairs of [
      [
        ['x', 'y'],
        ['x', 'z'],
      ],
      [['k'.repeat(129), 'v']],
      [['k', 'v'.repeat(257)]],
      Array.from({ length: 11 }, (_, n) => [`k${n}`, 'v']),
    ] as [string, string][][]) {
      const refused = await s3.call('PUT', at('t'), { query, body: tags(pairs) });
      assert.equal(refused.status, 400, refused.text);
    }
    assert.equal((await s3.ok('DELETE', at('t'), { query })).status, 204);
    assert.deepEqual(textsOf((await s3.ok('GET', at('t'), { query })).text, 'Key'), []);
  });

  test('tell their attributes', async () => {
    await put('a', 'abc');
    const headers = { 'x-amz-object-attributes': 'ETag,ObjectSize,StorageClass,Checksum' };
    const { text } = await s3.ok('GET', at('a'), { query: 'attributes', headers });
    assert.deepEqual([textOf(text, 'ETag'), textOf(text, 'ObjectSize')], [md5Of('abc'), '3']);
    assert.deepEqual(
      [textOf(text, 'StorageClass'), textOf(text, 'ChecksumType')],
      ['STANDARD', 'FULL_OBJECT'],
    );
    const odd = { 'x-amz-object-attributes': 'Colour' };
    await s3.refused(400, 'InvalidArgument', ['GET', at('a'), { query: 'attributes', headers: odd }]);
  });

  test('are copied with what describes them, or with something new', async () => {
    await put('from', 'copied bytes', {
      'content-type': 'text/a',
      'x-amz-meta-a': '1',
      'x-amz-tagging': 'k=v',
    });
    const source = { 'x-amz-copy-source': `/${bucket}/from` };
    const { text } = await s3.ok('PUT', at('kept'), { headers: source });
    assert.equal(textOf(text, 'ETag'), `"${md5Of('copied bytes')}"`);
    const kept = await s3.ok('GET', at('kept'));
    assert.deepEqual(
      [kept.text, kept.headers['content-type'], kept.headers['x-amz-meta-a']],
      ['copied bytes', 'text/a', '1'],
    );
    assert.equal(kept.headers['x-amz-tagging-count'], '1');
    const headers = {
      ...source,
      'x-amz-metadata-directive': 'REPLACE',
      'content-type': 'text/b',
      'x-amz-meta-b': '2',
    };
    await s3.ok('PUT', at('new'), { headers });
    const fresh = await s3.ok('GET', at('new'));
    assert.deepEqual(
      [fresh.headers['content-type'], fresh.headers['x-amz-meta-a'], fresh.headers['x-amz-meta-b']],
      ['text/b', undefined, '2'],
    );
    await s3.refused(400, 'InvalidRequest', ['PUT', at('from'), { headers: source }]);
    await s3.ok('PUT', at('from'), { headers });
    assert.equal((await s3.ok('HEAD', at('from'))).headers['content-type'], 'text/b');
    for (const [wrong, status, code] of [
      ['nowhere', 400, 'InvalidArgument'],
      [`${bucket}/missing`, 404, 'NoSuchKey'],
      ['no-such-bucket/x', 404, 'NoSuchBucket'],
      [`${bucket}/%zz`, 400, 'InvalidArgument'],
    ] as const) {
      await s3.refused(status, code, ['PUT', at('c'), { headers: { 'x-amz-copy-source': wrong } }]);
    }
  });

  test('are deleted many at a time', async () => {
    for (const key of ['a', 'b&<c>', 'd\te']) await put(key, 'x');
    const body = (keys: string[], quiet = '') =>
      `<Delete>${quiet}${keys.map((key) => `<Object><Key>${key}</Key></Object>`).join('')}</Delete>`;
    const query = 'delete';
    const first = await s3.ok('POST', `/${bucket}`, {
      query,
      body: body(['a', 'b&amp;&lt;c&gt;', 'missing', 'd&#9;e']),
    });
    assert.deepEqual(textsOf(first.text, 'Key'), ['a', 'b&<c>', 'missing', 'd\te']);
    assert.equal((await s3.call('HEAD', at('d\te'))).status, 404);
    for (const odd of ['a', 'odd\uFFFF', 'odd\u0001']) await put(odd, 'x');
    const raw = await s3.ok('POST', `/${bucket}`, {
      query,
      body: body(['a', 'odd\uFFFF', 'odd\u0001']),
    });
    assert.equal(raw.text.split('<Deleted>').length - 1, 3);
    assert.equal((await s3.call('HEAD', at('odd\uFFFF'))).status, 404);
    // Impossible keys are reported one by one; the others are deleted.
    await put('a', 'x');
    const none = ['nul\u0000', 'nul&#0;', 'half&#xD800;'];
    const some = await s3.ok('POST', `/${bucket}`, { query, body: body(['a', ...none]) });
    assert.deepEqual(textsOf(some.text, 'Code'), ['InvalidURI', 'InvalidURI', 'InvalidURI']);
    assert.equal((await s3.call('HEAD', at('a'))).status, 404);
    const quiet = await s3.ok('POST', `/${bucket}`, { query, body: body(['z'], '<Quiet>true</Quiet>') });
    assert.deepEqual(textsOf(quiet.text, 'Key'), []);
    const many = (count: number) => body(Array.from({ length: count }, (_, n) => `k${n}`));
    await s3.ok('POST', `/${bucket}`, { query, body: many(1000) });
    await s3.refused(400, 'MalformedXML', ['POST', `/${bucket}`, { query, body: many(1001) }]);
    await s3.refused(400, 'MalformedXML', ['POST', `/${bucket}`, { query, body: '<Delete></Delete>' }]);
  });

  test('have storage classes and metadata within their limits', async () => {
    await s3.refused(400, 'InvalidStorageClass', [
      'PUT',
      at('a'),
      { headers: { 'x-amz-storage-class': 'FAST' } },
    ]);
    await s3.refused(400, 'MetadataTooLarge', [
      'PUT',
      at('a'),
      { headers: { 'x-amz-meta-a': 'v'.repeat(2100) } },
    ]);
    await s3.refused(404, 'NoSuchKey', ['GET', at('a')]);
  });

  test('answer for the owner that the caller expects alone', async () => {
    await put('a', 'x');
    const headers = { 'x-amz-expected-bucket-owner': 'f'.repeat(64) };
    for (const method of ['GET', 'PUT', 'DELETE'])
      await s3.refused(403, 'AccessDenied', [method, at('a'), { headers }]);
    assert.equal((await s3.ok('GET', at('a'))).text, 'x');
  });
});

test('another signer of S3 requests is understood, presigned too', async () => {
  const { access_key_id: accessKeyId, secret_access_key: secretAccessKey } = s3.pair;
  const aws = new AwsClient({ accessKeyId, secretAccessKey, service: 's3', region: 'us-east-1', retries: 0 });
  const url = `${cloud.data}${at('by another/ä+b.txt')}`;
  assert.equal((await aws.fetch(url, { method: 'PUT', body: 'hello' })).status, 200);
  assert.equal(await (await aws.fetch(url)).text(), 'hello');
  const signed = await aws.sign(`${url}?X-Amz-Expires=60`, { aws: { signQuery: true } });
  assert.equal(await (await fetch(signed.url)).text(), 'hello');
  assert.equal(
    (await fetch(`${signed.url.slice(0, -1)}${signed.url.endsWith('0') ? '1' : '0'}`)).status,
    403,
  );
});
