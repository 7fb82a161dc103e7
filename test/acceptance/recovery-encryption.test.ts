/**
 * A recovery point stores encrypted data unchanged: bytes under a client's key, and named keys with theirs.
 */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { LosableCloud, POST } from './recovery-kit.ts';
import { newS3, type S3Client, textOf } from './s3-kit.ts';

let lost: LosableCloud;
before(async () => {
  lost = await LosableCloud.start();
});
after(() => lost.end());

const SSE = 'x-amz-server-side-encryption';

test('both are read after a loss, with the key that each needs', async () => {
  const key = randomBytes(32);
  const mine = {
    [`${SSE}-customer-algorithm`]: 'AES256',
    [`${SSE}-customer-key`]: key.toString('base64'),
    [`${SSE}-customer-key-MD5`]: createHash('md5').update(key).digest('base64'),
  };
  const named = { [SSE]: 'aws:kms', [`${SSE}-aws-kms-key-id`]: 'photos' };
  await lost.user.expect(201, '/api/encryption-keys', { json: { id: 'photos' } });
  const s3 = await newS3(lost.cloud.data, lost.user);
  await s3.ok('PUT', '/kept');
  const contents = [100, 200_000].map((size) => randomBytes(size));
  for (const [i, body] of contents.entries()) {
    await s3.ok('PUT', `/kept/mine-${i}`, { headers: mine, body });
    await s3.ok('PUT', `/kept/named-${i}`, { headers: named, body });
  }
  await lost.keepKey();
  await lost.point();
  await lost.lose();
  const again = await newS3(lost.cloud.data, lost.user);
  for (const [i, body] of contents.entries()) {
    const read = await again.ok('GET', `/kept/mine-${i}`, { headers: mine });
    assert.ok(read.bytes.equals(body));
    await again.refused(400, 'InvalidRequest', ['GET', `/kept/mine-${i}`, {}]);
    const shown = await again.ok('GET', `/kept/named-${i}`);
    assert.ok(shown.bytes.equals(body));
    assert.equal(shown.headers[`${SSE}-aws-kms-key-id`], 'photos');
  }
});

test('named keys outlast the master key: across a rotation, and in points before and after it', async () => {
  const named = { [SSE]: 'aws:kms', [`${SSE}-aws-kms-key-id`]: 'letters' };
  await lost.user.expect(201, '/api/encryption-keys', { json: { id: 'letters' } });
  let s3 = await newS3(lost.cloud.data, lost.user);
  await s3.ok('PUT', '/turned');
  const contents = new Map<string, Buffer>();
  const put = async (name: string, size: number) => {
    contents.set(name, randomBytes(size));
    await s3.ok('PUT', `/turned/${name}`, { headers: named, body: contents.get(name) as Buffer });
  };
  const assertAllRead = async (names: Iterable<string> = contents.keys()) => {
    for (const name of names) {
      const shown = await s3.ok('GET', `/turned/${name}`);
      assert.ok(shown.bytes.equals(contents.get(name) as Buffer), name);
      assert.equal(shown.headers[`${SSE}-aws-kms-key-id`], 'letters');
    }
  };
  await put('small', 100);
  await put('large', 200_000);
  const begun = await s3.ok('POST', '/turned/parts', { query: 'uploads', headers: named });
  const uploadId = textOf(begun.text, 'UploadId');
  const parts = [randomBytes(5 * 2 ** 20), randomBytes(1000)];
  const etags = [await putPart(s3, { uploadId, number: 1, body: parts[0] as Buffer })];
  const { point_id: before } = await lost.point();
  const known = [...contents.keys()];

  await lost.admin.expect(200, '/api/admin/master-key/rotate', POST);
  await assertAllRead();
  await put('later', 300_000);
  etags.push(await putPart(s3, { uploadId, number: 2, body: parts[1] as Buffer }));
  const listed = etags.map(
    (etag, at) => `<Part><PartNumber>${at + 1}</PartNumber><ETag>${etag}</ETag></Part>`,
  );
  const body = `<CompleteMultipartUpload>${listed.join('')}</CompleteMultipartUpload>`;
  await s3.ok('POST', '/turned/parts', { query: `uploadId=${uploadId}`, body });
  contents.set('parts', Buffer.concat(parts));
  await assertAllRead();
  await lost.startAgain();
  s3 = await newS3(lost.cloud.data, lost.user);
  await assertAllRead();

  await lost.point();
  await lost.lose();
  s3 = await newS3(lost.cloud.data, lost.user);
  await assertAllRead();
  await lost.lose(before);
  s3 = await newS3(lost.cloud.data, lost.user);
  await assertAllRead(known);
  await s3.refused(404, 'NoSuchKey', ['GET', '/turned/later', {}]);
});

/** Stores a part. Resolves with its ETag. */
async function putPart(
  s3: S3Client,
  { uploadId, number, body }: { uploadId: string; number: number; body: Buffer },
): Promise<string> {
  const query = `partNumber=${number}&uploadId=${uploadId}`;
  return String((await s3.ok('PUT', '/turned/parts', { query, body })).headers.etag);
}
