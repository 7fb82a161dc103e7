/** The owner of an Idempotency-Key: an answer is only replayed to the credential that got it. */
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { type Answer, type Call, Client, sessionOf } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';

const cloud = await CloudProcess.start();
const tight = await CloudProcess.start({ env: { CLOUDLET_KEPT_ANSWERS: '3' } });
after(async () => {
  await cloud.stop();
  await tight.stop();
});
const client = await CheckedClient.open(cloud.api);
const PASSWORD = 'correct horse battery';
const KEYS = '/api/account/access-keys';

const under = (key: string, json: unknown, headers: Record<string, string> = {}): Call => ({
  json,
  headers: { 'idempotency-key': key, ...headers },
});
const isReplay = ({ headers }: Answer) => headers.get('idempotent-replayed') === 'true';

async function newUser() {
  const { api_key, username } = await client.register();
  return { user: client.as(api_key), username };
}

test('an access key does not get what the full key was answered', async () => {
  const { user } = await newUser();
  const narrow = { name: 'narrow', scopes: ['account:write'] };
  const limited = client.as((await user.expect(201, KEYS, { json: narrow })).api_key);
  const wide = { name: 'wide', scopes: ['account:write'] };
  const first = await user.expect(201, KEYS, under('mint', wide));
  const theirs = await limited.call(KEYS, under('mint', wide));
  assert.equal(isReplay(theirs), false);
  assert.notEqual(theirs.body.api_key, first.api_key);
  assert.deepEqual(await user.expect(201, KEYS, under('mint', wide)), first);
});

test('a PATCH and a DELETE have one effect and one answer too', async () => {
  const { user } = await newUser();
  const create = () => user.expect(201, '/api/buckets', { json: { name: 'again' } });
  await create();
  const patch = { method: 'PATCH', ...under('patch', { versioning: true }) };
  const patched = await user.expect(200, '/api/buckets/again', patch);
  await user.expect(200, '/api/buckets/again', { method: 'PATCH', json: { versioning: false } });
  assert.deepEqual(await user.expect(200, '/api/buckets/again', patch), patched);
  assert.equal((await user.expect(200, '/api/buckets/again')).versioning, false);
  const removal = { method: 'DELETE', headers: { 'idempotency-key': 'delete' } };
  const removed = await user.expect(200, '/api/buckets/again', removal);
  await create();
  const repeated = await user.call('/api/buckets/again', removal);
  assert.deepEqual([repeated.status, repeated.body, isReplay(repeated)], [200, removed, true]);
  await user.expect(200, '/api/buckets/again');
});

test('the limits of an access key hold for its retries as for its first call', async () => {
  const { user } = await newUser();
  await user.expect(201, '/api/buckets', { json: { name: 'open' } });
  const json = { name: 'one-bucket', scopes: ['storage:write'], buckets: [{ name: 'open' }] };
  const limited = client.as((await user.expect(201, KEYS, { json })).api_key);
  await user.expect(201, '/api/buckets', under('secret-1', { name: 'secret' }));
  const refused = await limited.call('/api/buckets', under('secret-1', { name: 'secret' }));
  assert.deepEqual([refused.status, refused.body.code, isReplay(refused)], [403, 'scope_required', false]);
});

test('a session and a key have their own', async () => {
  const { user, username } = await newUser();
  const session = sessionOf(await client.call('/api/login', { json: { username, password: PASSWORD } }));
  await user.expect(201, '/api/buckets', under('both', { name: 'both' }));
  const call = under('both', { name: 'both' }, session);
  const bySession = new Client(cloud.api); // a replayed refusal has the request id of the first one
  const first = await bySession.call('/api/buckets', call);
  assert.deepEqual([first.status, isReplay(first)], [409, false]);
  assert.ok(isReplay(await bySession.call('/api/buckets', call)));
});

test('a retry with the new key after a rotation finds its answer, one with the old key has no effect', async () => {
  const { user: old } = await newUser();
  const first = await old.expect(201, '/api/buckets', under('before', { name: 'before' }));
  const rotation = { json: { overlap_seconds: 600 } };
  const { api_key } = await old.expect(200, '/api/account/api-key', rotation);
  const now = client.as(api_key);
  const again = await now.call('/api/buckets', under('before', { name: 'before' }));
  assert.deepEqual([again.status, again.body, isReplay(again)], [201, first, true]);
  await now.expect(200, '/api/buckets/before', { method: 'DELETE' });
  const late = under('before', { name: 'before' });
  await old.refused(422, 'idempotency_mismatch', ['/api/buckets', late]);
  // Its later calls are its own.
  const own = await old.expect(201, '/api/buckets', under('after', { name: 'after' }));
  assert.deepEqual(await old.expect(201, '/api/buckets', under('after', { name: 'after' })), own);
  await now.refused(409, 'bucket_exists', ['/api/buckets', under('after', { name: 'after' })]);
});

