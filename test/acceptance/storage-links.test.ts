import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, Client, sessionOf } from '../harness/client.ts';
import { ADMIN_KEY, type CloudProcess } from '../harness/cloud-process.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';
import { assertProblem, bodyOf, newBucket, TIME } from './storage-kit.ts';

let cloud: CloudProcess;
let user: Client;
let bucket: string;
before(async () => {
  cloud = await sharedCloud();
  user = await new Client(cloud.api).newUser();
  bucket = await newBucket(user);
});

const put = async (content: string | Uint8Array, name = 'linked.txt', target = bucket) =>
  bodyOf(await user.upload(target, name, content));
const linkTo = async (id: string, query = '') =>
  bodyOf(await user.call(`/api/storage/${id}/cdn-url${query}`)) as { cdn_url: string; expires_at: string };

/** A call by someone who has only the address. */
function visit(
  url: string | URL,
  init: { method?: string; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const { origin, href } = new URL(url);
  return new Client(origin).call(href.slice(origin.length), init);
}

/** The same link with one part of its query changed; null removes it. */
function changed(link: string, name: string, value: string | null): URL {
  const url = new URL(link);
  if (value === null) url.searchParams.delete(name);
  else url.searchParams.set(name, value);
  return url;
}

/** The link on the API's own origin, as accepted by the download address. */
function onApi(link: string, id: string): URL {
  return new URL(`/api/storage/${id}/download${new URL(link).search}`, cloud.api);
}

test('a link works on the API too, whoever else is logged in or was', async () => {
  const { object_id } = await put('for everybody');
  const { cdn_url } = await linkTo(object_id);
  const password = 'correct horse battery';
  const name = `visitor-${randomBytes(4).toString('hex')}`;
  const other = new Client(cloud.api);
  await other.call('/api/register', { json: { username: name, email: `${name}@example.org`, password } });
  const login = await other.call('/api/login', { json: { username: name, password } });
  const headers = sessionOf(login);
  const { href } = onApi(cdn_url, object_id);
  assert.equal((await visit(href, { headers })).status, 200);
  await other.call('/api/logout', { method: 'POST', headers });
  assert.equal((await visit(href, { headers })).status, 200);
  assert.equal((await visit(href, { headers: { 'x-api-key': 'clk_wrong' } })).status, 401);
});

test('a link is absolute, on the data origin, and works without any header', async () => {
  const { object_id, etag } = await put('for everybody');
  const { cdn_url, expires_at } = await linkTo(object_id);
  assert.equal(new URL(cdn_url).origin, cloud.data);
  assert.notEqual(cloud.data, cloud.api);
  assert.match(expires_at, TIME);
  const { status, body, headers } = await visit(cdn_url);
  assert.deepEqual([status, body], [200, 'for everybody']);
  assert.equal(headers.get('etag'), `"${etag}"`);
  assert.equal(headers.get('content-type'), 'text/plain');
  assert.match(headers.get('cache-control') ?? '', /^public, max-age=\d+/);
  assert.match(headers.get('content-security-policy') ?? '', /(^|; )sandbox(;|$)/);
  assert.equal(headers.get('x-content-type-options'), 'nosniff');
  assert.equal(headers.get('set-cookie'), null);
  assert.match(headers.get('content-disposition') ?? '', /filename=linked\.txt$/);
});

test('a PDF is shown, and only the console may frame it; nothing else is framed', async () => {
  const headersOf = async (name: string) =>
    (await visit((await linkTo((await put('%PDF-1.4', name)).object_id)).cdn_url)).headers;
  const paper = await headersOf('paper.pdf');
  assert.match(paper.get('content-disposition') ?? '', /^inline; /);
  const framers = `${cloud.api} ${cloud.api.replace('127.0.0.1', 'localhost')}`;
  const policy = paper.get('content-security-policy') ?? '';
  assert.match(policy, /^sandbox; /);
  assert.ok(policy.endsWith(`; frame-ancestors ${framers}`), policy);
  for (const name of ['a.html', 'a.svg', 'a.txt']) {
    assert.match((await headersOf(name)).get('content-security-policy') ?? '', /; frame-ancestors 'none'$/);
  }
});

test('a link serves HEAD, ranges and validators, whatever the size', async () => {
  const sealed = await newBucket(user, { encryption: true });
  for (const [size, target] of [
    [5000, bucket],
    [400_000, bucket],
    [5000, sealed],
    [400_000, sealed],
  ] as const) {
    const bytes = randomBytes(size);
    const { object_id, etag } = await put(bytes, 'ranged.bin', target);
    const { cdn_url } = await linkTo(object_id);
    const whole = await fetch(cdn_url);
    assert.ok(Buffer.from(await whole.arrayBuffer()).equals(bytes));
    const part = await fetch(cdn_url, { headers: { range: 'bytes=100-299' } });
    assert.equal(part.status, 206);
    assert.equal(part.headers.get('content-range'), `bytes 100-299/${size}`);
    assert.ok(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(100, 300)));
    assert.equal((await visit(cdn_url, { headers: { 'if-none-match': `"${etag}"` } })).status, 304);
    const head = await visit(cdn_url, { method: 'HEAD' });
    assert.deepEqual([head.status, head.headers.get('content-length')], [200, String(size)]);
    const beyond = await visit(cdn_url, { headers: { range: `bytes=${size}-` } });
    assertProblem(beyond, 416, 'range_not_satisfiable');
  }
});

