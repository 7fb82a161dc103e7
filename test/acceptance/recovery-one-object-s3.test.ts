/** Objects created by S3 clients, restored from a recovery point; and the client `cloudlet`. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { runCloudlet } from '../harness/command.ts';
import { LosableCloud } from './recovery-kit.ts';
import { completion, newS3, newUpload, pathOf, type S3Client } from './s3-kit.ts';

let lost: LosableCloud;
let s3: S3Client;
before(async () => {
  lost = await LosableCloud.start();
  s3 = await newS3(lost.cloud.data, lost.user);
});
after(() => lost.end());

const PART_BYTES = 5 * 2 ** 20;
const SSE = 'x-amz-server-side-encryption';

function keyHeaders(key: Buffer) {
  const name = `${SSE}-customer-`;
  return {
    [`${name}algorithm`]: 'AES256',
    [`${name}key`]: key.toString('base64'),
    [`${name}key-MD5`]: createHash('md5').update(key).digest('base64'),
  };
}

/** An object in two parts; resolves with its bytes. */
async function putParts(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Buffer> {
  const parts = [randomBytes(PART_BYTES), randomBytes(1000)];
  const id = await newUpload(s3, path, { headers });
  const etags: string[] = [];
  for (const [i, body] of parts.entries()) {
    const query = `partNumber=${i + 1}&uploadId=${id}`;
    const { headers: answer } = await s3.ok('PUT', path, { query, body, headers });
    etags.push(String(answer.etag));
  }
  const done = completion(etags.map((etag, i) => ({ number: i + 1, etag })));
  await s3.ok('POST', path, { query: `uploadId=${id}`, body: done, headers });
  return Buffer.concat(parts);
}

const removeAll = async (bucket: string) =>
  lost.user.expect(200, `/api/buckets/${bucket}?force=true`, { method: 'DELETE' });

test('parts, tags, headers and ETags come back; bytes of a client’s key come back under it', async () => {
  const { user } = lost;
  await user.expect(201, '/api/buckets', { json: { name: 'kinds' } });
  const parted = await putParts(pathOf('kinds', 'parted'));
  const key = keyHeaders(randomBytes(32));
  const small = Buffer.from('a secret');
  const large = randomBytes(200_000);
  await s3.ok('PUT', pathOf('kinds', 'small'), { headers: key, body: small });
  await s3.ok('PUT', pathOf('kinds', 'large'), { headers: key, body: large });
  await putParts(pathOf('kinds', 'sealed-parts'), key);
  const labels = { 'cache-control': 'no-store', 'x-amz-tagging': 'team=blue', 'x-amz-meta-by': 'ada' };
  await s3.ok('PUT', pathOf('kinds', 'labelled'), { headers: labels, body: 'x' });
  const before = (await s3.ok('HEAD', pathOf('kinds', 'parted'))).headers.etag;
  assert.match(String(before), /-2"$/);
  const { point_id } = await lost.point();
  await removeAll('kinds');
  const done = await user.expect(200, '/api/buckets/kinds/restore', { json: { point_id } });
  assert.deepEqual([done.objects, done.refused], [4, 1]);
  const [{ name, code }] = done.refusals;
  assert.deepEqual([name, code], ['sealed-parts', 'customer_key_required']);
  const read = await s3.ok('GET', pathOf('kinds', 'parted'));
  assert.equal(read.headers.etag, before);
  assert.ok(read.bytes.equals(parted));
  for (const [object, bytes] of [['small', small] as const, ['large', large] as const]) {
    await s3.refused(400, 'InvalidRequest', ['GET', pathOf('kinds', object)]);
    assert.ok((await s3.ok('GET', pathOf('kinds', object), { headers: key })).bytes.equals(bytes), object);
    const range = { ...key, range: 'bytes=3-5' };
    const part = await s3.call('GET', pathOf('kinds', object), { headers: range });
    assert.ok(part.bytes.equals(bytes.subarray(3, 6)), object);
  }
  const { headers } = await s3.ok('HEAD', pathOf('kinds', 'labelled'));
  assert.deepEqual([headers['cache-control'], headers['x-amz-meta-by']], ['no-store', 'ada']);
  assert.match((await s3.ok('GET', pathOf('kinds', 'labelled'), { query: 'tagging' })).text, /blue/);
  const again = await user.expect(200, '/api/buckets/kinds/restore', { json: { point_id } });
  assert.deepEqual([again.objects, again.same, again.refused], [0, 4, 1]);
});

test('bytes under a named key come back while it is there, and not once it is deleted', async () => {
  const { user } = lost;
  await user.expect(201, '/api/encryption-keys', { json: { id: 'shredded' } });
  await user.expect(201, '/api/buckets', { json: { name: 'named' } });
  const headers = { [SSE]: 'aws:kms', [`${SSE}-aws-kms-key-id`]: 'shredded' };
  const body = randomBytes(100_000);
  await s3.ok('PUT', pathOf('named', 'a'), { headers, body });
  const { point_id } = await lost.point();
  const restore = { json: { point_id, name: 'a', to_bucket: 'named-then' } };
  await user.expect(200, '/api/buckets/named/restore', restore);
  const back = await s3.ok('GET', pathOf('named-then', 'a'));
  assert.equal(back.headers[`${SSE}-aws-kms-key-id`]?.toString().includes('shredded'), true);
  assert.ok(back.bytes.equals(body));
  for (const bucket of ['named', 'named-then']) await removeAll(bucket);
  const disabled = { method: 'PATCH', json: { enabled: false } };
  await user.expect(200, '/api/encryption-keys/shredded', disabled);
  await user.refused(409, 'encryption_key_disabled', ['/api/buckets/named/restore', restore]);
});

test('the client lists points, previews and restores', async () => {
  const { user } = lost;
  const env = { CLOUDLET_URL: lost.cloud.api, CLOUDLET_API_KEY: user.key ?? '', HOME: lost.root };
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCloudlet(args, { env, timeoutMs: 120_000 });
    assert.equal(code, 0, stdout + stderr);
    return stdout;
  };
  await user.expect(201, '/api/buckets', { json: { name: 'client' } });
  const { body } = await user.upload('client', 'docs/a.txt', 'kept');
  await user.upload('client', 'b.txt', 'too');
  const { point_id } = await lost.point();
  await user.expect(200, `/api/storage/${body.object_id}`, { method: 'DELETE' });
  assert.match(await run('bucket', 'points', 'client'), new RegExp(point_id));
  const restore = ['bucket', 'restore', 'client/docs/', '--point', point_id];
  assert.equal(await run(...restore, '--preview'), '1 object (4.00 B) would be restored to client\n');
  assert.equal(await run(...restore), '1 object (4.00 B) restored to client\n');
  const all = ['bucket', 'restore', 's3://client', '--point', point_id, '--to', 'client-then'];
  assert.equal(await run(...all), '2 objects (7.00 B) restored to client-then\n');
  const again = await run('bucket', 'restore', 'client/b.txt', '--point', point_id);
  assert.equal(again, '0 objects (0.00 B) restored to client; 1 unchanged\n');
  const none = ['bucket', 'restore', 'client/c', '--point', point_id];
  const { code, stderr } = await runCloudlet(none, { env });
  assert.notEqual(code, 0);
  assert.match(stderr, /has no object c in client/);
});
