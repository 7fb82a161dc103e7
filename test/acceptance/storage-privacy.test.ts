import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { type Answer, Client } from '../harness/client.ts';
import { ADMIN_KEY, type CloudProcess } from '../harness/cloud-process.ts';
import { openSocket, parseResponse, readToEnd } from '../harness/raw-http.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';
import { assertProblem, bodyOf, listOf, newBucket } from './storage-kit.ts';

let cloud: CloudProcess;
let owner: Client;
let other: Client;
let bucket: string;
let object: Answer['body'];
before(async () => {
  cloud = await sharedCloud();
  owner = await new Client(cloud.api).newUser();
  other = await owner.newUser();
  bucket = await newBucket(owner, { versioning: true });
  object = bodyOf(await owner.upload(bucket, 'docs/secret.txt', 'secret'));
});

type Call = (caller: Client, name: string) => Promise<Answer>;

const BUCKET_CALLS: Record<string, Call> = {
  read: (caller, name) => caller.call(`/api/buckets/${name}`),
  change: (caller, name) =>
    caller.call(`/api/buckets/${name}`, { method: 'PATCH', json: { versioning: false } }),
  delete: (caller, name) => caller.call(`/api/buckets/${name}`, { method: 'DELETE' }),
  force: (caller, name) => caller.call(`/api/buckets/${name}?force=true`, { method: 'DELETE' }),
  upload: (caller, name) => caller.upload(name, 'planted', 'x'),
  list: (caller, name) => caller.call(`/api/buckets/${name}/files`),
  page: (caller, name) => caller.call(`/api/buckets/${name}/files?limit=1&include_versions=true`),
};

const version = () => `?version_id=${object.version_id}`;
const OBJECT_CALLS: Record<string, Call> = {
  read: (caller, id) => caller.call(`/api/storage/${id}`),
  download: (caller, id) => caller.call(`/api/storage/${id}/download`),
  head: async (caller, id) => {
    const { status, headers } = await caller.fetch(`/api/storage/${id}/download`, { method: 'HEAD' });
    return { status, headers, body: {} };
  },
  version: (caller, id) => caller.call(`/api/storage/${id}/download${version()}`),
  range: (caller, id) => caller.call(`/api/storage/${id}/download`, { headers: { range: 'bytes=99-' } }),
  link: (caller, id) => caller.call(`/api/storage/${id}/cdn-url`),
  'link to a version': (caller, id) => caller.call(`/api/storage/${id}/cdn-url${version()}`),
  delete: (caller, id) => caller.call(`/api/storage/${id}`, { method: 'DELETE' }),
  'delete of a version': (caller, id) => caller.call(`/api/storage/${id}${version()}`, { method: 'DELETE' }),
};

/** The caller's rate limit; nothing about the resource. */
const OF_THE_CALL = /^(x-)?ratelimit/;

/** Everything visible to the caller, except parts that differ in any two answers. */
function seen({ status, headers, body }: Answer, name: string): unknown {
  const names = [...headers.keys()].filter((header) => !OF_THE_CALL.test(header));
  const text = JSON.stringify(body)
    .replaceAll(name, 'NAME')
    .replaceAll(body.request_id ?? '-', 'ID');
  return { status, names, text };
}

for (const [kind, call] of Object.entries(BUCKET_CALLS)) {
  test(`someone else's bucket cannot be told from a missing one: ${kind}`, async () => {
    const missing = bucket.replaceAll(/\d/g, '0');
    assert.notEqual(missing, bucket);
    for (const caller of [other, owner.as(ADMIN_KEY)]) {
      const theirs = await call(caller, bucket);
      assertProblem(theirs, 404, 'bucket_not_found');
      assert.deepEqual(seen(theirs, bucket), seen(await call(caller, missing), missing));
    }
  });
}

for (const [kind, call] of Object.entries(OBJECT_CALLS)) {
  test(`someone else's object cannot be told from a missing one: ${kind}`, async () => {
    // Well-formed, and created at the same time.
    const missing = `${object.object_id.slice(0, -4)}${object.object_id.endsWith('0000') ? '1111' : '0000'}`;
    for (const caller of [other, owner.as(ADMIN_KEY)]) {
      const theirs = await call(caller, object.object_id);
      assert.equal(theirs.status, 404);
      if (kind !== 'head') assertProblem(theirs, 404, 'object_not_found');
      assert.deepEqual(seen(theirs, object.object_id), seen(await call(caller, missing), missing));
    }
  });
}

