import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, beforeEach, test } from 'node:test';
import { type Answer, Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { blobFiles, eventually } from '../harness/waiting.ts';
import {
  assertProblem,
  BOUNDARY,
  bodyOf,
  fieldPart,
  filePart,
  listOf,
  newBucket,
  rawForm,
  sendRaw,
} from './storage-kit.ts';

let cloud: CloudProcess;
let user: Client;
let bucket: string;
before(async () => {
  cloud = await CloudProcess.start({ env: { CLOUDLET_MAX_OBJECT_BYTES: '300000' } });
  user = await new Client(cloud.api).newUser();
});
beforeEach(async () => {
  bucket = await newBucket(user, { versioning: true });
});
after(() => cloud.stop());

async function assertNothingStored(): Promise<void> {
  assert.deepEqual(await listOf(user, bucket, '?include_versions=true'), []);
  const { object_count, size, version_count, total_size } = bodyOf(await user.call(`/api/buckets/${bucket}`));
  assert.deepEqual([object_count, size, version_count, total_size], [0, 0, 0, 0]);
}

async function assertRefused(answer: Answer, status: number, code: string): Promise<void> {
  assertProblem(answer, status, code);
  await assertNothingStored();
}

const BIG = 'x'.repeat(100_000);

test('two files in one form are refused, and neither is stored', async () => {
  for (const [first, second] of [
    ['one', 'two'],
    [BIG, 'two'],
    ['one', BIG],
    [BIG, BIG],
  ] as const) {
    const form = rawForm(filePart(first, '1.txt'), filePart(second, '2.txt'));
    await assertRefused(await sendRaw(user, bucket, form), 400, 'invalid_request');
  }
});

test('a second file under another field name is refused too', async () => {
  const other = filePart('two', '2.txt').replace('name="file"', 'name="other"');
  await assertRefused(await sendRaw(user, bucket, rawForm(filePart('1'), other)), 400, 'invalid_request');
});

test('a form without a file is refused', async () => {
  await assertRefused(await sendRaw(user, bucket, rawForm(fieldPart('name', 'a'))), 400, 'invalid_request');
  const asField = rawForm(fieldPart('file', 'bytes'));
  await assertRefused(await sendRaw(user, bucket, asField), 400, 'invalid_request');
  const wrongName = rawForm(filePart('bytes').replace('name="file"', 'name="upload"'));
  await assertRefused(await sendRaw(user, bucket, wrongName), 400, 'invalid_request');
  const { status } = await sendRaw(user, bucket, `--${BOUNDARY}--\r\n`);
  assert.equal(status, 400);
  await assertNothingStored();
});

const BAD_METADATA: Record<string, string> = {
  'an array': '[1]',
  'a string': '"text"',
  'a number': '5',
  true: 'true',
  null: 'null',
  'not JSON': '{author: Ada}',
  'cut short': '{"author":"Ada"',
  'followed by more': '{} {}',
  'over 8 KiB': `{"k":"${'v'.repeat(8192 - 7)}"}`,
  'over 8 KiB in UTF-8': `{"k":"${'é'.repeat(4096)}"}`,
  'over 64 KiB': `{"k":"${'v'.repeat(70_000)}"}`,
  empty: '',
  polluting: '{"__proto__":{"polluted":true}}',
  'polluting inside': '{"a":{"__proto__":{"polluted":true}}}',
  'too deep': `${'{"a":'.repeat(1500)}1${'}'.repeat(1500)}`,
};
for (const [kind, metadata] of Object.entries(BAD_METADATA)) {
  for (const content of ['small', BIG]) {
    test(`metadata ${kind} is refused after ${content.length} bytes`, async () => {
      const form = rawForm(filePart(content), fieldPart('metadata', metadata));
      const answer = await sendRaw(user, bucket, form);
      await assertRefused(answer, 400, 'invalid_request');
      assert.equal(answer.body.errors[0].field, 'metadata');
    });
  }
}

for (const storageClass of ['GLACIER', 'standard', 'STANDARD ', '', 'null', 'STANDARD,STANDARD']) {
  test(`the storage class ${JSON.stringify(storageClass)} is refused, before or after the file`, async () => {
    const field = fieldPart('storage_class', storageClass);
    for (const form of [rawForm(field, filePart('x')), rawForm(filePart('x'), field)]) {
      const answer = await sendRaw(user, bucket, form);
      await assertRefused(answer, 400, 'invalid_request');
      assert.equal(answer.body.errors[0].field, 'storage_class');
    }
  });
}

test('all fields that are wrong are named at once', async () => {
  const form = rawForm(fieldPart('metadata', '[]'), filePart('x'), fieldPart('storage_class', 'X'));
  const answer = await sendRaw(user, bucket, form);
  await assertRefused(answer, 400, 'invalid_request');
  assert.deepEqual(answer.body.errors.map(({ field }: { field: string }) => field).sort(), [
    'metadata',
    'storage_class',
  ]);
});

test('a field given twice is refused', async () => {
  for (const field of ['name', 'metadata', 'storage_class']) {
    const value = field === 'metadata' ? '{}' : 'STANDARD';
    const form = rawForm(fieldPart(field, value), filePart('x'), fieldPart(field, value));
    await assertRefused(await sendRaw(user, bucket, form), 400, 'invalid_request');
  }
});

test('a form of very many fields is refused', async () => {
  const fields = Array.from({ length: 2000 }, (_, i) => fieldPart(`f${i}`, 'x'));
  const { status } = await sendRaw(user, bucket, rawForm(filePart('x'), ...fields));
  assert.equal(status, 400);
  await assertNothingStored();
});

test('a name may be wrong only at the end of the form, and still nothing is stored', async () => {
  for (const name of ['', 'a\0b', 'é'.repeat(513)]) {
    for (const content of ['small', BIG]) {
      const form = rawForm(filePart(content), fieldPart('name', name));
      await assertRefused(await sendRaw(user, bucket, form), 400, 'invalid_object_name');
    }
  }
});

for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded', 'image/png']) {
  test(`an upload as ${type} is 415`, async () => {
    const answer = await user.call(`/api/buckets/${bucket}/upload`, {
      headers: { 'content-type': type },
      body: rawForm(filePart('x')),
    });
    await assertRefused(answer, 415, 'unsupported_media_type');
  });
}

