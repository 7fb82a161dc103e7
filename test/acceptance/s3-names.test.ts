/** Names of buckets: their owners, how others address them, and their release. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import {
  anonymously,
  assertRefused,
  newS3,
  policy,
  type S3Client,
  setPolicy,
  statement,
  textsOf,
} from './s3-kit.ts';

let cloud: CloudProcess;
let owner: Client;
let s3: S3Client;
let other: Client;
let stranger: S3Client;
let mine: { id: number; canonical_id: string };
let theirs: { id: number; canonical_id: string };
before(async () => {
  cloud = await CloudProcess.start({ env: { CLOUDLET_CLOSED_ACCOUNT_DAYS: '0' } });
  owner = await new Client(cloud.api).newUser();
  other = await new Client(cloud.api).newUser();
  [s3, stranger] = [await newS3(cloud.data, owner), await newS3(cloud.data, other)];
  [mine, theirs] = [(await owner.call('/api/account')).body, (await other.call('/api/account')).body];
});
after(() => cloud.stop());

const get = (path: string) => anonymously(cloud.data, 'GET', path);
const openRead = (bucket: string) => policy(statement(bucket, { Action: 's3:GetObject' }));

test("a name that is held is the first one's for all others, until the bucket is removed", async () => {
  await s3.ok('PUT', '/held');
  await s3.ok('PUT', '/held/a', { body: 'the first' });
  await stranger.refused(409, 'BucketAlreadyExists', ['PUT', '/held']);
  assert.equal((await s3.ok('PUT', '/held')).status, 200);
  assert.equal((await other.call('/api/buckets', { json: { name: 'held' } })).status, 201);
  // Their own bucket has priority for them; for all others the name is still the first one's.
  assert.deepEqual(textsOf((await stranger.ok('GET', '/held')).text, 'Key'), []);
  await setPolicy(s3, 'held', openRead('held'));
  assert.equal((await get('/held/a')).text, 'the first');
  const expect = (id: string) => ({ headers: { 'x-amz-expected-bucket-owner': id } });
  await stranger.refused(403, 'AccessDenied', ['GET', '/held', expect(mine.canonical_id)]);
  await stranger.ok('GET', '/held', expect(theirs.canonical_id));
  await stranger.ok('GET', '/held', expect(String(theirs.id).padStart(12, '0')));
  const from = { 'x-amz-source-expected-bucket-owner': theirs.canonical_id };
  const headers = { 'x-amz-copy-source': '/held/a', ...from };
  await s3.refused(403, 'AccessDenied', ['PUT', '/held/b', { headers }]);
  await stranger.ok('DELETE', '/held');
  await s3.ok('DELETE', '/held/a');
  await s3.ok('DELETE', '/held');
  // The name stays reserved for its previous owner.
  await stranger.refused(409, 'BucketAlreadyExists', ['PUT', '/held']);
  await s3.ok('PUT', '/held');
});

test('a name that was given up leads nobody to a stranger, and comes back to who had it', async () => {
  const json = { name: 'given-up' };
  await s3.ok('PUT', '/given-up');
  await s3.ok('PUT', '/given-up/a', { body: 'x' });
  assert.equal((await owner.call('/api/buckets/given-up?force=true', { method: 'DELETE' })).status, 200);
  // Another account gets a bucket with that name, but not the requests that others send to the name.
  assert.equal((await other.call('/api/buckets', { json })).status, 201);
  const everyone = statement('given-up', { Action: ['s3:PutObject', 's3:GetObject', 's3:ListBucket'] });
  await setPolicy(stranger, 'given-up', policy(everyone));
  await s3.refused(404, 'NoSuchBucket', ['PUT', '/given-up/secret', { body: 'for the former bucket' }]);
  assertRefused(await get('/given-up/secret'), 404, 'NoSuchBucket');
  assert.deepEqual(textsOf((await stranger.ok('GET', '/given-up')).text, 'Key'), []);
  // Taken back immediately by its previous owner, over either protocol; then it leads there again.
  assert.equal((await owner.call('/api/buckets', { json })).status, 201);
  await s3.ok('PUT', '/given-up/a', { body: 'back' });
  await setPolicy(s3, 'given-up', openRead('given-up'));
  assert.equal((await get('/given-up/a')).text, 'back');
  await stranger.ok('DELETE', '/given-up');
  await stranger.refused(409, 'BucketAlreadyExists', ['PUT', '/given-up']);
  // A bucket whose name others never used reserves nothing.
  await s3.ok('DELETE', '/given-up/a');
  await s3.ok('DELETE', '/given-up');
  await stranger.refused(409, 'BucketAlreadyExists', ['PUT', '/given-up']);
  await s3.ok('PUT', '/given-up');
});

test('an account before the name chooses its bucket, and nobody learns of buckets out of reach', async () => {
  await s3.ok('PUT', '/both');
  await s3.ok('PUT', '/both/a', { body: 'of the first' });
  await setPolicy(s3, 'both', openRead('both'));
  await other.call('/api/buckets', { json: { name: 'both' } });
  await stranger.ok('PUT', '/both/a', { body: 'of the other' });
  assert.equal((await stranger.ok('GET', '/both/a')).text, 'of the other');
  for (const account of ['', mine.id, mine.canonical_id]) {
    assert.equal((await stranger.ok('GET', `/${account}:both/a`)).text, 'of the first');
    assert.equal((await get(`/${account}%3Aboth/a`)).text, 'of the first');
  }
  const headers = { 'x-amz-copy-source': `/${mine.id}:both/a` };
  await stranger.ok('PUT', '/both/copy', { headers });
  assert.equal((await stranger.ok('GET', `/${theirs.id}:both/copy`)).text, 'of the first');
  for (const path of [
    `/${theirs.id}:both/a`,
    `/${theirs.id}:not-there/a`,
    '/999999:both/a',
    '/name:both/a',
  ]) {
    await s3.refused(403, 'AccessDenied', ['GET', path]);
    assertRefused(await get(path), 403, 'AccessDenied');
  }
  await s3.refused(404, 'NoSuchBucket', ['GET', '/:not-there']);
  await s3.refused(400, 'InvalidBucketName', ['PUT', `/${mine.id}:made`]);
  await stranger.refused(403, 'AccessDenied', ['PUT', '/:both/b', { body: 'x' }]);
});

test('the name of a bucket whose account was closed rests, and leads to nobody', async () => {
  const account = await new Client(cloud.api).register();
  const user = new Client(cloud.api, account.api_key);
  const closing = await newS3(cloud.data, user);
  await closing.ok('PUT', '/of-the-closed');
  await closing.ok('PUT', '/of-the-closed/a', { body: 'x' });
  await setPolicy(closing, 'of-the-closed', openRead('of-the-closed'));
  assert.equal((await get('/of-the-closed/a')).text, 'x');
  await stranger.refused(409, 'BucketAlreadyExists', ['PUT', '/of-the-closed']);
  assert.equal((await user.call('/api/account', { method: 'DELETE' })).status, 200);
  assertRefused(await get('/of-the-closed/a'), 404, 'NoSuchBucket');
  await stranger.refused(409, 'BucketAlreadyExists', ['PUT', '/of-the-closed']);
  assert.equal((await other.call('/api/buckets', { json: { name: 'of-the-closed' } })).status, 201);
  await stranger.refused(404, 'NoSuchKey', ['GET', '/of-the-closed/a']);
  await s3.refused(404, 'NoSuchBucket', ['GET', '/of-the-closed/a']);
  await s3.refused(403, 'AccessDenied', ['GET', `/${account.id}:of-the-closed/a`]);
  assertRefused(await get('/of-the-closed/a'), 404, 'NoSuchBucket');
});
