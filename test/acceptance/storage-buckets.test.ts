import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { Client } from '../harness/client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';
import { assertProblem, bodyOf, newBucket, TIME } from './storage-kit.ts';

let cloud: CloudProcess;
let user: Client;
before(async () => {
  cloud = await sharedCloud();
  user = await new Client(cloud.api).newUser();
});

const create = (json: unknown) => user.call('/api/buckets', { json });

test('a new bucket says all of itself', async () => {
  const asked = { name: 'all-of-it', region: 'eu-west-3', versioning: true, encryption: true };
  const { status, body, headers } = await create(asked);
  assert.equal(status, 201);
  const { created_at, ...rest } = body;
  assert.match(created_at, TIME);
  assert.deepEqual(rest, {
    ...asked,
    object_count: 0,
    size: 0,
    size_formatted: '0.00 B',
    version_count: 0,
    total_size: 0,
    metadata_size: 0,
    object_lock: false,
  });
  assert.match(headers.get('content-type') ?? '', /^application\/json/);
  assert.ok(headers.get('x-request-id'));
  for (const name of ['ratelimit', 'ratelimit-policy', 'x-ratelimit-limit', 'x-ratelimit-remaining']) {
    assert.ok(headers.get(name), name);
  }
  assert.deepEqual(bodyOf(await user.call('/api/buckets/all-of-it')), body);
});

test('settings left out have their defaults', async () => {
  const { body } = await create({ name: 'defaults' });
  assert.deepEqual([body.region, body.versioning, body.encryption], ['us-east-1', false, false]);
});

const a = (count: number) => 'a'.repeat(count);
const ACCEPTED = [
  a(3),
  a(63),
  '000',
  '9-a',
  'a..b',
  'a.-b',
  'a-.b',
  'a--b',
  '1.2.3.4',
  '192.168.0.1',
  'xn--a',
  'constructor',
  `a${'.'.repeat(61)}b`,
];
for (const name of ACCEPTED) {
  test(`the bucket name ${name} is accepted`, async () => {
    const { status, body } = await create({ name });
    assert.equal(status, 201, JSON.stringify(body));
    assert.equal(bodyOf(await user.call(`/api/buckets/${name}`)).name, name);
  });
}

const REFUSED = [
  '',
  'a',
  'ab',
  a(64),
  a(10_000),
  'Abc',
  'aBc',
  'abC',
  'ABC',
  'a_b',
  'a b',
  ' abc',
  'abc ',
  'abc\n',
  '\nabc',
  'a\nb',
  'abc\r',
  'a\tb',
  'abc\0',
  'a\0b',
  'café',
  'abc\u00e9',
  'ａｂｃ',
  '१२३',
  'abc😀',
  'ſab',
  '.abc',
  'abc.',
  '-abc',
  'abc-',
  '...',
  '---',
  'a/b',
  '../a',
  'a%2eb',
  'a*b',
  'a:b',
];
for (const name of REFUSED) {
  test(`the bucket name ${JSON.stringify(name.slice(0, 70))} is refused`, async () => {
    const answer = await create({ name });
    assertProblem(answer, 400, 'invalid_bucket_name');
    assert.equal(answer.body.errors[0].field, 'name');
  });
}

test('all that is wrong is named at once', async () => {
  const answer = await create({ name: 'Bad', region: 'No Region', versioning: 'yes' });
  assertProblem(answer, 400, 'invalid_bucket_name');
  assert.deepEqual(
    answer.body.errors.map(({ field }: { field: string }) => field),
    ['name', 'region', 'versioning'],
  );
});

const WRONG_TYPES = [
  { name: 5 },
  { name: null },
  { name: ['abc'] },
  { name: { a: 1 } },
  { name: true },
  { name: 'types', versioning: 'true' },
  { name: 'types', versioning: 1 },
  { name: 'types', versioning: null },
  { name: 'types', encryption: 'false' },
  { name: 'types', encryption: 0 },
  { name: 'types', encryption: [] },
  { name: 'types', region: 5 },
  { name: 'types', region: null },
  { name: 'types', region: ['us-east-1'] },
  {},
  [],
  'types',
  null,
  5,
];
for (const json of WRONG_TYPES) {
  test(`a bucket asked for as ${JSON.stringify(json)} is refused`, async () => {
    assertProblem(await create(json), 400, 'invalid_request');
    assert.equal((await user.call('/api/buckets/types')).status, 404);
  });
}

test('all wrong members are named at once', async () => {
  const { body } = await create({ name: 5, region: 6, versioning: 'yes', encryption: 'no' });
  const fields = body.errors.map((error: { field: string }) => error.field);
  assert.deepEqual(fields.sort(), ['encryption', 'name', 'region', 'versioning']);
});