test('a cache never keeps a link beyond its end', async () => {
  const { object_id, version_id } = await put('short');
  for (const query of ['?expires_in=20', `?expires_in=20&version_id=${version_id}`]) {
    const { headers } = await visit((await linkTo(object_id, query)).cdn_url);
    const age = Number(/max-age=(\d+)/.exec(headers.get('cache-control') ?? '')?.[1]);
    assert.ok(age >= 1 && age <= 20, headers.get('cache-control') ?? '');
  }
});

test('a cache outlives a link whose key was revoked by an hour at most', async () => {
  const { object_id, version_id } = await put('for a year');
  const cachingOf = async (query: string) =>
    (await visit((await linkTo(object_id, query)).cdn_url)).headers.get('cache-control');
  const year = '?expires_in=31536000';
  assert.equal(await cachingOf(`${year}&version_id=${version_id}`), 'public, max-age=3600, immutable');
  assert.equal(await cachingOf(year), 'public, max-age=60');
});

test('expires_in is when it ends', async () => {
  const { object_id } = await put('timed');
  for (const seconds of [1, 60, 3600, 31_536_000]) {
    const before = Math.floor(Date.now() / 1000);
    const { expires_at, cdn_url } = await linkTo(object_id, `?expires_in=${seconds}`);
    const end = Date.parse(`${expires_at.replace(' ', 'T')}Z`) / 1000;
    assert.ok(end >= before + seconds && end <= Date.now() / 1000 + seconds, expires_at);
    assert.equal(Number(new URL(cdn_url).searchParams.get('expires')), end);
  }
});

for (const seconds of [
  '0',
  '-1',
  '31536001',
  'abc',
  '',
  '1.5',
  '1e3',
  '99999999999999999999',
  '1&expires_in=2',
]) {
  test(`expires_in=${seconds} is refused`, async () => {
    const { object_id } = await put('x');
    const answer = await user.call(`/api/storage/${object_id}/cdn-url?expires_in=${seconds}`);
    assertProblem(answer, 400, 'invalid_request');
  });
}

test('after its end a link is 403, on both origins', async () => {
  const { object_id } = await put('soon over');
  const { cdn_url } = await linkTo(object_id, '?expires_in=1');
  const end = Number(new URL(cdn_url).searchParams.get('expires')) * 1000;
  while (Date.now() < end) await sleep(end - Date.now() + 1);
  assertProblem(await visit(cdn_url), 403, 'invalid_link');
  assertProblem(await visit(onApi(cdn_url, object_id)), 403, 'invalid_link');
});

