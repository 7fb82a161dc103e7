import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { before, test } from 'node:test';
import { Client, sessionOf } from '../harness/client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';
import { assertProblem, bodyOf, fieldPart, filePart, newBucket, rawForm, sendRaw } from './storage-kit.ts';

let cloud: CloudProcess;
let user: Client;
let bucket: string;
/** Stored in the row, in one blob, and in one of many chunks, encrypted or not. */
const kept: { kind: string; path: string; etag: string; bytes: Buffer }[] = [];
before(async () => {
  cloud = await sharedCloud();
  user = await new Client(cloud.api).newUser();
  bucket = await newBucket(user);
  const sealed = await newBucket(user, { encryption: true });
  for (const size of [1000, 100_000, 1_500_000]) {
    for (const target of [bucket, sealed]) {
      const bytes = randomBytes(size);
      const { object_id, etag } = bodyOf(await user.upload(target, `of-${size}.bin`, bytes));
      const kind = `${size} bytes${target === sealed ? ', encrypted' : ''}`;
      kept.push({ kind, path: `/api/storage/${object_id}/download`, etag, bytes });
    }
  }
});

async function get(path: string, headers: Record<string, string> = {}, method = 'GET') {
  const response = await user.fetch(path, { headers, method });
  return { response, bytes: Buffer.from(await response.arrayBuffer()) };
}

test('a download carries the bytes and all that is known of them', async () => {
  for (const { path, etag, bytes: wanted, kind } of kept) {
    const { response, bytes } = await get(path);
    assert.equal(response.status, 200);
    assert.ok(bytes.equals(wanted), kind);
    const { headers } = response;
    assert.equal(headers.get('content-length'), String(wanted.length));
    assert.equal(headers.get('content-type'), 'application/octet-stream');
    assert.equal(headers.get('etag'), `"${etag}"`);
    assert.equal(headers.get('accept-ranges'), 'bytes');
    assert.equal(headers.get('x-content-type-options'), 'nosniff');
    assert.equal(headers.get('content-disposition'), `attachment; filename=of-${wanted.length}.bin`);
    const modified = Date.parse(headers.get('last-modified') ?? '');
    assert.ok(modified <= Date.now() && modified > Date.now() - 600_000);
    assert.ok(headers.get('x-request-id'));
  }
});

test('HEAD answers as GET does, without bytes', async () => {
  for (const { path } of kept) {
    const [got, head] = [await get(path), await get(path, {}, 'HEAD')];
    assert.equal(head.response.status, 200);
    assert.equal(head.bytes.length, 0);
    for (const name of ['content-length', 'content-type', 'etag', 'last-modified', 'content-disposition']) {
      assert.equal(head.response.headers.get(name), got.response.headers.get(name), name);
    }
  }
  assert.equal((await get('/api/storage/obj-none/download', {}, 'HEAD')).response.status, 404);
});

const RANGES: [range: string, from: (size: number) => number, to: (size: number) => number][] = [
  ['bytes=0-0', () => 0, () => 1],
  ['bytes=0-99', () => 0, () => 100],
  ['bytes=7-7', () => 7, () => 8],
  ['bytes=500-', () => 500, (size) => size],
  ['bytes=-1', (size) => size - 1, (size) => size],
  ['bytes=-100', (size) => size - 100, (size) => size],
  ['bytes=-99999999999', () => 0, (size) => size],
  ['bytes=0-99999999999', () => 0, (size) => size],
  ['bytes=10-99999999999', () => 10, (size) => size],
];
for (const [range, from, to] of RANGES) {
  test(`Range: ${range}`, async () => {
    for (const { path, bytes: whole, kind } of kept) {
      const [start, end] = [from(whole.length), to(whole.length)];
      const { response, bytes } = await get(path, { range });
      assert.equal(response.status, 206, kind);
      assert.equal(response.headers.get('content-range'), `bytes ${start}-${end - 1}/${whole.length}`);
      assert.equal(response.headers.get('content-length'), String(end - start));
      assert.ok(bytes.equals(whole.subarray(start, end)), kind);
      const head = await get(path, { range }, 'HEAD');
      // RFC 9110 §14.2: a range is defined for GET only.
      assert.deepEqual(
        [head.response.status, head.response.headers.get('content-length')],
        [200, String(whole.length)],
      );
    }
  });
}