test('whether the body had come by then does not show in the head of a refusal', async () => {
  const end = '--x--\r\n';
  const head = [
    'POST /api/buckets/absent/upload HTTP/1.1',
    'Host: localhost',
    `X-API-Key: ${other.key}`,
    'Content-Type: multipart/form-data; boundary=x',
    `Content-Length: ${end.length}`,
  ].join('\r\n');
  const headers = async (body: string) => {
    const socket = await openSocket(cloud.api);
    socket.write(`${head}\r\n\r\n${body}`);
    const answer = parseResponse(await readToEnd(socket, 1000));
    assertProblem(answer, 404, 'bucket_not_found');
    return [...answer.headers.keys()].sort();
  };
  assert.deepEqual(await headers(''), await headers(end));
});

test('after all those attempts everything is as it was', async () => {
  const { versioning, object_count, version_count } = bodyOf(await owner.call(`/api/buckets/${bucket}`));
  assert.deepEqual([versioning, object_count, version_count], [true, 1, 1]);
  const [entry] = await listOf(owner, bucket, '?include_versions=true');
  assert.deepEqual([entry.name, entry.last_accessed], ['docs/secret.txt', null]);
  assert.equal((await owner.download(object.object_id)).toString(), 'secret');
});

test('lists hold only what is the caller’s', async () => {
  const stranger = await owner.newUser();
  assert.deepEqual(bodyOf(await stranger.call('/api/buckets')), []);
  const name = await newBucket(stranger);
  const names = bodyOf(await stranger.call('/api/buckets')).map((each: { name: string }) => each.name);
  assert.deepEqual(names, [name]);
});

test('one name in two accounts is two buckets', async () => {
  const clients = [await owner.newUser(), await owner.newUser()];
  for (const [at, client] of clients.entries()) {
    await client.call('/api/buckets', { json: { name: 'same' } });
    bodyOf(await client.upload('same', 'file', `of ${at}`));
  }
  for (const [at, client] of clients.entries()) {
    const entries = await listOf(client, 'same');
    assert.equal(entries.length, 1);
    assert.equal((await client.download(entries[0].id)).toString(), `of ${at}`);
  }
});

for (const key of [undefined, 'clk_wrong']) {
  test(`${key ? 'a wrong key' : 'no key'} is 401 before anything else`, async () => {
    const caller = owner.as(key);
    const code = key ? 'invalid_api_key' : 'missing_api_key';
    for (const name of [bucket, 'absent', 'NOT-A-NAME']) {
      for (const call of Object.values(BUCKET_CALLS)) assertProblem(await call(caller, name), 401, code);
    }
    for (const [kind, call] of Object.entries(OBJECT_CALLS)) {
      const answer = await call(caller, object.object_id);
      assert.equal(answer.status, 401);
      if (kind !== 'head') assertProblem(answer, 401, code);
    }
    assertProblem(await caller.call('/api/buckets'), 401, code);
    assertProblem(await caller.call('/api/buckets', { json: { name: 'abc' } }), 401, code);
  });
}

async function keyWith(scopes: string[], buckets?: { name: string; prefix?: string }[]): Promise<Client> {
  const json = { name: scopes.join(' '), scopes, ...(buckets ? { buckets } : {}) };
  const { status, body } = await owner.call('/api/account/access-keys', { json });
  assert.equal(status, 201, JSON.stringify(body));
  return owner.as(body.api_key);
}

const READS: Record<string, Call> = { read: BUCKET_CALLS.read, list: BUCKET_CALLS.list } as Record<
  string,
  Call
>;

test('storage:read reads and does not write', async () => {
  const reader = await keyWith(['storage:read']);
  for (const call of Object.values(READS)) assert.equal((await call(reader, bucket)).status, 200);
  assert.equal((await reader.download(object.object_id)).toString(), 'secret');
  bodyOf(await reader.call(`/api/storage/${object.object_id}/cdn-url`));
  for (const kind of ['change', 'delete', 'force', 'upload'] as const) {
    const call = BUCKET_CALLS[kind] ?? assert.fail();
    assertProblem(await call(reader, bucket), 403, 'scope_required');
  }
  assertProblem(await reader.call('/api/buckets', { json: { name: 'abc' } }), 403, 'scope_required');
  const gone = await reader.call(`/api/storage/${object.object_id}`, { method: 'DELETE' });
  assertProblem(gone, 403, 'scope_required');
});