test('a link changed anywhere is 403, on both origins', async () => {
  const { object_id, version_id } = await put('mine');
  const other = await put('other', 'other.txt');
  const { cdn_url } = await linkTo(object_id);
  const { searchParams } = new URL(cdn_url);
  const signature = searchParams.get('signature') ?? '';
  const flipped = (signature.startsWith('A') ? 'B' : 'A') + signature.slice(1);
  const tampered = [
    changed(cdn_url, 'signature', flipped),
    changed(cdn_url, 'signature', signature.slice(0, -2)),
    changed(cdn_url, 'signature', `${signature}AA`),
    changed(cdn_url, 'signature', ''),
    changed(cdn_url, 'signature', null),
    changed(cdn_url, 'expires', String(Number(searchParams.get('expires')) + 1)),
    changed(cdn_url, 'expires', '99999999999'),
    changed(cdn_url, 'expires', null),
    changed(cdn_url, 'version_id', version_id),
  ];
  for (const url of tampered) {
    assertProblem(await visit(url), 403, 'invalid_link');
    const { status } = await visit(onApi(url.href, object_id));
    assert.equal(status, url.searchParams.has('signature') ? 403 : 401, url.search);
  }
  assertProblem(await visit(cdn_url.replace(object_id, other.object_id)), 403, 'invalid_link');
  assertProblem(await visit(onApi(cdn_url, other.object_id)), 403, 'invalid_link');
  for (const [name, value] of [
    ['expires', 'abc'],
    ['expires', ''],
  ] as const) {
    const { status } = await visit(changed(cdn_url, name, value));
    assert.ok(status === 400 || status === 403, `${name}=${value}: ${status}`);
  }
});

test('a link to a version is to that version only', async () => {
  const versioned = await newBucket(user, { versioning: true });
  const first = await put('first', 'v', versioned);
  const second = await put('second', 'v', versioned);
  const fixed = await linkTo(first.object_id, `?version_id=${first.version_id}`);
  const latest = await linkTo(first.object_id);
  assert.equal((await visit(fixed.cdn_url)).body, 'first');
  assert.equal((await visit(latest.cdn_url)).body, 'second');
  const swapped = changed(fixed.cdn_url, 'version_id', second.version_id);
  assertProblem(await visit(swapped), 403, 'invalid_link');
  assertProblem(await visit(changed(fixed.cdn_url, 'version_id', null)), 403, 'invalid_link');
  bodyOf(await user.call(`/api/storage/${first.object_id}`, { method: 'DELETE' }));
  assertProblem(await visit(latest.cdn_url), 404, 'object_not_found');
  assert.equal((await visit(fixed.cdn_url)).body, 'first', 'a marker hides the current bytes only');
});

test('a link without a version follows the current bytes', async () => {
  const { object_id } = await put('old', 'follows');
  const { cdn_url } = await linkTo(object_id);
  await put('new', 'follows');
  assert.equal((await visit(cdn_url)).body, 'new');
});

test('after the object is deleted its links are 404', async () => {
  const { object_id } = await put('gone');
  const { cdn_url } = await linkTo(object_id);
  bodyOf(await user.call(`/api/storage/${object_id}`, { method: 'DELETE' }));
  assertProblem(await visit(cdn_url), 404, 'object_not_found');
  assertProblem(await visit(onApi(cdn_url, object_id)), 404, 'object_not_found');
  assertProblem(await user.call(`/api/storage/${object_id}/cdn-url`), 404, 'object_not_found');
});

test('while its owner is suspended a link is 404 on both origins, and works again afterwards', async () => {
  const account = await user.as(undefined).register();
  const owner = user.as(account.api_key);
  const admin = user.as(ADMIN_KEY);
  const home = await newBucket(owner);
  const { object_id, version_id } = bodyOf(await owner.upload(home, 'theirs.txt', 'theirs'));
  const links = await Promise.all(
    ['', `?version_id=${version_id}`].map(async (query) =>
      bodyOf(await owner.call(`/api/storage/${object_id}/cdn-url${query}`)),
    ),
  );
  const urls = links.flatMap(({ cdn_url }) => [cdn_url, onApi(cdn_url, object_id)]);
  const path = `/api/admin/accounts/${account.id}`;
  // Twice: a content served once must not be served from memory.
  for (let round = 0; round < 2; round++) {
    for (const url of urls) assert.equal(bodyOf(await visit(url)), 'theirs');
    bodyOf(await admin.call(`${path}/suspend`, { json: { reason: 'test' } }));
    for (const url of urls) {
      assertProblem(await visit(url), 404, 'object_not_found');
      assertProblem(await visit(url, { headers: { range: 'bytes=0-0' } }), 404, 'object_not_found');
    }
    bodyOf(await admin.call(`${path}/resume`, { method: 'POST' }));
  }
  for (const url of urls) assert.equal(bodyOf(await visit(url)), 'theirs');
});

