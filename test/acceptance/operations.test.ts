/** `Prefer: respond-async`: an immediate answer, and the outcome of the call (contract §1). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CheckedClient } from '../harness/checked-client.ts';
import type { Answer, Call } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { cannotRunGuests, idleImage, newVm, removeAll } from './vms-kit.ts';

let cloud: CloudProcess;
let user: CheckedClient;
before(async () => {
  cloud = await CloudProcess.start();
  const anyone = await CheckedClient.open(cloud.api);
  const { api_key } = await anyone.register();
  user = anyone.as(api_key);
});
after(async () => {
  await removeAll(user);
  await cloud.stop();
});

const LATER = { prefer: 'respond-async' };
const create = (name: string, headers: Record<string, string> = LATER) =>
  user.call('/api/buckets', { json: { name }, headers });

/** The path of a new operation. */
function pathOf({ status, headers, body }: Answer): string {
  assert.equal(status, 202, JSON.stringify(body));
  assert.equal(headers.get('preference-applied'), 'respond-async');
  const path = `/api/operations/${body.operation_id}`;
  assert.equal(headers.get('location'), path);
  return path;
}

const ended = async (answer: Answer) => user.expect(200, `${pathOf(answer)}?wait=60`);

test('the call is answered at once, and its own answer is found in the operation', async () => {
  const taken = await create('later');
  assert.equal(taken.body.name, 'createBucket');
  assert.deepEqual([taken.body.state, taken.body.result, taken.body.ended_at], ['running', null, null]);
  const { state, status, result, error, ended_at } = await ended(taken);
  assert.deepEqual([state, status, error], ['succeeded', 201, null]);
  assert.deepEqual(result, await user.expect(200, '/api/buckets/later'));
  assert.match(ended_at, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
});

test('PATCH and DELETE too', async () => {
  await user.expect(201, '/api/buckets', { json: { name: 'patched' } });
  const patch: Call = { method: 'PATCH', json: { versioning: true }, headers: LATER };
  assert.equal((await ended(await user.call('/api/buckets/patched', patch))).result.versioning, true);
  const removed = await user.call('/api/buckets/patched', { method: 'DELETE', headers: LATER });
  assert.equal((await ended(removed)).status, 200);
  await user.refused(404, 'bucket_not_found', ['/api/buckets/patched']);
});

test('what the cloud refuses is the problem in the operation; what is malformed is refused at once', async () => {
  await user.expect(201, '/api/buckets', { json: { name: 'taken' } });
  const taken = await create('taken');
  const { state, status, result, error } = await ended(taken);
  assert.deepEqual([state, status, result, error.code], ['failed', 409, null, 'bucket_exists']);
  assert.equal(error.request_id, taken.headers.get('x-request-id'));
  await user.refused(400, 'invalid_request', ['/api/buckets', { json: { name: 1 }, headers: LATER }]);
});

test('the preference is understood as RFC 7240 writes it, and no other asks for this', async () => {
  const forms = ['Respond-Async', 'wait=10, respond-async', 'respond-async; x="y", handling=lenient'];
  for (const [i, prefer] of forms.entries()) pathOf(await create(`understood-${i}`, { prefer }));
  const others = ['respond', 'respond-asynchronously', 'no-respond-async', 'x=respond-async', ''];
  for (const [i, prefer] of others.entries()) {
    assert.equal((await create(`other-${i}`, { prefer })).status, 201, prefer);
  }
});

test('where there is nothing to be had later it is ignored', async () => {
  await user.expect(200, '/api/buckets', { headers: LATER });
  await user.expect(201, '/api/buckets', { json: { name: 'files' } });
  const form = new FormData();
  form.set('file', new Blob(['x']), 'x.txt');
  await user.expect(200, '/api/buckets/files/upload', { body: form, headers: LATER });
  const json = { username: 'later-user', email: 'later@example.org', password: 'correct horse battery' };
  await user.expect(201, '/api/register', { json, headers: LATER });
});

test('with an Idempotency-Key there is one operation and one effect', async () => {
  const headers = { ...LATER, 'idempotency-key': 'once' };
  const taken = await create('once', headers);
  await ended(taken);
  const again = await create('once', headers);
  assert.deepEqual([again.status, again.body], [202, taken.body]);
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
  assert.equal(pathOf(again), pathOf(taken));
  await user.refused(422, 'idempotency_mismatch', ['/api/buckets', { json: { name: 'two' }, headers }]);
});

test('a key with few rights finds what it asked for, and nothing else', async () => {
  const json = { name: 'narrow', scopes: ['storage:write'] };
  const key = await user.expect(201, '/api/account/access-keys', { json });
  const narrow = user.as(key.api_key);
  const call = { json: { name: 'by-narrow' }, headers: LATER };
  const { operation_id } = await narrow.expect(202, '/api/buckets', call);
  for (const each of [narrow, user]) await each.expect(200, `/api/operations/${operation_id}?wait=60`);
  const wide = { json: { name: 'wide', scopes: ['*'] }, headers: LATER };
  const taken = await user.call('/api/account/access-keys', wide);
  const { result } = await ended(taken);
  for (const each of [narrow, user.as(result.api_key)]) {
    await each.refused(404, 'operation_not_found', [pathOf(taken)]);
  }
});

test('what ends the key that asks is answered with its own answer', async () => {
  const other = user.as((await user.register()).api_key);
  const rotation = { json: {}, headers: LATER };
  const { api_key } = await other.expect(200, '/api/account/api-key', rotation);
  await user.as(api_key).expect(200, '/api/account', { method: 'DELETE', headers: LATER });
});

test('the wait has bounds', async () => {
  const path = pathOf(await create('waited-for'));
  for (const wait of ['61', '-1', 'x', '1.5', '']) {
    await user.refused(400, 'invalid_request', [`${path}?wait=${wait}`]);
  }
});

test('a machine starts meanwhile', { skip: cannotRunGuests() }, async () => {
  const vm = await newVm(user, await idleImage(user.as(ADMIN_KEY)));
  const taken = await user.call(`${vm}/start`, { method: 'POST', headers: LATER });
  assert.equal(taken.body.state, 'running');
  assert.equal((await ended(taken)).result.state, 'running');
  assert.equal((await user.expect(200, vm)).state, 'running');
});

test('after kill -9 an operation is called done when its effect is there, and interrupted when not', async () => {
  const taken: { path: string; bucket: string }[] = [];
  const ask = async (lane: number) => {
    for (let i = 0; ; i++) {
      const bucket = `crash-${lane}-${i}`;
      const answer = await create(bucket).catch(() => undefined);
      if (answer === undefined) return;
      taken.push({ path: pathOf(answer), bucket });
    }
  };
  const lanes = [0, 1, 2, 3, 4, 5, 6, 7].map(ask);
  await eventually('there are some', () => taken.length > 40);
  await sleep(100 * Math.random());
  await cloud.crash();
  await Promise.all(lanes);
  await cloud.start();
  user = (await CheckedClient.open(cloud.api)).as(user.key);
  const names = new Set((await user.expect(200, '/api/buckets')).map(({ name }: { name: string }) => name));
  for (const { path, bucket } of taken) {
    const { state, error } = await user.expect(200, path);
    assert.equal(state, names.has(bucket) ? 'succeeded' : 'failed', bucket);
    if (state === 'failed') assert.equal(error.code, 'operation_interrupted');
  }
});

test('the list has those of the account, newest first, by pages and without their answers', async () => {
  const anyone = await CheckedClient.open(cloud.api);
  const owner = anyone.as((await anyone.register()).api_key);
  const call = { method: 'POST', json: { name: 'k', scopes: ['storage:read'] }, headers: LATER };
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) {
    const { body } = await owner.call('/api/account/access-keys', call);
    ids.unshift(body.operation_id);
    await owner.expect(200, `/api/operations/${body.operation_id}?wait=60`);
  }
  const all = await owner.expect(200, '/api/operations');
  assert.deepEqual(
    all.map(({ operation_id }: { operation_id: string }) => operation_id),
    ids,
  );
  assert.deepEqual([all[0].name, all[0].state, all[0].status], ['createAccessKey', 'succeeded', 201]);
  assert.doesNotMatch(JSON.stringify(all), /clk_|api_key/, 'a list shows no secrets');
  const first = await owner.call('/api/operations?limit=2');
  assert.equal(first.body.length, 2);
  const next = /<([^>]+)>; rel="next"/.exec(first.headers.get('link') ?? '')?.[1] ?? '';
  const [last] = await owner.expect(200, next);
  assert.equal(last.operation_id, ids[2]);
  await owner.refused(400, 'invalid_cursor', ['/api/operations?limit=2&cursor=op-x']);
  const limited = { name: 'own', scopes: ['account:write'] };
  const key = await owner.expect(201, '/api/account/access-keys', { json: limited });
  assert.deepEqual(await anyone.as(key.api_key).expect(200, '/api/operations'), [], "another key's");
  const stranger = anyone.as((await anyone.register()).api_key);
  assert.deepEqual(await stranger.expect(200, '/api/operations'), []);
});
