import assert from 'node:assert/strict';
import { before, beforeEach, test } from 'node:test';
import { type Answer, Client } from '../harness/client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';
import { assertProblem, bodyOf, listOf, newBucket } from './storage-kit.ts';

let cloud: CloudProcess;
let user: Client;
let bucket: string;
before(async () => {
  cloud = await sharedCloud();
  user = await new Client(cloud.api).newUser();
});
beforeEach(async () => {
  bucket = await newBucket(user, { versioning: true });
});

const put = async (content: string, name = 'doc') => bodyOf(await user.upload(bucket, name, content));
const remove = async (id: string, query = '') =>
  bodyOf(await user.call(`/api/storage/${id}${query}`, { method: 'DELETE' }));
const versions = () => listOf(user, bucket, '?include_versions=true');
const text = async (id: string, query = '') => (await user.download(id, query)).toString();
/** The answer for an object's record, and for the following pages. */
async function pagesOf(first: string): Promise<Answer['body'][]> {
  const pages: Answer['body'][] = [];
  for (let path: string | undefined = first; path !== undefined; ) {
    const answer = await user.call(path);
    pages.push(bodyOf(answer));
    path = /^<([^>]+)>; rel="next"$/.exec(answer.headers.get('link') ?? '')?.[1];
  }
  return pages;
}
const counters = async () => {
  const body = bodyOf(await user.call(`/api/buckets/${bucket}`));
  return [body.object_count, body.size, body.version_count, body.total_size];
};
const setVersioning = async (versioning: boolean) =>
  bodyOf(await user.call(`/api/buckets/${bucket}`, { method: 'PATCH', json: { versioning } }));

test('every upload is a version under one id, newest first', async () => {
  const uploads = [await put('one'), await put('two!'), await put('three')];
  assert.equal(new Set(uploads.map(({ object_id }) => object_id)).size, 1);
  const ids = uploads.map(({ version_id }) => version_id);
  assert.equal(new Set(ids).size, 3);
  const listed = await versions();
  assert.deepEqual(
    listed.map((entry) => [entry.version_id, entry.is_latest, entry.is_delete_marker, entry.size]),
    [
      [ids[2], true, false, 5],
      [ids[1], false, false, 4],
      [ids[0], false, false, 3],
    ],
  );
  const id = uploads[0].object_id;
  assert.equal(await text(id), 'three');
  for (const [at, content] of ['one', 'two!', 'three'].entries()) {
    assert.equal(await text(id, `?version_id=${ids[at]}`), content);
  }
  const current = await listOf(user, bucket);
  assert.deepEqual([current.length, current[0].size], [1, 5]);
  assert.deepEqual(await counters(), [1, 5, 3, 12]);
});

test('entries with versions have exactly the members of the contract', async () => {
  const { object_id } = await put('x');
  await remove(object_id);
  const members = ['created_at', 'etag', 'id', 'is_delete_marker', 'is_latest', 'last_accessed', 'metadata'];
  members.push('mime_type', 'name', 'size', 'size_formatted', 'storage_class', 'version_id');
  for (const entry of await versions()) assert.deepEqual(Object.keys(entry).sort(), members);
});

test('names come in order and versions newest first within each', async () => {
  for (const name of ['b', 'a', 'b', 'c', 'a', 'b']) await put(name, name);
  const listed = await versions();
  assert.deepEqual(
    listed.map(({ name, is_latest }) => `${name}${is_latest ? '!' : ''}`),
    ['a!', 'a', 'b!', 'b', 'b', 'c!'],
  );
});

test('a version of another object is not one of this', async () => {
  const one = await put('one', 'one');
  const two = await put('two', 'two');
  const query = `?version_id=${two.version_id}`;
  assertProblem(await user.call(`/api/storage/${one.object_id}/download${query}`), 404, 'version_not_found');
  assertProblem(await user.call(`/api/storage/${one.object_id}/cdn-url${query}`), 404, 'version_not_found');
  const gone = await user.call(`/api/storage/${one.object_id}${query}`, { method: 'DELETE' });
  assertProblem(gone, 404, 'version_not_found');
  for (const wrong of ['', 'ver-', 'latest', '1', `ver-${'a'.repeat(26)}`]) {
    const path = `/api/storage/${one.object_id}/download?version_id=${wrong}`;
    assertProblem(await user.call(path), 404, 'version_not_found');
  }
});

