import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { bodyOf, newBucket } from './storage-kit.ts';

let cloud: CloudProcess;
let user: Client;
before(async () => {
  cloud = await CloudProcess.start();
  user = await new Client(cloud.api).newUser();
});
after(() => cloud.stop());

/** The files of the data directory that hold these bytes, in any folder. */
function filesWith(marker: string): string[] {
  return readdirSync(cloud.dataDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => readFileSync(path).includes(marker));
}

/** `size` random bytes, with the marker at the start, at the end and between. */
function contentWith(marker: string, size: number): Buffer {
  const content = randomBytes(size);
  for (let at = 0; at + marker.length <= size; at += Math.max(1000, size / 20) | 0) content.write(marker, at);
  content.write(marker, size - marker.length);
  return content;
}

const newMarker = () => `marker-${randomBytes(16).toString('hex')}`;
const SIZES = [200, 10_000, 16_384, 16_385, 1_000_000];

test('without encryption the search finds the bytes, so it would find them with it', async () => {
  const bucket = await newBucket(user);
  for (const size of SIZES) {
    const marker = newMarker();
    bodyOf(await user.upload(bucket, `of-${size}`, contentWith(marker, size)));
    assert.notDeepEqual(filesWith(marker), [], `${size} bytes`);
  }
});

test('an encrypted bucket leaves no plaintext on the disk, and the bytes come back', async () => {
  const bucket = await newBucket(user, { encryption: true });
  for (const size of SIZES) {
    const marker = newMarker();
    const content = contentWith(marker, size);
    const { object_id, size: said } = bodyOf(await user.upload(bucket, `of-${size}`, content));
    assert.equal(said, size, 'sizes are of the plaintext');
    assert.ok((await user.download(object_id)).equals(content), `${size} bytes`);
    assert.deepEqual(filesWith(marker), [], `${size} bytes`);
  }
});

test('an upload refused at its end leaves no plaintext either', async () => {
  const bucket = await newBucket(user, { encryption: true });
  const marker = newMarker();
  const { status } = await user.upload(bucket, '\u0001', contentWith(marker, 500_000));
  assert.equal(status, 400);
  assert.deepEqual(filesWith(marker), []);
});

test('encryption turned on or off counts for what comes then, and all stays readable', async () => {
  const bucket = await newBucket(user, { versioning: true });
  const set = async (encryption: boolean) =>
    bodyOf(await user.call(`/api/buckets/${bucket}`, { method: 'PATCH', json: { encryption } }));
  const kept: { query: string; content: Buffer }[] = [];
  let id = '';
  for (const encryption of [false, true, false]) {
    await set(encryption);
    for (const size of [500, 300_000]) {
      const marker = newMarker();
      const content = contentWith(marker, size);
      const { object_id, version_id } = bodyOf(await user.upload(bucket, 'mixed', content));
      id = object_id;
      kept.push({ query: `?version_id=${version_id}`, content });
      assert.equal(filesWith(marker).length === 0, encryption, `${encryption}, ${size} bytes`);
    }
  }
  for (const { query, content } of kept) assert.ok((await user.download(id, query)).equals(content));
});

test('the same bytes twice are two ciphertexts', async () => {
  const bucket = await newBucket(user, { encryption: true });
  const content = randomBytes(300_000);
  const files = () =>
    readdirSync(cloud.dataDir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
  const known = new Set(files());
  bodyOf(await user.upload(bucket, 'one', content));
  bodyOf(await user.upload(bucket, 'two', content));
  const fresh = files().filter((path) => !known.has(path) && readFileSync(path).length >= content.length);
  assert.equal(fresh.length, 2);
  const [one, two] = fresh.map((path) => readFileSync(path)) as [Buffer, Buffer];
  const window = one.subarray(150_000, 150_032);
  assert.ok(!two.includes(window));
});

test('encrypted objects are there after a crash', async () => {
  const bucket = await newBucket(user, { encryption: true });
  const contents = [randomBytes(700), randomBytes(700_000)];
  const ids: string[] = [];
  for (const [at, content] of contents.entries()) {
    ids.push(bodyOf(await user.upload(bucket, `crash-${at}`, content)).object_id);
  }
  await cloud.crash();
  await cloud.start();
  user = new Client(cloud.api, user.key);
  for (const [at, id] of ids.entries())
    assert.ok((await user.download(id)).equals(contents[at] ?? Buffer.of()));
});
