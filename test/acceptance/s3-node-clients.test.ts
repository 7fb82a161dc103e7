/** Clients of JavaScript programs, with their defaults: checksums in trailers, streams in parts, forms. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import * as aws from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import * as minio from 'minio';
import { Client } from '../harness/client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';
import { eventually } from '../harness/waiting.ts';
import { type KeyPair, newKeyPair } from './s3-kit.ts';

const MIB = 2 ** 20;
const LARGE = randomBytes(12 * MIB);

let cloud: CloudProcess;
let pair: KeyPair;
before(async () => {
  cloud = await sharedCloud();
  pair = await newKeyPair(await new Client(cloud.api).newUser());
});

/** In pieces of odd lengths, as from files and pipes. */
function streamOf(bytes: Buffer): Readable {
  const step = 100_003;
  const pieces = Array.from({ length: Math.ceil(bytes.length / step) }, (_, at) =>
    bytes.subarray(at * step, (at + 1) * step),
  );
  return Readable.from(pieces, { objectMode: false });
}

describe('@aws-sdk/client-s3 with lib-storage', () => {
  const Bucket = 'sdk';
  let s3: aws.S3Client;
  before(async () => {
    s3 = new aws.S3Client({
      endpoint: cloud.data,
      region: 'us-east-1',
      forcePathStyle: true,
      credentials: { accessKeyId: pair.access_key_id, secretAccessKey: pair.secret_access_key },
    });
    await s3.send(new aws.CreateBucketCommand({ Bucket }));
  });
  after(() => s3.destroy());

  test('stores, reads and describes', async () => {
    const Key = 'folder/ä +&.txt';
    const Metadata = { colour: 'blue' };
    const put = await s3.send(
      new aws.PutObjectCommand({
        Bucket,
        Key,
        Body: 'hello',
        Metadata,
        ContentType: 'text/x',
        Tagging: 'a=b',
      }),
    );
    assert.ok(put.ChecksumCRC32, 'the checksum that the client sent by itself');
    const read = await s3.send(new aws.GetObjectCommand({ Bucket, Key, ChecksumMode: 'ENABLED' }));
    assert.equal(await read.Body?.transformToString(), 'hello');
    assert.deepEqual([read.Metadata, read.ContentType, read.ETag], [Metadata, 'text/x', put.ETag]);
    const range = await s3.send(new aws.GetObjectCommand({ Bucket, Key, Range: 'bytes=1-2' }));
    assert.equal(await range.Body?.transformToString(), 'el');
    const tags = await s3.send(new aws.GetObjectTaggingCommand({ Bucket, Key }));
    assert.deepEqual(tags.TagSet, [{ Key: 'a', Value: 'b' }]);
    const listed = await s3.send(new aws.ListObjectsV2Command({ Bucket, Delimiter: '/' }));
    assert.deepEqual(listed.CommonPrefixes, [{ Prefix: 'folder/' }]);
    const IfNoneMatch = '*';
    const again = s3.send(new aws.PutObjectCommand({ Bucket, Key, Body: 'other', IfNoneMatch }));
    await assert.rejects(again, { name: 'PreconditionFailed' });
    await assert.rejects(s3.send(new aws.GetObjectCommand({ Bucket, Key: 'none' })), aws.NoSuchKey);
    await assert.rejects(s3.send(new aws.HeadObjectCommand({ Bucket, Key: 'none' })), aws.NotFound);
  });

  test('uploads a stream in parts, reads it back, and walks pages', async () => {
    const Key = 'large';
    const params = { Bucket, Key, Body: streamOf(LARGE) };
    const { ETag } = await new Upload({ client: s3, partSize: 5 * MIB, queueSize: 3, params }).done();
    assert.match(ETag ?? '', /-3"$/);
    const { Body } = await s3.send(new aws.GetObjectCommand({ Bucket, Key }));
    const sum = createHash('sha256');
    for await (const chunk of Body as Readable) sum.update(chunk);
    assert.equal(sum.digest('hex'), createHash('sha256').update(LARGE).digest('hex'));
    const names = Array.from({ length: 5 }, (_, index) => `page/${index}`);
    for (const name of names) await s3.send(new aws.PutObjectCommand({ Bucket, Key: name, Body: '' }));
    const found: (string | undefined)[] = [];
    const pages = aws.paginateListObjectsV2({ client: s3, pageSize: 2 }, { Bucket, Prefix: 'page/' });
    for await (const { Contents = [] } of pages) found.push(...Contents.map((each) => each.Key));
    assert.deepEqual(found, names);
    const Objects = names.map((each) => ({ Key: each }));
    const { Deleted } = await s3.send(new aws.DeleteObjectsCommand({ Bucket, Delete: { Objects } }));
    assert.equal(Deleted?.length, names.length);
  });

  test('ends what it began: an aborted upload leaves no part', async () => {
    const Key = 'aborted';
    const endless = new Readable({
      read() {
        this.push(Buffer.alloc(MIB));
      },
    });
    const upload = new Upload({ client: s3, partSize: 5 * MIB, params: { Bucket, Key, Body: endless } });
    upload.on('httpUploadProgress', () => void upload.abort());
    await assert.rejects(upload.done(), { name: 'AbortError' });
    endless.destroy();
    // Requests in transit when the client gave up arrive a little later.
    const open = async () => (await s3.send(new aws.ListMultipartUploadsCommand({ Bucket }))).Uploads ?? [];
    await eventually('no upload is left', async () => {
      for (const { UploadId } of await open())
        await s3.send(new aws.AbortMultipartUploadCommand({ Bucket, Key, UploadId })).catch((error) => {
          // The client's own upload is in progress.
          if (error.name !== 'NoSuchUpload') throw error;
        });
      return (await open()).length === 0;
    });
  });
});

describe('minio-js', () => {
  const bucket = 'minio-js';
  let client: minio.Client;
  before(async () => {
    const { hostname: endPoint, port } = new URL(cloud.data);
    client = new minio.Client({
      endPoint,
      port: Number(port),
      useSSL: false,
      accessKey: pair.access_key_id,
      secretKey: pair.secret_access_key,
    });
    await client.makeBucket(bucket);
  });

  const namesOf = async (prefix: string) => {
    const names: (string | undefined)[] = [];
    for await (const item of client.listObjectsV2(bucket, prefix, true)) names.push(item.name);
    return names;
  };

  test('stores streams of unknown length, reads pieces, copies and deletes', async () => {
    await client.putObject(bucket, 'large', streamOf(LARGE), undefined, { 'X-Amz-Meta-Colour': 'blue' });
    const { size, metaData } = await client.statObject(bucket, 'large');
    assert.deepEqual([size, metaData.colour], [LARGE.length, 'blue']);
    assert.ok((await buffer(await client.getObject(bucket, 'large'))).equals(LARGE));
    const piece = await buffer(await client.getPartialObject(bucket, 'large', 5 * MIB - 3, 10));
    assert.ok(piece.equals(LARGE.subarray(5 * MIB - 3, 5 * MIB + 7)));
    await client.putObject(bucket, 'in/a b', 'one');
    await client.copyObject(bucket, 'in/copy', `/${bucket}/in/a b`, new minio.CopyConditions());
    assert.deepEqual(await namesOf('in/'), ['in/a b', 'in/copy']);
    await client.removeObjects(bucket, ['in/a b', 'in/copy']);
    assert.deepEqual(await namesOf('in/'), []);
    assert.equal(await client.bucketExists(bucket), true);
    assert.equal(await client.bucketExists('minio-js-none'), false);
  });

  test('keeps versions and tags', async () => {
    await client.setBucketVersioning(bucket, { Status: 'Enabled' });
    assert.equal((await client.getBucketVersioning(bucket)).Status, 'Enabled');
    const { versionId } = await client.putObject(bucket, 'versioned', 'one');
    await client.putObject(bucket, 'versioned', 'two');
    const old = await client.getObject(bucket, 'versioned', { versionId: versionId ?? '' });
    assert.equal(String(await buffer(old)), 'one');
    await client.setObjectTagging(bucket, 'versioned', { a: 'b' });
    assert.deepEqual(await client.getObjectTagging(bucket, 'versioned'), [{ Key: 'a', Value: 'b' }]);
  });

  test('makes links and forms that need no key', async () => {
    const put = await client.presignedPutObject(bucket, 'linked', 60);
    assert.equal((await fetch(put, { method: 'PUT', body: 'by link' })).status, 200);
    const get = await client.presignedGetObject(bucket, 'linked', 60);
    assert.equal(await (await fetch(get)).text(), 'by link');
    const policy = client.newPostPolicy();
    policy.setBucket(bucket);
    policy.setKeyStartsWith('form/');
    policy.setExpires(new Date(Date.now() + 60_000));
    policy.setContentLengthRange(1, 100);
    const { postURL, formData } = await client.presignedPostPolicy(policy);
    const send = async (key: string, content: string) => {
      const form = new FormData();
      for (const [name, value] of Object.entries({ ...formData, key })) form.set(name, String(value));
      form.set('file', new Blob([content]), 'file');
      return (await fetch(postURL, { method: 'POST', body: form })).status;
    };
    assert.equal(await send('form/a', 'by form'), 204);
    assert.equal(await send('elsewhere', 'by form'), 403);
    assert.equal(await send('form/b', 'x'.repeat(101)), 400);
    assert.deepEqual(await namesOf('form/'), ['form/a']);
  });
});