test('ranges over the edges of chunks are right', async () => {
  const { path, bytes: whole } = kept.at(-1) ?? assert.fail();
  for (const edge of [16_384, 65_536, 131_072, 262_144, 524_288, 1_048_576]) {
    for (const [start, end] of [
      [edge - 1, edge + 1],
      [edge, edge + 1],
      [edge - 1, edge],
      [edge - 5000, edge + 70_000],
    ] as const) {
      const { bytes } = await get(path, { range: `bytes=${start}-${end - 1}` });
      assert.ok(bytes.equals(whole.subarray(start, end)), `${start}-${end}`);
    }
  }
});

for (const range of ['bytes=9999999-', 'bytes=1500000-1500001', 'bytes=-0']) {
  test(`Range: ${range} cannot be satisfied`, async () => {
    for (const { path, bytes } of kept) {
      const answer = await user.call(path, { headers: { range } });
      assertProblem(answer, 416, 'range_not_satisfiable');
      assert.equal(answer.headers.get('content-range'), `bytes */${bytes.length}`);
    }
  });
}

for (const range of [
  'bytes=5-2',
  'lines=1-2',
  'bytes=',
  'bytes=-',
  'bytes=a-b',
  'bytes 0-1',
  '0-1',
  'bytes=1.5-2',
]) {
  test(`Range: ${range} means nothing and the whole comes`, async () => {
    const { path, bytes: whole } = kept[0] ?? assert.fail();
    const { response, bytes } = await get(path, { range });
    assert.equal(response.status, 200);
    assert.ok(bytes.equals(whole));
  });
}

test('several ranges are answered by bytes that are right', async () => {
  const { path, bytes: whole } = kept[0] ?? assert.fail();
  const { response, bytes } = await get(path, { range: 'bytes=0-1,5-6' });
  assert.equal(response.status, 200);
  assert.ok(bytes.equals(whole));
});

test('an empty object has no range to give', async () => {
  const { object_id } = bodyOf(await user.upload(bucket, 'empty', ''));
  const answer = await user.call(`/api/storage/${object_id}/download`, { headers: { range: 'bytes=0-0' } });
  assertProblem(answer, 416, 'range_not_satisfiable');
  assert.equal(answer.headers.get('content-range'), 'bytes */0');
});

test('If-Range gives the range only of the same bytes', async () => {
  const { path, etag, bytes: whole } = kept[2] ?? assert.fail();
  const range = 'bytes=10-19';
  const modified = (await get(path, {}, 'HEAD')).response.headers.get('last-modified') ?? '';
  for (const condition of [`"${etag}"`, modified]) {
    assert.equal((await get(path, { range, 'if-range': condition })).response.status, 206);
  }
  for (const condition of ['"other"', `W/"${etag}"`, etag, 'Wed, 01 Jan 2020 00:00:00 GMT']) {
    const { response, bytes } = await get(path, { range, 'if-range': condition });
    assert.equal(response.status, 200, condition);
    assert.ok(bytes.equals(whole));
  }
});

test('If-None-Match spares what is known already', async () => {
  const { path, etag } = kept[0] ?? assert.fail();
  for (const known of [`"${etag}"`, `W/"${etag}"`, `"x", "${etag}"`, '*']) {
    for (const method of ['GET', 'HEAD']) {
      const { response, bytes } = await get(path, { 'if-none-match': known }, method);
      assert.deepEqual([response.status, bytes.length], [304, 0], known);
      assert.equal(response.headers.get('etag'), `"${etag}"`);
    }
  }
  assert.equal((await get(path, { 'if-none-match': '"other"' })).response.status, 200);
  assert.equal((await get(path, { 'if-none-match': etag })).response.status, 200, 'an ETag has quotes');
});

test('If-None-Match stops matching when the bytes change', async () => {
  const { object_id, etag } = bodyOf(await user.upload(bucket, 'changing', 'one'));
  const path = `/api/storage/${object_id}/download`;
  assert.equal((await get(path, { 'if-none-match': `"${etag}"` })).response.status, 304);
  await user.upload(bucket, 'changing', 'two');
  const { response, bytes } = await get(path, { 'if-none-match': `"${etag}"` });
  assert.deepEqual([response.status, bytes.toString()], [200, 'two']);
});

