/**
 * Required parts of S3 requests, according to Amazon's reference of each operation: headers, parameters,
 * documents.
 */
import assert from 'node:assert/strict';
import { before, beforeEach, describe, test } from 'node:test';
import { Client } from '../harness/client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import {
  anonymously,
  completion,
  newS3,
  newS3Bucket,
  newUpload,
  pathOf,
  type S3Client,
  sharedS3,
  textOf,
  textsOf,
  transmit,
} from './s3-kit.ts';

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
const put = (key: string, body = 'x', headers = {}) => s3.ok('PUT', at(key), { body, headers });
const CRC32_OF_X = 'jNwWgw==';

describe('buckets', () => {
  test('tell clients that are refused where they are', async () => {
    const stranger = await newS3(cloud.data, await new Client(cloud.api).newUser());
    const { status, headers } = await stranger.call('HEAD', `/${bucket}`);
    assert.deepEqual([status, headers['x-amz-bucket-region']], [403, 'us-east-1']);
  });

  test('are listed by pages of at least one, with tokens that are ours', async () => {
    for (const query of ['max-buckets=0', 'continuation-token=made-up']) {
      await s3.refused(400, 'InvalidArgument', ['GET', '/', { query }]);
    }
  });

  test('are made by the document for that only', async () => {
    await s3.refused(400, 'MalformedXML', ['PUT', '/s3-other-root', { body: '<Other/>' }]);
  });

  test('are no users: calls of IAM and STS are refused as their clients read it', async () => {
    const body = 'Action=AssumeRoleWithWebIdentity&Version=2011-06-15';
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    for (const { status, text } of [
      await s3.call('POST', '/', { headers, body }),
      await anonymously(cloud.data, 'POST', '/', { headers, body }),
    ]) {
      assert.deepEqual([status, textOf(text, 'Code')], [501, 'NotImplemented']);
      assert.match(text, /<ErrorResponse><Error>.*<RequestId>req/s);
    }
  });

  test('have no parts that are not offered', async () => {
    for (const query of ['abac', 'metadataConfiguration']) {
      await s3.refused(501, 'NotImplemented', ['GET', `/${bucket}`, { query }]);
    }
    await s3.refused(501, 'NotImplemented', ['PUT', at('a'), { query: 'renameObject', body: 'x' }]);
    for (const list of ['analytics', 'intelligent-tiering', 'inventory', 'metrics']) {
      await s3.refused(404, 'NoSuchConfiguration', ['GET', `/${bucket}`, { query: `${list}&id=a` }]);
    }
    assert.deepEqual(textsOf((await s3.ok('GET', `/${bucket}`)).text, 'Key'), []);
  });
});

describe('lists', () => {
  test('begin at the start with an empty token, and are in order with a delimiter', async () => {
    await put('a');
    const { text } = await s3.ok('GET', `/${bucket}`, { query: 'list-type=2&continuation-token=' });
    assert.deepEqual([textsOf(text, 'Key'), textsOf(text, 'ContinuationToken')], [['a'], ['']]);
    await s3.ok('GET', `/${bucket}`, { query: 'allow-unordered=true' });
    const query = 'allow-unordered=true&delimiter=%2F';
    await s3.refused(400, 'InvalidArgument', ['GET', `/${bucket}`, { query }]);
  });
});

describe('documents', () => {
  test('that are empty are refused as such', async () => {
    for (const query of ['versioning', 'tagging', 'cors', 'lifecycle', 'object-lock', 'encryption']) {
      await s3.refused(400, 'MissingRequestBodyError', ['PUT', `/${bucket}`, { query }]);
    }
    await s3.refused(400, 'MissingRequestBodyError', ['POST', `/${bucket}`, { query: 'delete' }]);
  });
});