test('a delete puts a marker on top; what is under it stays', async () => {
  const [first, second] = [await put('one'), await put('two')];
  const id = first.object_id;
  const deleted = await remove(id);
  assert.deepEqual([deleted.deleted, deleted.is_delete_marker], [true, true]);
  assertProblem(await user.call(`/api/storage/${id}/download`), 404, 'object_not_found');
  assertProblem(await user.call(`/api/storage/${id}/cdn-url`), 404, 'object_not_found');
  assertProblem(await user.call(`/api/storage/${id}`, { method: 'DELETE' }), 404, 'object_not_found');
  assert.deepEqual(await listOf(user, bucket), []);
  assert.deepEqual(
    (await versions()).map((entry) => [entry.version_id, entry.is_latest, entry.is_delete_marker]),
    [
      [deleted.version_id, true, true],
      [second.version_id, false, false],
      [first.version_id, false, false],
    ],
  );
  assert.equal(await text(id, `?version_id=${first.version_id}`), 'one');
  const marker = `/api/storage/${id}/download?version_id=${deleted.version_id}`;
  assertProblem(await user.call(marker), 404, 'version_not_found');
  assert.deepEqual(await counters(), [0, 0, 2, 6]);
});

test('the record of an object pages through its versions and says when there are more', async () => {
  const { object_id: id } = await put('first');
  const more = Array.from({ length: 1001 }, (_, at) => at);
  const lane = async () => {
    for (let at = more.pop(); at !== undefined; at = more.pop()) await put(`${at}`);
  };
  await Promise.all(Array.from({ length: 16 }, lane));
  const newest = await put('newest');
  await put('other', 'other');
  const all = (await versions()).filter(({ name }) => name === 'doc').map(({ version_id }) => version_id);
  assert.equal(all.length, 1003);

  for (const [query, sizes] of [
    ['', [1000, 3]],
    ['?limit=400', [400, 400, 203]],
  ] as const) {
    const pages = await pagesOf(`/api/storage/${id}${query}`);
    assert.deepEqual(
      pages.map((page) => [page.versions.length, page.versions_truncated, page.version_id, page.size]),
      sizes.map((size, at) => [size, at < sizes.length - 1, newest.version_id, 6]),
    );
    const walked = pages.flatMap((page) => page.versions as { version_id: string }[]);
    assert.deepEqual(
      walked.map(({ version_id }) => version_id),
      all,
    );
  }
  assertProblem(await user.call(`/api/storage/${id}?cursor=x`), 400, 'invalid_cursor');
  for (const limit of ['0', '1001', 'x']) {
    assertProblem(await user.call(`/api/storage/${id}?limit=${limit}`), 400, 'invalid_request');
  }
});

test('removing the marker undeletes', async () => {
  const { object_id, version_id } = await put('back');
  const marker = await remove(object_id);
  await remove(object_id, `?version_id=${marker.version_id}`);
  assert.equal(await text(object_id), 'back');
  assert.deepEqual(
    (await versions()).map((entry) => [entry.version_id, entry.is_latest]),
    [[version_id, true]],
  );
  assert.deepEqual(await counters(), [1, 4, 1, 4]);
});

test('an upload over a marker keeps id and history', async () => {
  const first = await put('before');
  await remove(first.object_id);
  const again = await put('after');
  assert.equal(again.object_id, first.object_id);
  assert.equal(await text(again.object_id), 'after');
  assert.deepEqual(
    (await versions()).map((entry) => entry.is_delete_marker),
    [false, true, false],
  );
});

test('removing the newest version brings back the one before', async () => {
  const [first, second] = [await put('one'), await put('second')];
  await remove(first.object_id, `?version_id=${second.version_id}`);
  assert.equal(await text(first.object_id), 'one');
  assert.deepEqual(await counters(), [1, 3, 1, 3]);
  const path = `/api/storage/${first.object_id}/download?version_id=${second.version_id}`;
  assertProblem(await user.call(path), 404, 'version_not_found');
});

test('removing an older version leaves the current one', async () => {
  const [first, second] = [await put('one'), await put('second')];
  await remove(first.object_id, `?version_id=${first.version_id}`);
  assert.equal(await text(first.object_id), 'second');
  assert.deepEqual(
    (await versions()).map((entry) => entry.version_id),
    [second.version_id],
  );
});

test('removing the last version removes the object', async () => {
  const { object_id, version_id } = await put('only');
  await remove(object_id, `?version_id=${version_id}`);
  assertProblem(await user.call(`/api/storage/${object_id}`), 404, 'object_not_found');
  assert.deepEqual(await versions(), []);
  assert.deepEqual(await counters(), [0, 0, 0, 0]);
  bodyOf(await user.call(`/api/buckets/${bucket}`, { method: 'DELETE' }));
});