test('If-Match refuses other bytes', async () => {
  const { path, etag } = kept[0] ?? assert.fail();
  for (const wanted of [`"${etag}"`, '*', `"x", "${etag}"`]) {
    assert.equal((await get(path, { 'if-match': wanted })).response.status, 200, wanted);
  }
  assertProblem(await user.call(path, { headers: { 'if-match': '"x"' } }), 412, 'precondition_failed');
});

test('a date is a condition too', async () => {
  const { path } = kept[0] ?? assert.fail();
  const modified = (await get(path, {}, 'HEAD')).response.headers.get('last-modified') ?? '';
  const old = 'Wed, 01 Jan 2020 00:00:00 GMT';
  assert.equal((await get(path, { 'if-modified-since': modified })).response.status, 304);
  assert.equal((await get(path, { 'if-modified-since': old })).response.status, 200);
  assert.equal((await get(path, { 'if-modified-since': 'yesterday' })).response.status, 200);
  assert.equal((await get(path, { 'if-unmodified-since': modified })).response.status, 200);
  assertProblem(
    await user.call(path, { headers: { 'if-unmodified-since': old } }),
    412,
    'precondition_failed',
  );
});

const DISPOSITIONS: Record<string, string> = {
  'plain.txt': 'attachment; filename=plain.txt',
  'folder/sub/plain.txt': 'attachment; filename=plain.txt',
  'with space.txt': 'attachment; filename="with space.txt"',
  'a;b.txt': 'attachment; filename="a;b.txt"',
  'a,b=c.txt': 'attachment; filename="a,b=c.txt"',
  'résumé.pdf': `attachment; filename*=UTF-8''r%C3%A9sum%C3%A9.pdf; filename=r_sum_.pdf`,
  '日本 語.txt': `attachment; filename*=UTF-8''%E6%97%A5%E6%9C%AC%20%E8%AA%9E.txt; filename="__ _.txt"`,
  "é'(*).txt": `attachment; filename*=UTF-8''%C3%A9%27%28%2A%29.txt; filename="_'(_).txt"`,
};
for (const [name, wanted] of Object.entries(DISPOSITIONS)) {
  test(`${name} is saved under its name`, async () => {
    const form = rawForm(fieldPart('name', name), filePart('x'));
    const { object_id } = bodyOf(await sendRaw(user, bucket, form));
    const { response } = await get(`/api/storage/${object_id}/download`);
    const said = response.headers.get('content-disposition') ?? '';
    if (name.startsWith("é'"))
      assert.match(said, /filename\*=UTF-8''%C3%A9%27%28%2A%29\.txt; filename="_'\(.\)\.txt"$/);
    else assert.equal(said, wanted);
    // The behaviour of a client that truncates the header there (specification §4).
    assert.ok((said.split('filename=')[1] ?? '').replaceAll('"', '').endsWith(name.slice(-4)));
  });
}