test('a key that ends does not learn the new one by repeating the rotation', async () => {
  const { user: old } = await newUser();
  const rotate = under('rotate', { overlap_seconds: 600 });
  const { api_key } = await old.expect(200, '/api/account/api-key', rotate);
  await old.refused(422, 'idempotency_mismatch', ['/api/account/api-key', rotate]);
  assert.equal((await client.as(api_key).expect(200, '/api/account/api-key', rotate)).api_key, api_key);
});

test('without a credential a success is kept, and a refusal is not', async () => {
  const json = { username: 'kept-once', email: 'kept-once@example.org', password: PASSWORD };
  const first = await client.expect(201, '/api/register', under('sign-up', json));
  const again = await client.call('/api/register', under('sign-up', json));
  assert.deepEqual([again.status, again.body, isReplay(again)], [201, first, true]);
  for (let turn = 0; turn < 3; turn++) {
    const refused = await client.call('/api/register', under('taken', json));
    assert.deepEqual([refused.status, refused.body.code], [409, 'username_taken']);
    assert.equal(isReplay(refused), false);
  }
});

test('an account has a bounded number of answers kept, the newest', async () => {
  const caller = await CheckedClient.open(tight.api);
  const user = caller.as((await caller.register()).api_key);
  const create = (i: number) => user.call('/api/buckets', under(`key-${i}`, { name: `bucket-${i}` }));
  for (let i = 0; i < 10; i++) assert.equal((await create(i)).status, 201);
  assert.ok(isReplay(await create(9)));
  assert.equal((await create(0)).body.code, 'bucket_exists');
});

/** The bytes of the metadata and its log, if they are files. */
function metadataBytes(): number {
  const files = ['metadata.db', 'metadata.db-wal'].map((file) => join(cloud.dataDir, file));
  return files.reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0);
}

/** Some 3.5 MiB of rows. */
const MANY =
  'with recursive c(n) as (select 1 union all select n + 1 from c where n < 58) select hex(randomblob(32000)) from c';

test('answers do not fill the metadata: what only reads is not kept, and of the rest 16 KiB', async () => {
  const { user } = await newUser();
  const made = await user.expect(201, '/api/databases', { json: { name: 'kept', engine: 'sqlite' } });
  const path = `/api/databases/${made.database_id}/query`;
  await user.expect(200, path, { json: { statement: 'create table t (n)', read_only: false } });
  const before = metadataBytes();
  const read = { statement: MANY };
  const first = await user.call(path, under('read', read));
  const second = await user.call(path, under('read', read));
  assert.deepEqual([first.status, second.status, isReplay(second)], [200, 200, false]);
  assert.notDeepEqual(second.body.rows, first.body.rows, 'it was run again');
  const early = await user.call(path, { json: read, headers: { prefer: 'respond-async' } });
  assert.deepEqual([early.status, early.body.row_count], [200, 58], 'answered at once');

  const write = {
    statement: 'insert into t select hex(randomblob(8000)) from (select 1 union select 2) returning n',
    read_only: false,
  };
  const done = await user.call(path, under('write', write));
  assert.deepEqual([done.status, done.body.rows.length], [200, 2]);
  const raw = new Client(cloud.api, user.key);
  const again = await raw.call(path, under('write', write));
  assert.deepEqual([again.status, isReplay(again), again.body.response_not_kept], [200, true, true]);
  const count = await user.expect(200, path, { json: { statement: 'select count(*) from t' } });
  assert.deepEqual(count.rows, [[2]], 'one effect');
  const later = { json: write, headers: { prefer: 'respond-async' } };
  const { operation_id: id } = (await user.call(path, later)).body;
  const ended = await user.expect(200, `/api/operations/${id}?wait=60`);
  assert.deepEqual([ended.status, ended.result.response_not_kept], [200, true]);
  const other = await user.call(path, under('write', { ...write, statement: 'select 1' }));
  assert.deepEqual([other.status, other.body.code], [422, 'idempotency_mismatch']);
  assert.ok(metadataBytes() - before < 2 ** 20, `${metadataBytes() - before} bytes more`);
});
