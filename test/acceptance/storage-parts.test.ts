/** Multipart uploads over REST: they continue after an interruption, and become one object or none. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, test } from 'node:test';
import { crc32 } from 'node:zlib';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { assertProblem } from './storage-kit.ts';

const PART = 5 * 2 ** 20;
const cloud = await CloudProcess.start();
let user = new Client(cloud.api, (await new Client(cloud.api).register()).api_key);
after(() => cloud.stop());

const crcOf = (bytes: Uint8Array) => {
  const value = Buffer.alloc(4);
  value.writeUInt32BE(crc32(bytes));
  return value.toString('base64');
};

async function bucketOf(name: string, settings = {}): Promise<string> {
  assert.equal((await user.call('/api/buckets', { json: { name, ...settings } })).status, 201);
  return `/api/buckets/${name}/uploads`;
}

async function begin(uploads: string, name: string): Promise<string> {
  const { status, body } = await user.call(uploads, { json: { name } });
  assert.equal(status, 201, JSON.stringify(body));
  return `${uploads}/${body.upload_id}`;
}

function put(upload: string, number: number | string, bytes: Uint8Array) {
  const form = new FormData();
  form.set('file', new Blob([bytes as Uint8Array<ArrayBuffer>]));
  return user.call(`${upload}/parts/${number}`, { method: 'POST', body: form });
}

test('parts in any order, one sent twice, become the object in every kind of bucket', async () => {
  for (const [name, settings] of Object.entries({
    plain: {},
    sealed: { encryption: true },
    kept: { versioning: true },
  })) {
    const uploads = await bucketOf(name, settings);
    const upload = await begin(uploads, 'films/one.mp4');
    const bytes = randomBytes(2 * PART + 1000);
    const pieces = [bytes.subarray(0, PART), bytes.subarray(PART, 2 * PART), bytes.subarray(2 * PART)];
    await put(upload, 3, pieces[2] as Buffer);
    assert.equal((await put(upload, 1, randomBytes(PART))).status, 200);
    const first = await put(upload, 1, pieces[0] as Buffer);
    assert.deepEqual([first.body.number, first.body.size], [1, PART]);
    assert.equal(first.body.crc32, crcOf(pieces[0] as Buffer));
    const early = await user.call(`${upload}/complete`, { json: { parts: 3 } });
    assertProblem(early, 400, 'invalid_request');
    assert.match(early.body.detail, /part 2 has not arrived/);
    await put(upload, 2, pieces[1] as Buffer);
    const { body: parts } = await user.call(`${upload}/parts`);
    assert.deepEqual(
      parts.map(({ number, crc32: crc }: { number: number; crc32: string }) => [number, crc]),
      pieces.map((piece, at) => [at + 1, crcOf(piece)]),
    );
    for (const wrong of [{ crc32: crcOf(Buffer.from('x')) }, { size: 1 }])
      assertProblem(
        await user.call(`${upload}/complete`, { json: { parts: 3, ...wrong } }),
        400,
        'invalid_request',
      );
    assert.deepEqual((await user.call(`/api/buckets/${name}/files`)).body, []);
    const json = { parts: 3, size: bytes.length, crc32: crcOf(bytes) };
    const done = await user.call(`${upload}/complete`, { json });
    assert.equal(done.status, 200, JSON.stringify(done.body));
    assert.deepEqual((await user.call(`${upload}/complete`, { json })).body, done.body);
    const content = await user.fetch(`/api/storage/${done.body.object_id}/download`);
    assert.equal(content.headers.get('content-type'), 'video/mp4');
    assert.ok(Buffer.from(await content.arrayBuffer()).equals(bytes), name);
    assert.deepEqual((await user.call(uploads)).body, []);
  }
});

test('a part that is too small, a condition, and what is another’s are refused', async () => {
  const uploads = await bucketOf('refusing');
  const upload = await begin(uploads, 'a');
  await put(upload, 1, randomBytes(1000));
  await put(upload, 2, randomBytes(1000));
  const small = await user.call(`${upload}/complete`, { json: { parts: 2 } });
  assertProblem(small, 400, 'invalid_request');
  assert.match(small.body.detail, /part 1 has less than/);
  await user.upload('refusing', 'a', 'there');
  const headers = { 'if-none-match': '*' };
  assertProblem(
    await user.call(`${upload}/complete`, { json: { parts: 1 }, headers }),
    412,
    'precondition_failed',
  );
  for (const number of [0, 10_001, 'x'])
    assertProblem(await put(upload, number, randomBytes(1)), 400, 'invalid_request');
  const other = new Client(cloud.api, (await new Client(cloud.api).register()).api_key);
  for (const path of [`${upload}/parts`, uploads])
    assertProblem(await other.call(path), 404, 'bucket_not_found');
  await other.call('/api/buckets', { json: { name: 'of-the-other' } });
  const there = upload.replace('refusing', 'of-the-other');
  assertProblem(await other.call(`${there}/parts`), 404, 'upload_not_found');
  assertProblem(await other.call(`${there}/complete`, { json: { parts: 1 } }), 404, 'upload_not_found');
  assertProblem(await user.call(uploads, { json: { name: '' } }), 400, 'invalid_object_name');
  assert.equal((await user.call(upload, { method: 'DELETE' })).status, 200);
  assertProblem(await put(upload, 1, randomBytes(1)), 404, 'upload_not_found');
});

test('an upload goes on after the cloud was killed', async () => {
  const uploads = await bucketOf('killed');
  const upload = await begin(uploads, 'a.bin');
  const bytes = randomBytes(PART + 10);
  await put(upload, 1, bytes.subarray(0, PART));
  await cloud.crash();
  await cloud.start();
  user = new Client(cloud.api, user.key);
  assert.deepEqual(
    (await user.call(`${upload}/parts`)).body.map(({ number }: { number: number }) => number),
    [1],
  );
  await put(upload, 2, bytes.subarray(PART));
  const json = { parts: 2, crc32: crcOf(bytes) };
  assert.equal((await user.call(`${upload}/complete`, { json })).status, 200);
});
