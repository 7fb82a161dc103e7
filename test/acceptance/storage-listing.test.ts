import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { before, test } from 'node:test';
import { type Answer, Client } from '../harness/client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';
import { assertProblem, bodyOf, listOf, newBucket, TIME } from './storage-kit.ts';

let cloud: CloudProcess;
let user: Client;
before(async () => {
  // 2,500 uploads at once are more than the default limit of 2,000 in 10 seconds.
  cloud = await sharedCloud();
  user = await new Client(cloud.api).newUser();
});

const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** Uploads each name with itself as content, a few at a time. */
async function fill(bucket: string, names: readonly string[]): Promise<void> {
  const rest = names.values();
  const work = async () => {
    for (const name of rest) bodyOf(await user.upload(bucket, name, name));
  };
  await Promise.all(Array.from({ length: 16 }, work));
}

/** Follows the Link headers; every page except the last is full. */
async function walk(bucket: string, query: string, limit: number): Promise<Answer['body'][]> {
  const found: Answer['body'][] = [];
  let path: string | undefined = `/api/buckets/${bucket}/files?limit=${limit}${query}`;
  while (path !== undefined) {
    const answer = await user.call(path);
    const page = bodyOf(answer);
    const link = answer.headers.get('link');
    if (link === null) assert.ok(page.length <= limit);
    else assert.equal(page.length, limit);
    found.push(...page);
    const next: string | undefined = /^<([^>]+)>; rel="next"$/.exec(link ?? '')?.[1];
    path = next && new URL(next, cloud.api).href.slice(cloud.api.length);
  }
  return found;
}

test('an empty bucket is an empty array', async () => {
  const bucket = await newBucket(user);
  for (const query of ['', '?limit=1', '?include_versions=true', '?include_versions=true&limit=1000']) {
    const { body, headers } = await user.call(`/api/buckets/${bucket}/files${query}`);
    assert.deepEqual(body, []);
    assert.equal(headers.get('link'), null);
    assert.match(headers.get('content-type') ?? '', /^application\/json/);
  }
});

test('an entry has exactly the members of the contract', async () => {
  const bucket = await newBucket(user);
  const content = 'x'.repeat(1536);
  const metadata = { k: [1, 'two', null] };
  const { object_id, created_at } = bodyOf(
    await user.upload(bucket, 'one.txt', content, { metadata: JSON.stringify(metadata) }),
  );
  assert.match(created_at, TIME);
  assert.deepEqual(await listOf(user, bucket), [
    {
      id: object_id,
      name: 'one.txt',
      size: 1536,
      size_formatted: '1.50 KB',
      mime_type: 'text/plain',
      created_at,
      last_accessed: null,
      etag: createHash('md5').update(content).digest('hex'),
      storage_class: 'STANDARD',
      metadata,
    },
  ]);
});

test('times are UTC and of now', async () => {
  const bucket = await newBucket(user);
  const before = Math.floor(Date.now() / 1000) * 1000;
  const { created_at } = bodyOf(await user.upload(bucket, 'a', 'a'));
  const ms = Date.parse(`${created_at.replace(' ', 'T')}Z`);
  assert.ok(ms >= before && ms <= Date.now(), created_at);
});

test('names come in UTF-8 byte order, astral ones after all others', async () => {
  const bucket = await newBucket(user);
  const names = [
    '\u{1f600}',
    '\uff5e',
    '\ue000',
    '\ud7ff',
    'z',
    'Z',
    'a',
    'a/b',
    'a-b',
    'a.b',
    'aa',
    'é',
    '~',
    ' ',
    '0',
  ];
  await fill(bucket, names);
  const sorted = names.toSorted(byBytes);
  assert.notDeepEqual(sorted, names.toSorted(), 'UTF-16 order would differ');
  assert.deepEqual(
    (await listOf(user, bucket)).map(({ name }) => name),
    sorted,
  );
  for (const limit of [1, 2, 7]) {
    assert.deepEqual(
      (await walk(bucket, '', limit)).map(({ name }) => name),
      sorted,
    );
  }
});

test('a prefix selects by bytes, literally, with pages too', async () => {
  const bucket = await newBucket(user);
  const names = [
    'a',
    'a%',
    'a%b',
    'a*',
    'a/',
    'a/b',
    'a/b/c',
    'a_b',
    'aX',
    'A/b',
    'b',
    'é',
    'éa',
    '\u{1f600}a',
    '\u{1f600}b',
  ];
  await fill(bucket, names);
  for (const prefix of ['', 'a', 'a/', 'a/b', 'a%', 'a_', 'a*', 'A', 'é', '\u{1f600}', 'none', 'zzz']) {
    const wanted = names.filter((name) => name.startsWith(prefix)).sort(byBytes);
    const query = `prefix=${encodeURIComponent(prefix)}`;
    const whole = await listOf(user, bucket, `?${query}`);
    assert.deepEqual(
      whole.map(({ name }) => name),
      wanted,
      prefix,
    );
    assert.deepEqual(await walk(bucket, `&${query}`, 2), whole);
    const versions = await walk(bucket, `&${query}&include_versions=true`, 2);
    assert.deepEqual(
      versions.map(({ name }) => name),
      wanted,
    );
  }
});

