/** kill -9 while parts are uploaded and uploads completed. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Account, Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import {
  completion,
  type KeyPair,
  metadataOf,
  newS3,
  newUpload,
  ROW_BYTES,
  S3Client,
  textsOf,
} from './s3-kit.ts';

const PART = Buffer.alloc(300_000, 'part ');
let cloud: CloudProcess;
let account: Account;
let pair: KeyPair;
before(async () => {
  cloud = await CloudProcess.start();
  account = await new Client(cloud.api).register();
  const s3 = await newS3(cloud.data, new Client(cloud.api, account.api_key));
  await s3.ok('PUT', '/crashes');
  pair = s3.pair;
});
after(() => cloud.stop());

/** ETags of acknowledged parts, by path and upload id. */
const parts = new Map<string, string[]>();
const completed = new Set<string>();

/** Uploads parts, and completes every other upload, until the cloud is killed. */
async function work(s3: S3Client, name: string): Promise<void> {
  for (let turn = 0; ; turn++) {
    const path = `/crashes/${name}-${turn}`;
    const id = await newUpload(s3, path);
    const etags: string[] = [];
    parts.set(`${path} ${id}`, etags);
    const { headers } = await s3.ok('PUT', path, { query: `partNumber=1&uploadId=${id}`, body: PART });
    etags.push(headers.etag ?? '');
    if (turn % 2 === 1) continue;
    const body = completion([{ number: 1, etag: headers.etag }]);
    await s3.ok('POST', path, { query: `uploadId=${id}`, body });
    completed.add(path);
  }
}

const charged = async () => {
  const { body } = await new Client(cloud.api, account.api_key).call('/api/billing/quotas');
  return body.quotas.storage_bytes.used;
};
const objectsOf = async (s3: S3Client) =>
  textsOf((await s3.ok('GET', '/crashes')).text, 'Key').map((key) => `/crashes/${key}`);

/** Names of started uploads, whether their client received the answer or not. */
const openUploads = async (s3: S3Client) =>
  textsOf((await s3.ok('GET', '/crashes', { query: 'uploads' })).text, 'Key');

async function assertConsistent(s3: S3Client): Promise<void> {
  const objects = await objectsOf(s3);
  let kept = 0;
  for (const path of completed) assert.ok(objects.includes(path), `${path} was acknowledged`);
  for (const path of objects) {
    assert.ok((await s3.ok('GET', path)).bytes.equals(PART));
    kept += PART.length + metadataOf(path.slice('/crashes/'.length));
  }
  for (const name of await openUploads(s3)) kept += metadataOf(name);
  for (const [named, etags] of parts) {
    const [path = '', id = ''] = named.split(' ');
    if (objects.includes(path)) continue;
    const { text } = await s3.ok('GET', path, { query: `uploadId=${id}` });
    for (const etag of etags) assert.ok(textsOf(text, 'ETag').includes(etag), `${named} lost a part`);
    kept += textsOf(text, 'Size').reduce((sum, size) => sum + Number(size) + ROW_BYTES, 0);
  }
  await eventually('the bytes charged are those that are there', async () => (await charged()) === kept);
}

test('loses nothing that was acknowledged, and charges for nothing else', async () => {
  for (let round = 0; round < 3; round++) {
    const s3 = new S3Client(cloud.data, pair);
    const lanes = Array.from({ length: 4 }, (_, lane) => work(s3, `${round}-${lane}`).catch(() => {}));
    const enough = completed.size + 3 + round;
    await eventually('some uploads are complete', () => completed.size >= enough);
    await sleep(7 * round);
    await cloud.crash();
    await Promise.race([Promise.all(lanes), sleep(2000)]);
    await cloud.start();
    await assertConsistent(new S3Client(cloud.data, pair));
  }
  const s3 = new S3Client(cloud.data, pair);
  for (const path of await objectsOf(s3)) await s3.ok('DELETE', path);
  const open = (await s3.ok('GET', '/crashes', { query: 'uploads' })).text;
  for (const [at, key] of textsOf(open, 'Key').entries()) {
    await s3.ok('DELETE', `/crashes/${key}`, { query: `uploadId=${textsOf(open, 'UploadId')[at]}` });
  }
  assert.equal(await charged(), 0);
  await s3.ok('DELETE', '/crashes');
});
