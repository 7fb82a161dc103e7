/** Checksums of uploads in parts, and of their parts. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { before, beforeEach, describe, test } from 'node:test';
import { crc32 } from 'node:zlib';
import {
  md5Of,
  newS3Bucket,
  newUpload,
  pathOf,
  type S3Client,
  type S3Request,
  sharedS3,
  textOf,
} from './s3-kit.ts';
import { type PartUploads, partUploadsTo } from './s3-parts-kit.ts';

const MIB = 2 ** 20;
const BIG = Buffer.alloc(5 * MIB, 'five mebibytes ');

let s3: S3Client;
let bucket: string;
let path: string;
let putPart: PartUploads['putPart'];
let completing: PartUploads['completing'];
before(async () => {
  ({ s3 } = await sharedS3());
});
beforeEach(async () => {
  bucket = await newS3Bucket(s3);
  path = pathOf(bucket, 'whole');
  ({ putPart, completing } = partUploadsTo(s3, path));
});

describe('checksums of parts', () => {
  const crc = (text: string | Uint8Array) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(crc32(text));
    return bytes;
  };
  const begin = (headers: Record<string, string>) => newUpload(s3, path, { headers });
  const putSummed = async (id: string, number: number, body: string | Uint8Array) => {
    const checksum = crc(body).toString('base64');
    const headers = { 'x-amz-checksum-crc32': checksum };
    const reply = await s3.ok('PUT', path, { query: `partNumber=${number}&uploadId=${id}`, body, headers });
    assert.equal(reply.headers['x-amz-checksum-crc32'], checksum);
    return { number, etag: reply.headers.etag, more: `<ChecksumCRC32>${checksum}</ChecksumCRC32>` };
  };
  const shown = async () => {
    const { headers } = await s3.ok('HEAD', path, { headers: { 'x-amz-checksum-mode': 'ENABLED' } });
    return [headers['x-amz-checksum-crc32'], headers['x-amz-checksum-type']];
  };

  test('make a composite one', async () => {
    const id = await begin({ 'x-amz-checksum-algorithm': 'CRC32' });
    const parts = [await putSummed(id, 1, BIG), await putSummed(id, 2, 'two')];
    const bare = parts.map(({ number, etag }) => ({ number, etag }));
    await s3.refused(400, 'InvalidRequest', completing(id, bare));
    const wrong = parts.map((part) => ({ ...part, more: '<ChecksumCRC32>AAAAAA==</ChecksumCRC32>' }));
    await s3.refused(400, 'InvalidPart', completing(id, wrong));
    const value = `${crc(Buffer.concat([crc(BIG), crc('two')])).toString('base64')}-2`;
    const headers = { 'x-amz-checksum-crc32': value, 'x-amz-checksum-type': 'COMPOSITE' };
    const done = await s3.ok(...completing(id, parts, { headers }));
    assert.equal(textOf(done.text, 'ChecksumCRC32'), value);
    assert.deepEqual(await shown(), [value, 'COMPOSITE']);
  });

  test('make one of the whole, which the client may claim', async () => {
    const id = await begin({ 'x-amz-checksum-algorithm': 'CRC32', 'x-amz-checksum-type': 'FULL_OBJECT' });
    const parts = [await putSummed(id, 1, BIG), await putSummed(id, 2, 'two')];
    const value = crc(Buffer.concat([BIG, Buffer.from('two')])).toString('base64');
    const claim = (checksum: string) => ({
      headers: { 'x-amz-checksum-crc32': checksum, 'x-amz-checksum-type': 'FULL_OBJECT' },
    });
    await s3.refused(400, 'BadDigest', completing(id, parts, claim(crc('other').toString('base64'))));
    const other = { headers: { ...claim(value).headers, 'x-amz-checksum-sha1': 'x' } };
    await s3.refused(400, 'InvalidRequest', completing(id, parts, other));
    await s3.ok(...completing(id, parts, claim(value)));
    assert.deepEqual(await shown(), [value, 'FULL_OBJECT']);
  });

  test('are shown with the part that is read', async () => {
    const asked = { headers: { 'x-amz-checksum-mode': 'ENABLED' } };
    for (const type of ['COMPOSITE', 'FULL_OBJECT']) {
      const id = await begin({ 'x-amz-checksum-algorithm': 'CRC32', 'x-amz-checksum-type': type });
      await s3.ok(...completing(id, [await putSummed(id, 1, BIG), await putSummed(id, 2, 'two')]));
      for (const method of ['GET', 'HEAD']) {
        for (const [number, body] of [BIG, 'two'].entries()) {
          const query = `partNumber=${number + 1}`;
          const { headers } = await s3.ok(method, path, { ...asked, query });
          assert.equal(headers['x-amz-checksum-crc32'], crc(body).toString('base64'), `${method} ${type}`);
          assert.equal(headers['x-amz-checksum-type'], type);
          const bare = await s3.ok(method, path, { query });
          assert.equal(bare.headers['x-amz-checksum-crc32'], undefined);
        }
        const range = { headers: { ...asked.headers, range: 'bytes=0-1' } };
        assert.equal((await s3.ok(method, path, range)).headers['x-amz-checksum-crc32'], undefined);
      }
    }
    // An object uploaded in one request is its only part.
    const whole = { 'x-amz-checksum-crc32': crc('whole').toString('base64') };
    await s3.ok('PUT', path, { body: 'whole', headers: whole });
    const { headers } = await s3.ok('GET', path, { ...asked, query: 'partNumber=1' });
    assert.equal(headers['x-amz-checksum-crc32'], whole['x-amz-checksum-crc32']);
  });

  test('and the size of the whole are held against what the client claims', async () => {
    const id = await begin({});
    const part = await putPart(id, 1, 'twelve bytes');
    const size = (bytes: number) => ({ headers: { 'x-amz-mp-object-size': String(bytes) } });
    await s3.refused(400, 'InvalidRequest', completing(id, [part], size(11)));
    await s3.ok(...completing(id, [part], size(12)));
  });

  test('that are wrong store no part', async () => {
    const id = await begin({ 'x-amz-checksum-algorithm': 'CRC32' });
    const query = `partNumber=1&uploadId=${id}`;
    const put = (headers: Record<string, string>): [string, string, S3Request] => [
      'PUT',
      path,
      { query, body: 'x', headers },
    ];
    await s3.refused(400, 'BadDigest', put({ 'x-amz-checksum-crc32': 'AAAAAA==' }));
    await s3.refused(
      400,
      'BadDigest',
      put({
        'x-amz-checksum-crc32': 'jNwWgw==',
        'content-md5': Buffer.from(md5Of('y'), 'hex').toString('base64'),
      }),
    );
    await s3.refused(
      400,
      'InvalidRequest',
      put({ 'x-amz-checksum-sha1': createHash('sha1').update('x').digest('base64') }),
    );
    assert.doesNotMatch((await s3.ok('GET', path, { query: `uploadId=${id}` })).text, /<Part>/);
  });
});