test('a walk covers every version once, at any page size', async () => {
  const bucket = await newBucket(user, { versioning: true });
  for (const [name, count] of [
    ['a', 1],
    ['b', 7],
    ['b/', 2],
    ['c', 3],
  ] as const) {
    for (let i = 0; i < count; i++) bodyOf(await user.upload(bucket, name, `${name}${i}`));
  }
  const [{ id }] = await listOf(user, bucket, '?prefix=c');
  bodyOf(await user.call(`/api/storage/${id}`, { method: 'DELETE' }));
  const whole = await listOf(user, bucket, '?include_versions=true');
  assert.equal(whole.length, 14);
  assert.equal(new Set(whole.map(({ version_id }) => version_id)).size, 14);
  assert.equal(whole.filter(({ is_latest }) => is_latest).length, 4);
  for (const limit of [1, 2, 3, 5, 13, 14, 15, 1000]) {
    assert.deepEqual(await walk(bucket, '&include_versions=true', limit), whole);
  }
  assert.deepEqual(
    (await walk(bucket, '', 1)).map(({ name }) => name),
    ['a', 'b', 'b/'],
  );
});

test('a walk goes on where it was while names come and go', async () => {
  const bucket = await newBucket(user);
  await fill(bucket, ['b', 'd', 'f', 'h']);
  const first = await user.call(`/api/buckets/${bucket}/files?limit=2`);
  assert.deepEqual(
    first.body.map(({ name }: { name: string }) => name),
    ['b', 'd'],
  );
  await fill(bucket, ['a', 'e']);
  bodyOf(await user.call(`/api/storage/${first.body[1].id}`, { method: 'DELETE' }));
  const next = /<([^>]+)>/.exec(first.headers.get('link') ?? '')?.[1] ?? '';
  const second = bodyOf(await user.call(next));
  assert.deepEqual(
    second.map(({ name }: { name: string }) => name),
    ['e', 'f'],
  );
});

test('the link keeps what was asked and its cursor is opaque', async () => {
  const bucket = await newBucket(user, { versioning: true });
  await fill(bucket, ['p/1', 'p/2', 'q']);
  const { headers } = await user.call(
    `/api/buckets/${bucket}/files?limit=1&prefix=p%2F&include_versions=true`,
  );
  const next = new URL(/<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1] ?? '', cloud.api);
  assert.equal(next.pathname, `/api/buckets/${bucket}/files`);
  assert.equal(next.searchParams.get('limit'), '1');
  assert.equal(next.searchParams.get('prefix'), 'p/');
  assert.equal(next.searchParams.get('include_versions'), 'true');
  assert.match(next.searchParams.get('cursor') ?? '', /^[\w-]+$/);
});

const WRONG = [
  'limit=0',
  'limit=1001',
  'limit=abc',
  'limit=-1',
  'limit=1.5',
  'limit=',
  'limit=%201',
  'limit=1&limit=2',
  'include_versions=yes',
  'include_versions=1',
  'include_versions=',
  'include_versions=TRUE',
  'prefix=a&prefix=b',
];
for (const query of WRONG) {
  test(`files?${query} is refused`, async () => {
    const bucket = await newBucket(user);
    assertProblem(await user.call(`/api/buckets/${bucket}/files?${query}`), 400, 'invalid_request');
  });
}

test('a cursor of our own making is refused', async () => {
  const bucket = await newBucket(user);
  const forged = [[], [1, 2, 3], ['a', 'b', 'c'], ['a', 1], ['a', 1.5, 2], { a: 1 }, null, 'a'];
  const cursors = forged.map((value) => Buffer.from(JSON.stringify(value)).toString('base64url'));
  for (const cursor of ['x', '!!!', 'eyJ', '%F0%9F%98%80', ...cursors]) {
    const path = `/api/buckets/${bucket}/files?limit=5&cursor=${cursor}`;
    assertProblem(await user.call(path), 400, 'invalid_cursor');
  }
});

test('the limits of the limit work', async () => {
  const bucket = await newBucket(user);
  await fill(bucket, ['a', 'b']);
  assert.equal((await listOf(user, bucket, '?limit=1')).length, 1);
  assert.equal((await listOf(user, bucket, '?limit=1000')).length, 2);
});