test('a name with quotes or backslashes cannot break out of the header', async () => {
  for (const name of ['a"b.txt', 'a\\', '"; filename=evil.exe', '";x="']) {
    const { object_id } = bodyOf(
      await sendRaw(user, bucket, rawForm(fieldPart('name', name), filePart('x'))),
    );
    const { response } = await get(`/api/storage/${object_id}/download`);
    const said = response.headers.get('content-disposition') ?? '';
    const form = /^attachment; filename\*=UTF-8''([\w.~%!#$&+^`|-]+); filename=("[^"\\]*"|[\w.-]+)$/.exec(
      said,
    );
    assert.equal(decodeURIComponent(form?.[1] ?? ''), name, said);
  }
});

test('without a key there is no download, with a wrong one neither', async () => {
  const { path } = kept[0] ?? assert.fail();
  const without = await user.as(undefined).call(path);
  assertProblem(without, 401, 'missing_api_key');
  assert.match(
    String((without.body as { hint?: string }).hint),
    /cdn-url or a ticket from POST \/api\/account\/tickets$/,
  );
  assert.ok(without.headers.get('www-authenticate'));
  assertProblem(await user.as('clk_wrong').call(path), 401, 'invalid_api_key');
  assertProblem(await user.as(undefined).call('/api/storage/obj-none/download'), 401, 'missing_api_key');
});

test('the key may come as a bearer token', async () => {
  const { path } = kept[0] ?? assert.fail();
  const { status } = await user
    .as(undefined)
    .fetch(path, { headers: { authorization: `Bearer ${user.key}` } });
  assert.equal(status, 200);
});

test('a page opens a download by ticket; the cookie of its session alone opens nothing', async () => {
  const account = await user.register();
  const owner = user.as(account.api_key);
  await owner.call('/api/buckets', { json: { name: 'session' } });
  const { object_id } = bodyOf(await owner.upload('session', 'a', 'by ticket'));
  const json = { username: account.username, password: 'correct horse battery' };
  const anyone = user.as(undefined);
  const session = sessionOf(await anyone.call('/api/login', { json }));
  const path = `/api/storage/${object_id}/download`;
  const open = (url: string, headers = {}) => anyone.call(url, { headers });
  assert.equal((await open(path, session)).body, 'by ticket');
  const refused = await open(path, { cookie: session.cookie });
  assertProblem(refused, 401, 'incomplete_session');
  assert.match(refused.body.hint, /cdn-url/);
  const ticketFor = async (of: string) =>
    (await anyone.call('/api/account/tickets', { json: { path: of }, headers: session })).body;
  const { url, ticket } = await ticketFor(path);
  // The navigation, with the cookie sent by the browser, and its continuation.
  assert.equal((await open(url, { cookie: session.cookie })).body, 'by ticket');
  const rest = await open(url, { range: 'bytes=3-' });
  assert.deepEqual([rest.status, rest.body], [206, 'ticket']);
  for (const other of [
    `/api/buckets/session/archive?ticket=${ticket}`,
    `${path}?version_id=x&ticket=${ticket}`,
  ])
    assertProblem(await open(other), 401, 'invalid_ticket');
  for (const other of [`/api/storage/${object_id}?ticket=${ticket}`, `/api/account?ticket=${ticket}`])
    assertProblem(await open(other), 401, 'missing_api_key');
  const zip = await ticketFor('/api/buckets/session/archive');
  assert.equal((await open(zip.url)).status, 200);
  // Another account's object does not exist for this account, and a path elsewhere gets none.
  const foreign = bodyOf(await user.upload(await newBucket(user), 'b', 'not theirs')).object_id;
  assertProblem(
    await open((await ticketFor(`/api/storage/${foreign}/download`)).url),
    404,
    'object_not_found',
  );
  for (const bad of ['https://evil.example/api/x', '//evil.example', '/docs', ''])
    assertProblem(
      await anyone.call('/api/account/tickets', { json: { path: bad }, headers: session }),
      400,
      'invalid_request',
    );
  await anyone.call('/api/logout', { method: 'POST', headers: session });
  assertProblem(await open(url), 401, 'invalid_ticket');
});

test('files that were chosen are one zip, by key and by ticket', async () => {
  const bucket = await newBucket(user);
  for (const name of ['2026/a', '2026/b/c', '2026/d']) await user.upload(bucket, name, name);
  const json = { names: ['2026/a', '2026/b/', '2026/gone'] };
  const kept = await user.call(`/api/buckets/${bucket}/selections`, { json });
  assert.equal(kept.status, 201, JSON.stringify(kept.body));
  assert.ok(Date.parse(`${kept.body.expires_at.replace(' ', 'T')}Z`) > Date.now());
  const path = `/api/buckets/${bucket}/archive?selection=${kept.body.selection_id}`;
  const { url } = (await user.call('/api/account/tickets', { json: { path } })).body;
  for (const response of [await user.call(path), await user.as(undefined).call(url)]) {
    assert.equal(response.status, 200);
    assert.match(response.headers.get('content-disposition') ?? '', /2026\.zip/);
    const text = String(response.body);
    assert.ok(text.includes('2026/a') && text.includes('2026/b/c') && !text.includes('2026/d'));
  }
  assertProblem(await user.call(`${path}&prefix=2026/`), 400, 'invalid_request');
  assertProblem(
    await user.call(`/api/buckets/${bucket}/archive?selection=sel-none`),
    404,
    'selection_not_found',
  );
  for (const names of [[], [''], Array.from({ length: 10_001 }, String)])
    assertProblem(
      await user.call(`/api/buckets/${bucket}/selections`, { json: { names } }),
      400,
      'invalid_request',
    );
});

test('a download that is not there is 404', async () => {
  assertProblem(await user.call('/api/storage/obj-none/download'), 404, 'object_not_found');
});