const BAD_JSON: Record<string, string> = {
  truncated: '{"name":"json-test"',
  empty: '',
  'trailing text': '{"name":"json-test"} x',
  'not JSON': 'name=json-test',
  __proto__key: '{"name":"json-test","__proto__":{"versioning":true}}',
};
for (const [kind, body] of Object.entries(BAD_JSON)) {
  test(`a body with ${kind} creates nothing`, async () => {
    const answer = await user.call('/api/buckets', { headers: { 'content-type': 'application/json' }, body });
    assert.equal(answer.status, 400);
    assert.match(answer.body.code, /^invalid_(json|request)$/);
    assert.equal((await user.call('/api/buckets/json-test')).status, 404);
  });
}

test('a body that is not JSON by its type is 415', async () => {
  const answer = await user.call('/api/buckets', { headers: { 'content-type': 'text/plain' }, body: '{}' });
  assertProblem(answer, 415, 'unsupported_media_type');
});

test('unknown members are ignored and not kept', async () => {
  const { status, body } = await create({ name: 'unknown-members', colour: 'red', object_count: 7, id: 1 });
  assert.equal(status, 201);
  assert.equal(body.colour, undefined);
  assert.equal(body.object_count, 0);
  const kept = bodyOf(await user.call('/api/buckets/unknown-members'));
  assert.deepEqual(kept, body);
});

for (const region of ['a', '-', '0', 'mars-north-7', 'a'.repeat(32)]) {
  test(`the region ${region} is accepted`, async () => {
    const name = await newBucket(user, { region });
    assert.equal(bodyOf(await user.call(`/api/buckets/${name}`)).region, region);
  });
}

for (const region of ['', 'a'.repeat(33), 'US-EAST-1', 'us_east', 'us east', 'us.east', 'é', 'us-east-1\n']) {
  test(`the region ${JSON.stringify(region)} is refused`, async () => {
    assertProblem(await create({ name: 'regions', region }), 400, 'invalid_request');
  });
}

test('names are unique per account, and only there', async () => {
  assert.equal((await create({ name: 'shared-name', region: 'here' })).status, 201);
  assertProblem(await create({ name: 'shared-name', region: 'there' }), 409, 'bucket_exists');
  assert.equal(bodyOf(await user.call('/api/buckets/shared-name')).region, 'here');
  const other = await user.newUser();
  assert.equal((await other.call('/api/buckets', { json: { name: 'shared-name' } })).status, 201);
});

test('fifty creations at once of one name make one bucket', async () => {
  const answers = await Promise.all(Array.from({ length: 50 }, () => create({ name: 'contended' })));
  const statuses = answers.map(({ status }) => status).sort();
  assert.deepEqual(statuses, [201, ...Array(49).fill(409)]);
});

test('the list is a bare array, oldest first, in pages when asked', async () => {
  const lister = await user.newUser();
  assert.deepEqual(bodyOf(await lister.call('/api/buckets')), []);
  const names = ['zebra', 'mouse', 'ape', 'bee', 'ant'];
  for (const name of names) await lister.call('/api/buckets', { json: { name } });
  const all = bodyOf(await lister.call('/api/buckets'));
  assert.deepEqual(
    all.map((bucket: { name: string }) => bucket.name),
    names,
  );
  assert.deepEqual(all[0], bodyOf(await lister.call('/api/buckets/zebra')));
  const walked: string[] = [];
  let path: string | undefined = '/api/buckets?limit=2';
  while (path !== undefined) {
    const { headers, body } = await lister.call(path);
    assert.ok(body.length <= 2);
    walked.push(...body.map((bucket: { name: string }) => bucket.name));
    const next: string | undefined = /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1];
    path = next && new URL(next, cloud.api).href.slice(cloud.api.length);
  }
  assert.deepEqual(walked, names);
});

for (const query of [
  'limit=0',
  'limit=1001',
  'limit=abc',
  'limit=',
  'limit=-1',
  'limit=1.5',
  'limit=1&limit=2',
]) {
  test(`buckets?${query} is refused`, async () => {
    assertProblem(await user.call(`/api/buckets?${query}`), 400, 'invalid_request');
  });
}

test('a cursor of our own making is refused', async () => {
  for (const cursor of ['abc', '1.5', '{}']) {
    const { status, body } = await user.call(`/api/buckets?cursor=${cursor}`);
    assert.equal(status, 400, `${cursor}: ${JSON.stringify(body)}`);
  }
});

test('PATCH changes what it names, strictly', async () => {
  const name = await newBucket(user, { encryption: true, region: 'eu-1' });
  const path = `/api/buckets/${name}`;
  const patch = (json: unknown) => user.call(path, { method: 'PATCH', json });
  const changed = bodyOf(await patch({ versioning: true }));
  assert.deepEqual([changed.name, changed.region, changed.versioning], [name, 'eu-1', true]);
  assert.deepEqual([changed.encryption, changed.size], [true, 0]);
  assert.deepEqual(bodyOf(await user.call(path)), changed);
  for (const json of [{ versioning: 'false' }, { encryption: 0 }, { versioning: null }, { size: 9 }, []]) {
    assertProblem(await patch(json), 400, 'invalid_request');
  }
  assert.deepEqual(bodyOf(await user.call(path)), changed);
  assert.equal(bodyOf(await patch({ encryption: false })).encryption, false);
});