test('storage:write writes and does not read', async () => {
  const writer = await keyWith(['storage:write']);
  const { object_id } = bodyOf(await writer.upload(bucket, 'written', 'x'));
  for (const path of [
    '/api/buckets',
    `/api/buckets/${bucket}`,
    `/api/buckets/${bucket}/files`,
    `/api/storage/${object_id}`,
    `/api/storage/${object_id}/download`,
    `/api/storage/${object_id}/cdn-url`,
  ]) {
    assertProblem(await writer.call(path), 403, 'scope_required');
  }
  bodyOf(await writer.call(`/api/storage/${object_id}`, { method: 'DELETE' }));
});

test('other scopes do nothing here, and storage:* does all of it', async () => {
  for (const scope of ['compute:*', 'account:*', 'billing:read', 'databases:*']) {
    const caller = await keyWith([scope]);
    assertProblem(await caller.call(`/api/buckets/${bucket}`), 403, 'scope_required');
    assertProblem(await caller.upload(bucket, 'x', 'x'), 403, 'scope_required');
  }
  const all = await keyWith(['storage:*']);
  const { object_id } = bodyOf(await all.upload(bucket, 'all', 'x'));
  assert.equal((await all.download(object_id)).toString(), 'x');
});

test('a key limited to a bucket sees no other', async () => {
  const second = await newBucket(owner);
  const elsewhere = bodyOf(await owner.upload(second, 'a', 'a'));
  const limited = await keyWith(['storage:*'], [{ name: bucket }]);
  const names = bodyOf(await limited.call('/api/buckets')).map((each: { name: string }) => each.name);
  assert.deepEqual(names, [bucket]);
  assert.equal((await limited.download(object.object_id)).toString(), 'secret');
  bodyOf(await limited.upload(bucket, 'limited', 'x'));
  for (const kind of ['read', 'list', 'upload'] as const) {
    const call = BUCKET_CALLS[kind] ?? assert.fail();
    const theirs = await call(limited, second);
    assertProblem(theirs, 404, 'bucket_not_found');
    assert.deepEqual(seen(theirs, second), seen(await call(limited, 'absent'), 'absent'));
  }
  for (const kind of ['read', 'download', 'link', 'delete'] as const) {
    const call = OBJECT_CALLS[kind] ?? assert.fail();
    assertProblem(await call(limited, elsewhere.object_id), 404, 'object_not_found');
  }
  for (const kind of ['change', 'delete', 'force'] as const) {
    const call = BUCKET_CALLS[kind] ?? assert.fail();
    assertProblem(await call(limited, bucket), 403, 'scope_required');
  }
  assertProblem(await limited.call('/api/buckets', { json: { name: 'mine' } }), 403, 'scope_required');
});

test('a key limited to a prefix touches no other name', async () => {
  const limited = await keyWith(['storage:*'], [{ name: bucket, prefix: 'in/' }]);
  const inside = bodyOf(await limited.upload(bucket, 'in/a', 'inside'));
  assert.equal((await limited.download(inside.object_id)).toString(), 'inside');
  for (const name of ['out', 'in', 'inn/a', '../in/a', 'IN/a']) {
    for (const content of ['x', 'x'.repeat(100_000)]) {
      assertProblem(await limited.upload(bucket, name, content), 403, 'scope_required');
    }
  }
  for (const call of Object.values(OBJECT_CALLS)) {
    assert.equal((await call(limited, object.object_id)).status, 404);
  }
  assertProblem(await limited.call(`/api/buckets/${bucket}/files`), 403, 'scope_required');
  assertProblem(await limited.call(`/api/buckets/${bucket}/files?prefix=i`), 403, 'scope_required');
  const entries = await listOf(limited, bucket, '?prefix=in/');
  assert.deepEqual(
    entries.map(({ name }) => name),
    ['in/a'],
  );
  assert.deepEqual(await listOf(owner, bucket, '?prefix=out'), []);
  bodyOf(await limited.call(`/api/storage/${inside.object_id}`, { method: 'DELETE' }));
});

test('a revoked key can do nothing', async () => {
  const { body } = await owner.call('/api/account/access-keys', { json: { name: 'k', scopes: ['*'] } });
  const caller = owner.as(body.api_key);
  bodyOf(await caller.call(`/api/buckets/${bucket}`));
  bodyOf(await owner.call(`/api/account/access-keys/${body.id}`, { method: 'DELETE' }));
  assertProblem(await caller.call(`/api/buckets/${bucket}`), 401, 'invalid_api_key');
});
