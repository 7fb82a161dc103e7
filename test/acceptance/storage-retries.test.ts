import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { type Answer, Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import {
  assertProblem,
  BOUNDARY,
  bodyOf,
  fieldPart,
  filePart,
  listOf,
  newBucket,
  rawForm,
} from './storage-kit.ts';

let cloud: CloudProcess;
let user: Client;
before(async () => {
  cloud = await CloudProcess.start();
  user = await new Client(cloud.api).newUser();
});
after(() => cloud.stop());

const create = (key: string, json: unknown, caller = user) =>
  caller.call('/api/buckets', { json, headers: { 'idempotency-key': key } });

function send(bucket: string, key: string, form: string): Promise<Answer> {
  const boundary = /^--([\w-]+)/.exec(form)?.[1] ?? BOUNDARY;
  return user.call(`/api/buckets/${bucket}/upload`, {
    headers: { 'idempotency-key': key, 'content-type': `multipart/form-data; boundary=${boundary}` },
    body: form,
  });
}

const same = (answer: Answer) => [answer.status, answer.body];
const formOf = (content: string, name = 'retried') => rawForm(fieldPart('name', name), filePart(content));
const versionsIn = (bucket: string) => listOf(user, bucket, '?include_versions=true');

test('a creation repeated with its key has one effect and one answer', async () => {
  const first = await create('create-1', { name: 'retried' });
  assert.equal(first.status, 201);
  for (let turn = 0; turn < 3; turn++) {
    assert.deepEqual(same(await create('create-1', { name: 'retried' })), same(first));
  }
  assert.equal(bodyOf(await user.call('/api/buckets')).length, 1);
  assertProblem(await create('create-2', { name: 'retried' }), 409, 'bucket_exists');
});

test('the answer is replayed even when the bucket is long gone', async () => {
  const first = await create('gone-1', { name: 'gone' });
  bodyOf(await user.call('/api/buckets/gone', { method: 'DELETE' }));
  assert.deepEqual(same(await create('gone-1', { name: 'gone' })), same(first));
  assertProblem(await user.call('/api/buckets/gone'), 404, 'bucket_not_found');
});

test('a key used with another body is 422 and changes nothing', async () => {
  await create('body-1', { name: 'body-one' });
  assertProblem(await create('body-1', { name: 'body-two' }), 422, 'idempotency_mismatch');
  const more = { name: 'body-one', versioning: true };
  assertProblem(await create('body-1', more), 422, 'idempotency_mismatch');
  assertProblem(await user.call('/api/buckets/body-two'), 404, 'bucket_not_found');
  assert.equal(bodyOf(await user.call('/api/buckets/body-one')).versioning, false);
});

test('a refusal is an answer too: it is replayed, though the reason has gone', async () => {
  await create('taken-0', { name: 'taken' });
  const first = await create('taken-1', { name: 'taken' });
  assertProblem(first, 409, 'bucket_exists');
  bodyOf(await user.call('/api/buckets/taken', { method: 'DELETE' }));
  const again = await create('taken-1', { name: 'taken' });
  assert.deepEqual(same(again), same(first));
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
  assert.match(again.headers.get('content-type') ?? '', /^application\/problem\+json/);
  assertProblem(await create('taken-1', { name: 'free' }), 422, 'idempotency_mismatch');
  assert.equal((await create('taken-2', { name: 'taken' })).status, 201);
});

test('malformed input may be corrected under its key', async () => {
  assertProblem(await create('typo-1', { name: 'A Typo' }), 400, 'invalid_bucket_name');
  assert.equal((await create('typo-1', { name: 'a-typo' })).status, 201);
});

test("another account's key of the same text is another key", async () => {
  const other = await user.newUser();
  const [mine, theirs] = [
    await create('shared-1', { name: 'mine' }),
    await create('shared-1', { name: 'theirs' }, other),
  ];
  assert.deepEqual([mine.status, theirs.status, theirs.body.name], [201, 201, 'theirs']);
});

for (const size of [100, 200_000]) {
  test(`an upload of ${size} bytes repeated with its key is one version`, async () => {
    const bucket = await newBucket(user, { versioning: true });
    const key = `upload-${size}`;
    const form = formOf('x'.repeat(size));
    const first = await send(bucket, key, form);
    assert.equal(first.status, 200);
    assert.deepEqual(same(await send(bucket, key, form)), same(first));
    // A client uses a new boundary for each attempt.
    const again = form.replaceAll(BOUNDARY, 'another-boundary');
    assert.deepEqual(same(await send(bucket, key, again)), same(first));
    assert.equal((await versionsIn(bucket)).length, 1);
    for (const other of [formOf('y'.repeat(size)), formOf('x'.repeat(size), 'other'), formOf('')]) {
      assertProblem(await send(bucket, key, other), 422, 'idempotency_mismatch');
    }
    assertProblem(await send(await newBucket(user), key, form), 422, 'idempotency_mismatch');
    const { version_count } = bodyOf(await user.call(`/api/buckets/${bucket}`));
    assert.deepEqual([version_count, (await versionsIn(bucket)).length], [1, 1]);
    assert.equal((await user.download(first.body.object_id)).length, size);
  });
}

test('without a key every upload counts', async () => {
  const bucket = await newBucket(user, { versioning: true });
  for (let turn = 0; turn < 3; turn++) bodyOf(await user.upload(bucket, 'same', 'same'));
  assert.equal((await versionsIn(bucket)).length, 3);
});

test('while the first upload runs, the second with its key is 409', async () => {
  const bucket = await newBucket(user, { versioning: true });
  const form = formOf('x'.repeat(100_000));
  const { hostname, port } = new URL(cloud.api);
  const socket = connect(Number(port), hostname).setEncoding('latin1');
  const head = [
    `POST /api/buckets/${bucket}/upload HTTP/1.1`,
    `Host: ${hostname}`,
    `X-API-Key: ${user.key}`,
    `Content-Type: multipart/form-data; boundary=${BOUNDARY}`,
    `Content-Length: ${form.length}`,
    'Idempotency-Key: flight-1',
    'Expect: 100-continue',
    'Connection: close',
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  const [go] = await once(socket, 'data');
  assert.match(go, /^HTTP\/1\.1 100 /);
  socket.write(form.slice(0, 50_000));
  assertProblem(await send(bucket, 'flight-1', form), 409, 'idempotency_in_flight');
  assertProblem(await send(bucket, 'flight-1', formOf('other')), 409, 'idempotency_in_flight');
  let text = '';
  socket.on('data', (chunk: string) => {
    text += chunk;
  });
  socket.write(form.slice(50_000));
  await once(socket, 'close');
  assert.match(text, /^HTTP\/1\.1 200 /);
  const replayed = await send(bucket, 'flight-1', form);
  assert.equal(replayed.status, 200);
  assert.ok(text.includes(replayed.body.version_id));
  assert.equal((await versionsIn(bucket)).length, 1);
});

test('an upload that broke off does not use up its key', async () => {
  const bucket = await newBucket(user, { versioning: true });
  const form = formOf('x'.repeat(50_000));
  assert.equal((await send(bucket, 'broken-1', form.slice(0, 20_000))).status, 400);
  bodyOf(await send(bucket, 'broken-1', form));
  assert.equal((await versionsIn(bucket)).length, 1);
});

/** Fifty at once: one effect, and every answer other than 409 is the same. */
function assertOne(answers: readonly Answer[], status: number): void {
  const done = answers.filter((answer) => answer.status === status);
  assert.ok(done.length >= 1);
  for (const answer of answers) {
    if (answer.status === status) assert.deepEqual(answer.body, done[0]?.body);
    else assertProblem(answer, 409, 'idempotency_in_flight');
  }
}

test('fifty creations at once with one key have one effect', async () => {
  const json = { name: 'fifty' };
  const answers = await Promise.all(Array.from({ length: 50 }, () => create('fifty-1', json)));
  assertOne(answers, 201);
  assert.equal((await create('fifty-1', json)).status, 201);
});

for (const size of [100, 100_000]) {
  test(`fifty uploads of ${size} bytes at once with one key have one effect`, async () => {
    const bucket = await newBucket(user, { versioning: true });
    const form = formOf('x'.repeat(size));
    const key = `fifty-${size}`;
    const answers = await Promise.all(Array.from({ length: 50 }, () => send(bucket, key, form)));
    assertOne(answers, 200);
    const { version_count, total_size } = bodyOf(await user.call(`/api/buckets/${bucket}`));
    assert.deepEqual([version_count, total_size], [1, size]);
    assert.equal((await versionsIn(bucket)).length, 1);
  });
}

test('a key must be visible text of a bounded length', async () => {
  for (const key of ['', 'a b', 'x'.repeat(256), '\u00e9']) {
    assertProblem(await create(key, { name: 'bad-key' }), 400, 'invalid_request');
  }
  assertProblem(await user.call('/api/buckets/bad-key'), 404, 'bucket_not_found');
  assert.equal((await create('x'.repeat(255), { name: 'long-key' })).status, 201);
});

test('answers are kept through a crash', async () => {
  const bucket = await newBucket(user, { versioning: true });
  const made = await create('crash-1', { name: 'before-crash' });
  const form = formOf('x'.repeat(30_000));
  const sent = await send(bucket, 'crash-2', form);
  await cloud.crash();
  await cloud.start();
  user = new Client(cloud.api, user.key);
  assert.deepEqual(same(await create('crash-1', { name: 'before-crash' })), same(made));
  assert.deepEqual(same(await send(bucket, 'crash-2', form)), same(sent));
  assert.equal((await versionsIn(bucket)).length, 1);
});