test('DELETE removes an empty bucket and refuses others', async () => {
  const name = await newBucket(user);
  const path = `/api/buckets/${name}`;
  const { object_id } = bodyOf(await user.upload(name, 'keeps.txt', 'x'));
  assertProblem(await user.call(path, { method: 'DELETE' }), 409, 'bucket_not_empty');
  assertProblem(await user.call(`${path}?force=false`, { method: 'DELETE' }), 409, 'bucket_not_empty');
  assert.equal((await user.download(object_id)).toString(), 'x');
  bodyOf(await user.call(`/api/storage/${object_id}`, { method: 'DELETE' }));
  assert.equal(bodyOf(await user.call(path, { method: 'DELETE' })).name, name);
  assertProblem(await user.call(path), 404, 'bucket_not_found');
  assertProblem(await user.call(path, { method: 'DELETE' }), 404, 'bucket_not_found');
  assert.equal((await create({ name })).status, 201);
});

test('old versions and markers alone keep a bucket; force takes them too', async () => {
  const name = await newBucket(user, { versioning: true });
  const path = `/api/buckets/${name}`;
  const { object_id } = bodyOf(await user.upload(name, 'a', '1'));
  await user.upload(name, 'b', '2');
  bodyOf(await user.call(`/api/storage/${object_id}`, { method: 'DELETE' }));
  assertProblem(await user.call(path, { method: 'DELETE' }), 409, 'bucket_not_empty');
  bodyOf(await user.call(`${path}?force=true`, { method: 'DELETE' }));
  assertProblem(await user.call(`/api/storage/${object_id}`), 404, 'object_not_found');
  assert.equal((await create({ name })).status, 201);
  assert.deepEqual(bodyOf(await user.call(`${path}/files?include_versions=true`)), []);
});

test('force is a boolean', async () => {
  const name = await newBucket(user);
  for (const force of ['yes', '1', 'TRUE', '']) {
    const answer = await user.call(`/api/buckets/${name}?force=${force}`, { method: 'DELETE' });
    assertProblem(answer, 400, 'invalid_request');
  }
  bodyOf(await user.call(`/api/buckets/${name}`));
});

test('a bucket that is not there is 404 for every call', async () => {
  const form = () => user.upload('absent', 'a', 'b');
  for (const call of [
    () => user.call('/api/buckets/absent'),
    () => user.call('/api/buckets/absent', { method: 'PATCH', json: {} }),
    () => user.call('/api/buckets/absent', { method: 'DELETE' }),
    () => user.call('/api/buckets/absent?force=true', { method: 'DELETE' }),
    () => user.call('/api/buckets/absent/files'),
    () => user.call('/api/buckets/absent/files?limit=5'),
    () => user.call('/api/buckets/absent/points'),
    () => user.call('/api/buckets/absent/uploads'),
    form,
  ]) {
    assertProblem(await call(), 404, 'bucket_not_found');
  }
});

test('names that could never be a bucket are simply not found', async () => {
  for (const name of ['..%2f..', 'A_B', '%F0%9F%98%80', 'a'.repeat(300), '__proto__']) {
    assertProblem(await user.call(`/api/buckets/${name}`), 404, 'bucket_not_found');
  }
  assertProblem(await user.call('/api/buckets/%zz'), 400, 'bad_http');
  assertProblem(await user.call(`/api/buckets/${'a'.repeat(5000)}`), 404, 'not_found');
});

test('other methods are 405 and say which are allowed', async () => {
  const answer = await user.call('/api/buckets', { method: 'PUT', json: {} });
  assertProblem(answer, 405, 'method_not_allowed');
  assert.deepEqual((answer.headers.get('allow') ?? '').split(', ').sort(), ['GET', 'HEAD', 'POST']);
});

test('settings that two change at once are both kept', async () => {
  const bucket = await newBucket(user);
  for (let round = 0; round < 10; round++) {
    const patch = (json: unknown) => user.call(`/api/buckets/${bucket}`, { method: 'PATCH', json });
    const on = round % 2 === 0;
    const answers = await Promise.all([patch({ versioning: on }), patch({ encryption: on })]);
    for (const { status } of answers) assert.equal(status, 200);
    const { versioning, encryption } = bodyOf(await user.call(`/api/buckets/${bucket}`));
    assert.deepEqual([versioning, encryption], [on, on]);
  }
});

test('a bucket that is deleted by force goes although others upload into it', async () => {
  const bucket = await newBucket(user);
  let isGone = false;
  const uploader = async (at: number) => {
    for (let i = 0; !isGone; i++) {
      const { status, body } = await user.upload(bucket, `${at}/${i}`, 'x'.repeat(20_000));
      if (status !== 200) assert.deepEqual([status, body.code], [404, 'bucket_not_found']);
    }
  };
  const uploads = [1, 2, 3, 4].map(uploader);
  const { status } = await user.call(`/api/buckets/${bucket}?force=true`, { method: 'DELETE' });
  isGone = true;
  await Promise.all(uploads);
  assert.equal(status, 200);
  await assertProblem(await user.call(`/api/buckets/${bucket}`), 404, 'bucket_not_found');
});