test('an upload with no type at all is 415', async () => {
  const body = new Blob([rawForm(filePart('x'))]);
  const answer = await user.call(`/api/buckets/${bucket}/upload`, { body });
  await assertRefused(answer, 415, 'unsupported_media_type');
});

test('a form without its boundary is refused', async () => {
  const noBoundary = ['', ';', '; boundary=', '; boundary=""', '; charset=utf-8'];
  for (const type of noBoundary.map((rest) => `multipart/form-data${rest}`)) {
    const answer = await user.call(`/api/buckets/${bucket}/upload`, {
      headers: { 'content-type': type },
      body: rawForm(filePart('x')),
    });
    assert.ok(answer.status === 400 || answer.status === 415, `${type}: ${answer.status}`);
    assertProblem(answer, answer.status, answer.body.code);
    await assertNothingStored();
  }
});

test('a form with another boundary than announced is refused', async () => {
  const form = rawForm(filePart('x')).replaceAll(BOUNDARY, 'something-else');
  const answer = await sendRaw(user, bucket, form);
  assert.equal(answer.status, 400);
  assertProblem(answer, 400, answer.body.code);
  await assertNothingStored();
});

test('a form cut anywhere is refused', async () => {
  const whole = rawForm(fieldPart('name', 'cut'), filePart(BIG), fieldPart('metadata', '{"a":1}'));
  const ending = `--${BOUNDARY}--\r\n`.length;
  const cuts = [0, 1, 10, 60, 100, 150, 300, 5000, 100_100, whole.length - ending, whole.length - 6];
  for (const cut of cuts) {
    const answer = await sendRaw(user, bucket, whole.slice(0, cut));
    assert.equal(answer.status, 400, `cut at ${cut}`);
    assertProblem(answer, 400, answer.body.code);
    await assertNothingStored();
  }
});

test('an object over the limit is 413, at the limit it is stored', async () => {
  await assertRefused(await user.upload(bucket, 'big', Buffer.alloc(300_001)), 413, 'payload_too_large');
  assert.equal(bodyOf(await user.upload(bucket, 'big', Buffer.alloc(300_000))).size, 300_000);
});

test('a client that goes away in the middle leaves nothing behind', async () => {
  const { hostname, port } = new URL(cloud.api);
  const form = rawForm(fieldPart('name', 'gone'), filePart('x'.repeat(250_000)));
  const head = [
    `POST /api/buckets/${bucket}/upload HTTP/1.1`,
    `Host: ${hostname}`,
    `X-API-Key: ${user.key}`,
    `Content-Type: multipart/form-data; boundary=${BOUNDARY}`,
    `Content-Length: ${form.length}`,
  ];
  const blobs = () => blobFiles(cloud.dataDir);
  const before = blobs();
  const vanish = async (sent: number, moment: () => Promise<unknown>) => {
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    await new Promise((resolve) =>
      socket.write(`${head.join('\r\n')}\r\n\r\n${form.slice(0, sent)}`, resolve),
    );
    await moment();
    const closed = once(socket, 'close');
    socket.end().destroy();
    await closed;
  };
  // Neither contains enough to start a file.
  for (const sent of [200, 20_000]) await vanish(sent, async () => {});
  await vanish(200_000, () => eventually('there is a file', () => blobs().length > before.length));
  await eventually('the file is gone', () => blobs().length === before.length);
  assert.deepEqual(blobs(), before);
  await assertNothingStored();
});

test('the server goes on working after all that', async () => {
  const { object_id } = bodyOf(await user.upload(bucket, 'fine', BIG));
  assert.equal((await user.download(object_id)).length, BIG.length);
  assert.equal(({} as { polluted?: unknown }).polluted, undefined);
});
