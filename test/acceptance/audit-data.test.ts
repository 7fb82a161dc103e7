/** Entries about objects: only if the bucket's setting asks for them, by REST, S3 and signed link. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { newS3 } from './s3-kit.ts';

const cloud = await CloudProcess.start({ env: { CLOUDLET_RATE_REQUESTS: '100000' } });
after(() => cloud.stop());
const anyone = await CheckedClient.open(cloud.api);

interface Row {
  readonly action: string;
  readonly target: string;
  readonly actor: string;
  readonly via: string;
  readonly times: number;
}

const ACTIONS = /object|download|part|upload/i;

async function owner(bucket: string, logged?: 'writes' | 'all') {
  const account = await anyone.register();
  const client = anyone.as(account.api_key);
  await client.expect(201, '/api/buckets', { json: { name: bucket } });
  const set = (value: string | null) =>
    client.expect(200, `/api/buckets/${bucket}/settings`, { method: 'PATCH', json: { data_events: value } });
  if (logged !== undefined) assert.equal((await set(logged)).data_events, logged);
  /** Entries about objects, oldest first, once the pending ones are stored. */
  const rows = async (): Promise<Row[]> => {
    await sleep(1200);
    const all: Row[] = await client.expect(200, '/api/audit?limit=1000');
    return all.filter(({ action }) => ACTIONS.test(action)).reverse();
  };
  return { ...account, client, set, rows };
}

const bytesOf = async (url: string) => (await fetch(url)).text();

async function useByRest(client: CheckedClient, bucket: string): Promise<string> {
  const { body } = await client.upload(bucket, 'a.txt', 'secret bytes');
  await client.upload(bucket, 'b.txt', 'more');
  for (let i = 0; i < 2; i++) await client.download(body.object_id);
  const link = await client.expect(200, `/api/storage/${body.object_id}/cdn-url`);
  assert.equal(await bytesOf(link.cdn_url), 'secret bytes');
  await client.expect(200, `/api/storage/${body.object_id}`, { method: 'DELETE' });
  return body.object_id;
}

test('without the setting no read or write of an object has an entry', async () => {
  const { client, rows } = await owner('not-logged');
  await useByRest(client, 'not-logged');
  const s3 = await newS3(cloud.data, client);
  await s3.ok('PUT', '/not-logged/c', { body: 'x' });
  await s3.ok('GET', '/not-logged/c');
  assert.deepEqual(await rows(), []);
});

test('writes are logged, and reads only where they are wanted too', async () => {
  const { client, username, set, rows } = await owner('some-logged', 'writes');
  await useByRest(client, 'some-logged');
  const writes = [
    ['uploadObject', 'some-logged/a.txt'],
    ['uploadObject', 'some-logged/b.txt'],
    ['deleteObject', 'some-logged/a.txt'],
  ];
  assert.deepEqual(
    (await rows()).map(({ action, target }) => [action, target]),
    writes,
  );
  await set('all');
  await useByRest(client, 'some-logged');
  const all = (await rows()).slice(writes.length);
  const count = (wanted: string) => all.filter(({ action }) => action === wanted).length;
  assert.deepEqual([count('downloadObject'), count('cdnDownload'), count('uploadObject')], [2, 1, 2]);
  const byLink = all.find(({ action }) => action === 'cdnDownload');
  assert.deepEqual([byLink?.actor, byLink?.via, byLink?.target], ['', 'nobody', 'some-logged/a.txt']);
  assert.ok(all.filter(({ via }) => via === 'key').every(({ actor }) => actor === username));
  const before = (await rows()).length;
  await set(null);
  await useByRest(client, 'some-logged');
  assert.equal((await rows()).length, before, 'the setting was taken back');
});

test('what is read from memory is logged from the setting on', async () => {
  const { client, set, rows } = await owner('hot-logged');
  const { body } = await client.upload('hot-logged', 'a.txt', 'small');
  for (let i = 0; i < 3; i++) await client.download(body.object_id);
  await set('all');
  await client.download(body.object_id);
  assert.deepEqual(
    (await rows()).map(({ action }) => action),
    ['downloadObject'],
  );
});

test('by S3: each name of a deletion, copies, parts, forms of reading, and other accounts', async () => {
  const { client, rows, username } = await owner('s3-logged', 'all');
  const s3 = await newS3(cloud.data, client);
  await s3.ok('PUT', '/s3-logged/one', { body: '1' });
  await s3.ok('PUT', '/s3-logged/two', { headers: { 'x-amz-copy-source': '/s3-logged/one' } });
  await s3.ok('GET', '/s3-logged/one');
  await s3.ok('HEAD', '/s3-logged/one');
  const keys = ['one', 'two', 'three'].map((key) => `<Object><Key>${key}</Key></Object>`).join('');
  await s3.ok('POST', '/s3-logged', { query: 'delete', body: `<Delete>${keys}</Delete>` });
  await s3.ok('PUT', '/s3-logged/a-name', { body: 'x' });
  await s3.ok('DELETE', '/s3-logged/a-name');
  const found = (await rows()).map(({ action, target }) => `${action} ${target}`).sort();
  const wanted = [
    's3PutObject s3-logged/one',
    's3CopyObject s3-logged/one',
    's3CopyObject s3-logged/two',
    's3GetObject s3-logged/one',
    's3DeleteObjects s3-logged/one',
    's3DeleteObjects s3-logged/two',
    's3PutObject s3-logged/a-name',
    's3DeleteObject s3-logged/a-name',
  ];
  assert.deepEqual(found, wanted.sort());
  const other = await anyone.register();
  const { canonical_id } = await anyone.as(other.api_key).expect(200, '/api/account');
  const policy = {
    Version: '2012-10-17',
    Statement: [
      {
        Effect: 'Allow',
        Principal: { CanonicalUser: canonical_id },
        Action: ['s3:PutObject', 's3:GetObject'],
        Resource: 'arn:aws:s3:::s3-logged/*',
      },
    ],
  };
  const json = { policy };
  await client.expect(200, '/api/buckets/s3-logged/settings', { method: 'PATCH', json });
  const theirs = await newS3(cloud.data, anyone.as(other.api_key));
  await theirs.ok('PUT', '/s3-logged/by-another', { body: 'x' });
  const last = (await rows()).at(-1);
  assert.deepEqual([last?.actor, last?.target], [other.username, 's3-logged/by-another']);
  assert.notEqual(last?.actor, username);
});

test('names, and nothing of what is in the objects, are in the log; a flood is counted', async () => {
  const { client, rows } = await owner('flooded', 'all');
  const { body } = await client.upload('flooded', 'a.txt', 'kanarienvogel bytes', {
    metadata: JSON.stringify({ note: 'kanarienvogel note' }),
  });
  for (let i = 0; i < 1200; i += 40) {
    await Promise.all(Array.from({ length: 40 }, () => client.download(body.object_id)));
  }
  const found = await rows();
  assert.ok(!JSON.stringify(found).includes('kanarienvogel'));
  const reads = found.filter(({ action }) => action === 'downloadObject').length;
  // A burst of 1,000, and one a second.
  assert.ok(reads > 500 && reads < 1200, `${reads} entries`);
  await client.expect(201, '/api/buckets', { json: { name: 'still-logged' } });
  const others: Row[] = await client.expect(200, '/api/audit?action=createBucket');
  assert.ok(others.some(({ target }) => target === 'still-logged'));
});