describe('uploads', () => {
  test('say how long they are', async () => {
    const prepared = s3.prepare('PUT', at('a'));
    const { 'content-length': _, ...headers } = prepared.headers;
    const reply = await transmit(s3.base, { ...prepared, headers });
    assert.deepEqual([reply.status, textsOf(reply.text, 'Code')], [411, ['MissingContentLength']]);
    await s3.refused(404, 'NoSuchKey', ['GET', at('a')]);
  });

  test('send the checksum that they announce', async () => {
    const announced = { 'x-amz-sdk-checksum-algorithm': 'CRC32' };
    await s3.refused(400, 'InvalidRequest', ['PUT', at('a'), { body: 'x', headers: announced }]);
    await put('a', 'x', { ...announced, 'x-amz-checksum-crc32': CRC32_OF_X });
  });

  test('in parts state the type of a checksum with its algorithm, and each part the checksum', async () => {
    const type = { 'x-amz-checksum-type': 'COMPOSITE' };
    await s3.refused(400, 'InvalidRequest', ['POST', at('a'), { query: 'uploads', headers: type }]);
    const id = await newUpload(s3, at('a'), { headers: { ...type, 'x-amz-checksum-algorithm': 'CRC32' } });
    const query = `partNumber=1&uploadId=${id}`;
    await s3.refused(400, 'InvalidRequest', ['PUT', at('a'), { query, body: 'x' }]);
    await s3.ok('PUT', at('a'), { query, body: 'x', headers: { 'x-amz-checksum-crc32': CRC32_OF_X } });
    const whole = await newUpload(s3, at('b'), {
      headers: { 'x-amz-checksum-type': 'FULL_OBJECT', 'x-amz-checksum-algorithm': 'CRC32' },
    });
    await s3.ok('PUT', at('b'), { query: `partNumber=1&uploadId=${whole}`, body: 'x' });
  });

  test('are completed with numbers and tags of all parts', async () => {
    const id = await newUpload(s3, at('a'));
    const query = `uploadId=${id}`;
    const { headers } = await s3.ok('PUT', at('a'), { query: `partNumber=1&${query}`, body: 'x' });
    const untagged =
      '<CompleteMultipartUpload><Part><PartNumber>1</PartNumber></Part></CompleteMultipartUpload>';
    await s3.refused(400, 'MalformedXML', ['POST', at('a'), { query, body: untagged }]);
    const body = completion([{ number: 0, etag: headers.etag }]);
    await s3.refused(400, 'InvalidArgument', ['POST', at('a'), { query, body }]);
  });
});

describe('objects', () => {
  test('show the attributes that are asked for', async () => {
    await put('a');
    for (const headers of [{}, { 'x-amz-object-attributes': '' }]) {
      await s3.refused(400, 'InvalidRequest', ['GET', at('a'), { query: 'attributes', headers }]);
    }
  });

  test('have no more parts than there can be', async () => {
    await put('a');
    await s3.refused(400, 'InvalidArgument', ['GET', at('a'), { query: 'partNumber=10001' }]);
    await s3.refused(416, 'InvalidPartNumber', ['GET', at('a'), { query: 'partNumber=10000' }]);
  });

  test('are copied to themselves with another class or redirect, which is not copied', async () => {
    await put('a', 'x', { 'cache-control': 'no-cache', 'x-amz-website-redirect-location': '/old' });
    const source = { 'x-amz-copy-source': `${bucket}/a` };
    const redirect = async (key: string) => {
      const { headers } = await s3.ok('HEAD', at(key));
      assert.equal(headers['cache-control'], 'no-cache');
      return headers['x-amz-website-redirect-location'];
    };
    await s3.refused(400, 'InvalidRequest', ['PUT', at('a'), { headers: source }]);
    await s3.ok('PUT', at('a'), { headers: { ...source, 'x-amz-website-redirect-location': '/new' } });
    assert.equal(await redirect('a'), '/new');
    await s3.ok('PUT', at('b'), { headers: source });
    assert.equal(await redirect('b'), undefined);
    await s3.ok('PUT', at('a'), { headers: { ...source, 'x-amz-storage-class': 'STANDARD' } });
    const unnamed = { 'x-amz-copy-source': `${bucket}/a?versionId=` };
    await s3.refused(400, 'InvalidArgument', ['PUT', at('b'), { headers: unnamed }]);
  });
});