test('a newer version removed under which a marker lies leaves the object deleted', async () => {
  const { object_id } = await put('old');
  await remove(object_id);
  const { version_id } = await put('new');
  await remove(object_id, `?version_id=${version_id}`);
  assertProblem(await user.call(`/api/storage/${object_id}/download`), 404, 'object_not_found');
  assert.deepEqual(await listOf(user, bucket), []);
  assert.deepEqual(await counters(), [0, 0, 1, 3]);
});

test('the record shows the current version and all others', async () => {
  const first = await put('one');
  const second = await put('two!');
  const record = bodyOf(await user.call(`/api/storage/${first.object_id}`));
  assert.deepEqual([record.id, record.bucket, record.name, record.size], [first.object_id, bucket, 'doc', 4]);
  assert.equal(record.version_id, second.version_id);
  assert.deepEqual(record.versions, await versions());
  const { version_id } = await remove(first.object_id);
  const deleted = bodyOf(await user.call(`/api/storage/${first.object_id}`));
  assert.deepEqual([deleted.is_delete_marker, deleted.version_id], [true, version_id]);
});

test('without versioning an upload replaces the bytes and keeps the id', async () => {
  await setVersioning(false);
  const first = await put('one');
  const second = await put('second');
  assert.equal(second.object_id, first.object_id);
  assert.notEqual(second.version_id, first.version_id);
  assert.equal(await text(first.object_id), 'second');
  assert.equal((await versions()).length, 1);
  const old = `/api/storage/${first.object_id}/download?version_id=${first.version_id}`;
  assertProblem(await user.call(old), 404, 'version_not_found');
  assert.equal(await text(first.object_id, `?version_id=${second.version_id}`), 'second');
  assert.deepEqual(await counters(), [1, 6, 1, 6]);
  const deleted = await remove(first.object_id);
  assert.deepEqual([deleted.deleted, deleted.is_delete_marker], [true, false]);
  assertProblem(await user.call(`/api/storage/${first.object_id}`), 404, 'object_not_found');
  assert.deepEqual(await versions(), []);
});

test('versions made before versioning was turned off stay', async () => {
  const [first, second] = [await put('one'), await put('two')];
  await setVersioning(false);
  const third = await put('three');
  assert.equal(third.object_id, first.object_id);
  assert.equal(await text(first.object_id), 'three');
  assert.equal(await text(first.object_id, `?version_id=${first.version_id}`), 'one');
  await setVersioning(true);
  const fourth = await put('four');
  const ids = (await versions()).map((entry) => entry.version_id);
  assert.equal(ids[0], fourth.version_id);
  assert.ok(ids.includes(third.version_id), 'turned on again, the current one is kept');
  assert.ok(ids.includes(first.version_id));
  assert.ok(!ids.includes(second.version_id) || ids.length === 4);
});

test('with versioning turned off, a delete does not bring back an older version', async () => {
  const { object_id, version_id } = await put('older');
  await put('newer');
  await setVersioning(false);
  await remove(object_id);
  assertProblem(await user.call(`/api/storage/${object_id}/download`), 404, 'object_not_found');
  assert.deepEqual(await listOf(user, bucket), []);
  assert.equal(await text(object_id, `?version_id=${version_id}`), 'older');
});

test('thirty-two writers on one name: every acknowledged version is there once', async () => {
  const contents = Array.from({ length: 64 }, (_, i) => `content ${i}`);
  const uploads = await Promise.all(contents.map((content) => put(content)));
  assert.equal(new Set(uploads.map(({ object_id }) => object_id)).size, 1);
  const listed = await versions();
  assert.deepEqual(
    listed.map((entry) => entry.version_id).sort(),
    uploads.map(({ version_id }) => version_id).sort(),
  );
  assert.deepEqual(
    listed.map((entry) => entry.is_latest),
    listed.map((_, at) => at === 0),
  );
  for (const [at, { object_id, version_id }] of uploads.entries()) {
    assert.equal(await text(object_id, `?version_id=${version_id}`), contents[at]);
  }
});

test('replaced while being read, a download is old or new, never a mix', async () => {
  await setVersioning(false);
  const contents = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(400_000));
  const { object_id } = await put(contents[0] ?? '');
  const read = async () => {
    for (let turn = 0; turn < 12; turn++) {
      const got = await text(object_id);
      assert.ok(contents.includes(got), `${got.length} bytes of ${new Set(got).size} kinds`);
    }
  };
  const write = async () => {
    for (let turn = 0; turn < 12; turn++) await put(contents[turn % 4] ?? '');
  };
  await Promise.all([read(), read(), write(), write()]);
});