test('last_accessed is null until a download and right in the next listing', async () => {
  const bucket = await newBucket(user);
  const { object_id } = bodyOf(await user.upload(bucket, 'seen', 'bytes'));
  const seen = async () => (await listOf(user, bucket))[0].last_accessed;
  assert.equal(await seen(), null);
  bodyOf(await user.call(`/api/storage/${object_id}`));
  await user.fetch(`/api/storage/${object_id}/download`, { method: 'HEAD' });
  bodyOf(await user.call(`/api/storage/${object_id}/cdn-url`));
  for (const headers of [{ range: 'bytes=5-' }, { 'if-match': '"x"' }, { 'if-none-match': '*' }]) {
    const refused = await user.fetch(`/api/storage/${object_id}/download`, { headers });
    assert.ok(refused.status >= 300);
    await refused.arrayBuffer();
  }
  assert.equal(await seen(), null, 'only a download counts');
  const before = Math.floor(Date.now() / 1000) * 1000;
  await user.download(object_id);
  const at = await seen();
  assert.match(at, TIME);
  const ms = Date.parse(`${at.replace(' ', 'T')}Z`);
  assert.ok(ms >= before && ms <= Date.now(), at);
  assert.equal(bodyOf(await user.call(`/api/storage/${object_id}`)).last_accessed, at);
});

test('last_accessed is that of the version which was read', async () => {
  const bucket = await newBucket(user, { versioning: true });
  const first = bodyOf(await user.upload(bucket, 'seen', 'one'));
  const id = first.object_id;
  const seen = async () =>
    (await listOf(user, bucket, '?include_versions=true')).map(({ last_accessed }) => last_accessed !== null);
  bodyOf(await user.upload(bucket, 'seen', 'two'));
  await user.download(id);
  assert.deepEqual(await seen(), [true, false], 'the current one was read');
  assert.match((await listOf(user, bucket))[0].last_accessed, TIME);
  bodyOf(await user.upload(bucket, 'seen', 'three'));
  assert.deepEqual(await seen(), [false, true, false], 'nobody has read the new one');
  assert.equal((await listOf(user, bucket))[0].last_accessed, null);
  await user.download(id, `?version_id=${first.version_id}`);
  assert.deepEqual(await seen(), [false, true, true]);
  const { last_accessed, versions } = bodyOf(await user.call(`/api/storage/${id}`));
  assert.equal(last_accessed, null);
  assert.equal(versions[0].last_accessed, null);
  assert.match(versions[2].last_accessed, TIME);
});

test('a download by link counts as an access too', async () => {
  const bucket = await newBucket(user);
  const { object_id } = bodyOf(await user.upload(bucket, 'seen', 'bytes'));
  const { cdn_url } = bodyOf(await user.call(`/api/storage/${object_id}/cdn-url`));
  await (await fetch(cdn_url)).arrayBuffer();
  assert.match((await listOf(user, bucket))[0].last_accessed, TIME);
});

test('2,500 objects come whole without a limit, and in pages with one', async () => {
  const bucket = await newBucket(user);
  const names = Array.from({ length: 2500 }, (_, i) => `folder ${i % 7}/object-${i}`);
  await fill(bucket, names);
  const whole = await listOf(user, bucket);
  assert.deepEqual(
    whole.map(({ name }) => name),
    names.toSorted(byBytes),
  );
  assert.deepEqual(await walk(bucket, '', 1000), whole);
  assert.deepEqual(await walk(bucket, '&include_versions=false', 999), whole);
  assert.equal((await listOf(user, bucket, '?include_versions=true')).length, 2500);
  const { object_count, version_count } = bodyOf(await user.call(`/api/buckets/${bucket}`));
  assert.deepEqual([object_count, version_count], [2500, 2500]);
  const removed = await user.call(`/api/buckets/${bucket}?force=true`, { method: 'DELETE' });
  assert.equal(removed.status, 200);
});

test('a folder is counted with what is below it, and nobody else counts it', async () => {
  const bucket = await newBucket(user);
  await fill(bucket, ['a/1', 'a/b/22', 'a-not/3', 'a']);
  const sizeOf = async (query: string) => bodyOf(await user.call(`/api/buckets/${bucket}/size${query}`));
  assert.deepEqual(await sizeOf('?prefix=a/'), {
    object_count: 2,
    size: 9,
    size_formatted: '9.00 B',
    next_cursor: null,
  });
  assert.equal((await sizeOf('')).object_count, 4);
  assert.equal((await sizeOf('?prefix=none/')).object_count, 0);
  const refused = await user.call(`/api/buckets/${bucket}/size?cursor=x`);
  assertProblem(refused, 400, 'invalid_cursor');
  const other = await new Client(cloud.api).newUser();
  assertProblem(await other.call(`/api/buckets/${bucket}/size`), 404, 'bucket_not_found');
});