/** An additional key of the account. */
async function newKey(fields: object = {}): Promise<{ id: string; key: Client; expires_at: string | null }> {
  const json = { name: 'k', scopes: ['storage:read'], ...fields };
  const { status, body } = await user.call('/api/account/access-keys', { json });
  assert.equal(status, 201, JSON.stringify(body));
  return { id: body.id, key: user.as(body.api_key), expires_at: body.expires_at };
}

test('a link outlives neither the life of the key that made it nor its revocation', async () => {
  const { object_id, version_id } = await put('by a key');
  const brief = await newKey({ expires_in: 600 });
  const year = `/api/storage/${object_id}/cdn-url?expires_in=31536000`;
  const capped = bodyOf(await brief.key.call(year));
  assert.equal(capped.expires_at, brief.expires_at);
  const persistent = await newKey();
  const links = await Promise.all(
    [year, `${year}&version_id=${version_id}`].map(async (path) => bodyOf(await persistent.key.call(path))),
  );
  const urls = links.flatMap(({ cdn_url }) => [cdn_url, onApi(cdn_url, object_id)]);
  for (const url of urls) assert.equal(bodyOf(await visit(url)), 'by a key');
  bodyOf(await user.call(`/api/account/access-keys/${persistent.id}`, { method: 'DELETE' }));
  for (const url of urls) assertProblem(await visit(url), 403, 'invalid_link');
  assert.equal((await visit(capped.cdn_url)).status, 200);
  const other = changed(capped.cdn_url, 'key_id', persistent.id);
  assertProblem(await visit(other), 403, 'invalid_link');
});

test('replacing the account key ends its links and those made in a session', async () => {
  const password = 'correct horse battery';
  const { username, api_key } = await user.as(undefined).register();
  const owner = user.as(api_key);
  const { object_id } = bodyOf(await owner.upload(await newBucket(owner), 'kept.txt', 'kept'));
  const path = `/api/storage/${object_id}/cdn-url`;
  const byKey = bodyOf(await owner.call(path)).cdn_url;
  const login = await user.as(undefined).call('/api/login', { json: { username, password } });
  const headers = sessionOf(login);
  const bySession = bodyOf(await user.as(undefined).call(path, { headers })).cdn_url;
  const rotate = async (overlap_seconds: number) =>
    bodyOf(await user.as(undefined).call('/api/account/api-key', { json: { overlap_seconds }, headers }));
  await rotate(3600);
  for (const url of [byKey, bySession]) assert.equal(bodyOf(await visit(url)), 'kept');
  await rotate(0);
  for (const url of [byKey, bySession]) assertProblem(await visit(url), 403, 'invalid_link');
  await user.as(undefined).call('/api/logout', { method: 'POST', headers });
});

test('a signed link is good for the download address too, and for nothing else', async () => {
  const { object_id } = await put('by link');
  const { cdn_url } = await linkTo(object_id);
  const { status, body, headers } = await visit(onApi(cdn_url, object_id));
  assert.deepEqual([status, body], [200, 'by link']);
  assert.match(headers.get('content-disposition') ?? '', /^attachment; /);
  const query = new URL(cdn_url).search;
  for (const path of [`/api/storage/${object_id}`, `/api/storage/${object_id}/cdn-url`]) {
    assertProblem(await visit(new URL(path + query, cloud.api)), 401, 'missing_api_key');
  }
  const removal = await visit(new URL(`/api/storage/${object_id}${query}`, cloud.api), { method: 'DELETE' });
  assertProblem(removal, 401, 'missing_api_key');
});

test('a link needs a key to be made', async () => {
  const { object_id } = await put('x');
  const answer = await user.as(undefined).call(`/api/storage/${object_id}/cdn-url`);
  assertProblem(answer, 401, 'missing_api_key');
});

test('the data origin has files by link and nothing else', async () => {
  for (const path of ['/', '/cdn', '/cdn/', '/cdn/x', '/api/buckets', '/api/account', '/metrics']) {
    const answer = await new Client(cloud.data, user.key).call(path);
    assert.equal(answer.status, 404, path);
  }
  const { object_id } = await put('x');
  assertProblem(await visit(`${cloud.data}/cdn/${object_id}/linked.txt`), 403, 'invalid_link');
  const posted = await visit((await linkTo(object_id)).cdn_url, { method: 'POST' });
  assertProblem(posted, 405, 'method_not_allowed');
});