const patch = (id: string, json: Readonly<Record<string, unknown>>, ifMatch = '*') =>
  user.call(`/api/storage/${id}`, { method: 'PATCH', json, headers: { 'if-match': ifMatch } });

test('other metadata and another type are a new version of the same bytes', async () => {
  const made = bodyOf(await user.upload(bucket, 'doc', 'words', { metadata: '{"a":1}' }));
  const id = made.object_id;
  const changed = bodyOf(await patch(id, { metadata: { b: [2] }, mime_type: 'text/html; charset=utf-8' }));
  assert.notEqual(changed.version_id, made.version_id);
  assert.deepEqual([changed.etag, changed.size, changed.metadata], [made.etag, 5, { b: [2] }]);
  const { headers } = await user.fetch(`/api/storage/${id}/download`);
  assert.equal(headers.get('content-type'), 'text/html; charset=utf-8');
  assert.equal(await text(id), 'words');
  assert.deepEqual(
    (await versions()).map(({ metadata, mime_type, is_latest }) => [metadata, mime_type, is_latest]),
    [
      [{ b: [2] }, 'text/html; charset=utf-8', true],
      [{ a: 1 }, made.mime_type, false],
    ],
  );
  assert.deepEqual(await counters(), [1, 5, 2, 10]);
  // Setting an existing value creates no version.
  assert.equal(bodyOf(await patch(id, { metadata: { b: [2] } })).version_id, changed.version_id);
  assert.equal(bodyOf(await patch(id, {})).version_id, changed.version_id);
  assert.equal(bodyOf(await patch(id, { metadata: null })).metadata, null);
  await remove(id, `?version_id=${made.version_id}`);
  assert.equal(await text(id), 'words');
});

test('without versions the change replaces, and large and encrypted bytes stay', async () => {
  for (const encryption of [false, true]) {
    bucket = await newBucket(user, { encryption });
    for (const size of [10, 400_000]) {
      const { object_id: id } = await put('x'.repeat(size), `of-${size}`);
      for (const mark of [1, 2, 3]) bodyOf(await patch(id, { metadata: { mark } }));
      const record = bodyOf(await user.call(`/api/storage/${id}`));
      assert.deepEqual([record.versions.length, record.metadata], [1, { mark: 3 }]);
      assert.equal(await text(id), 'x'.repeat(size));
    }
    assert.deepEqual(await counters(), [2, 400_010, 2, 400_010]);
  }
});

test('of two who change the metadata at once, the second is told', async () => {
  for (const versioning of [true, false]) {
    bucket = await newBucket(user, { versioning });
    const { object_id: id, etag } = await put('words');
    const { headers } = await user.call(`/api/storage/${id}`);
    const seen = String(headers.get('etag'));
    const answers = await Promise.all([1, 2].map((by) => patch(id, { metadata: { by } }, seen)));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 412]);
    const won = answers.find(({ status }) => status === 200);
    const next = await patch(id, { metadata: null }, `"other", ${won?.headers.get('etag')}`);
    assert.equal(bodyOf(next).metadata, null);
    bodyOf(await patch(id, { metadata: { by: 3 } }, `"${etag}"`));
  }
});

test('a change that is refused names the rule and changes nothing', async () => {
  const first = await put('one');
  const second = await put('two');
  const id = first.object_id;
  for (const [json, field] of [
    [{ metadata: ['a'] }, 'metadata'],
    [{ metadata: 'a' }, 'metadata'],
    [{ metadata: { a: 'x'.repeat(8192) } }, 'metadata'],
    [{ mime_type: 'no type' }, 'mime_type'],
    [{ mime_type: `a/${'b'.repeat(260)}` }, 'mime_type'],
    [{ mime_type: null }, 'mime_type'],
  ] as const) {
    const answer = await patch(id, json);
    assertProblem(answer, 400, 'invalid_request');
    assert.equal(answer.body.errors[0].field, field);
  }
  const stale = await patch(id, { metadata: { a: 1 }, version_id: first.version_id });
  assertProblem(stale, 412, 'precondition_failed');
  for (const tag of [first.version_id, first.etag, 'else']) {
    assertProblem(await patch(id, { metadata: { a: 1 } }, `"${tag}"`), 412, 'precondition_failed');
  }
  assert.equal((await versions()).length, 2);
  bodyOf(await patch(id, { metadata: { a: 1 }, version_id: second.version_id }));
  await remove(id);
  assertProblem(await patch(id, { metadata: { a: 2 } }), 404, 'object_not_found');
});
