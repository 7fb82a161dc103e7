import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { before, test } from 'node:test';
import { Client } from '../harness/client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';
import { bodyOf, fieldPart, filePart, listOf, newBucket, rawForm, sendRaw, TIME } from './storage-kit.ts';

let cloud: CloudProcess;
let user: Client;
let bucket: string;
before(async () => {
  cloud = await sharedCloud();
  user = await new Client(cloud.api).newUser();
  bucket = await newBucket(user);
});

const md5 = (bytes: string | Uint8Array) => createHash('md5').update(bytes).digest('hex');

test('the answer of an upload says what was stored', async () => {
  const bytes = randomBytes(1536);
  const metadata = { author: 'Ada', tags: ['a', 1, null, { deep: true }] };
  const answer = await user.upload(bucket, 'docs/report.pdf', bytes, {
    metadata: JSON.stringify(metadata),
    storage_class: 'STANDARD',
  });
  const { object_id, version_id, created_at, ...rest } = bodyOf(answer);
  assert.match(object_id, /^obj-[a-z2-7]{26}$|^obj-[0-9a-hjkmnp-tv-z]{26}$/);
  assert.match(version_id, /^ver-[0-9a-z]{26}$/);
  assert.match(created_at, TIME);
  assert.deepEqual(rest, {
    etag: md5(bytes),
    name: 'docs/report.pdf',
    bucket,
    size: 1536,
    size_formatted: '1.50 KB',
    mime_type: 'application/pdf',
    storage_class: 'STANDARD',
    metadata,
  });
});

const SIZES = [0, 1, 511, 4096, 16 * 1024 - 1, 16 * 1024, 16 * 1024 + 1, 65_536, 1_048_576, 3_333_333];
for (const size of SIZES) {
  test(`${size} bytes come back as they were`, async () => {
    const bytes = randomBytes(size);
    const uploaded = bodyOf(await user.upload(bucket, `sizes/${size}`, bytes));
    assert.deepEqual([uploaded.size, uploaded.etag], [size, md5(bytes)]);
    assert.ok((await user.download(uploaded.object_id)).equals(bytes));
  });
}

const FORMATTED: Record<number, string> = {
  0: '0.00 B',
  512: '512.00 B',
  1023: '1023.00 B',
  1024: '1.00 KB',
  1536: '1.50 KB',
  2097152: '2.00 MB',
};
for (const [size, text] of Object.entries(FORMATTED)) {
  test(`${size} bytes are written ${text}`, async () => {
    const { size_formatted } = bodyOf(await user.upload(bucket, 'formatted', Buffer.alloc(Number(size))));
    assert.equal(size_formatted, text);
  });
}

test('fields are heeded wherever they stand', async () => {
  const parts = [
    filePart('the bytes', 'x.txt'),
    fieldPart('name', 'ordered'),
    fieldPart('metadata', '{"k":"v"}'),
    fieldPart('storage_class', 'STANDARD'),
  ];
  for (let turn = 0; turn < parts.length; turn++) {
    const turned = [...parts.slice(turn), ...parts.slice(0, turn)];
    for (const order of [turned, turned.toReversed()]) {
      const body = bodyOf(await sendRaw(user, bucket, rawForm(...order)));
      assert.deepEqual([body.name, body.metadata, body.size], ['ordered', { k: 'v' }, 9]);
      assert.equal((await user.download(body.object_id)).toString(), 'the bytes');
    }
  }
});

test('fields after a file of megabytes are heeded too', async () => {
  const content = 'x'.repeat(2_000_000);
  const form = rawForm(filePart(content), fieldPart('metadata', '{"late":1}'), fieldPart('name', 'late'));
  const body = bodyOf(await sendRaw(user, bucket, form));
  assert.deepEqual([body.name, body.size, body.metadata], ['late', 2_000_000, { late: 1 }]);
  assert.equal(body.etag, md5(content));
});

test('bytes that look like the form are only bytes', async () => {
  for (const content of [
    '--hand-written-boundar',
    '\r\n--hand-written',
    '\r\n',
    '--',
    '\r\n\r\n--x--\r\n',
    '\n',
  ]) {
    const body = bodyOf(await sendRaw(user, bucket, rawForm(filePart(content), fieldPart('name', 'tricky'))));
    assert.equal((await user.download(body.object_id)).toString(), content);
  }
});

test('a preamble, an epilogue and a quoted boundary are allowed', async () => {
  const form = `preamble\r\n${rawForm(filePart('framed', 'framed.txt'))}epilogue`;
  const { status, body } = await user.call(`/api/buckets/${bucket}/upload`, {
    headers: { 'content-type': 'Multipart/Form-Data; charset=utf-8; boundary="hand-written-boundary"' },
    body: form,
  });
  assert.equal(status, 200, JSON.stringify(body));
  assert.equal((await user.download(body.object_id)).toString(), 'framed');
});

test('unknown fields are ignored and not kept', async () => {
  const form = rawForm(
    fieldPart('colour', 'red'),
    filePart('x', 'u.txt'),
    fieldPart('__proto__', 'polluted'),
  );
  const body = bodyOf(await sendRaw(user, bucket, form));
  assert.deepEqual([body.colour, body.metadata], [undefined, null]);
  const [entry] = await listOf(user, bucket, '?prefix=u.txt');
  assert.deepEqual([entry.colour, entry.metadata], [undefined, null]);
});

test('without a name the file name counts, without its folders', async () => {
  const names: Record<string, string> = {
    'plain.txt': 'plain.txt',
    'with space.txt': 'with space.txt',
    '/etc/passwd': 'passwd',
    '../../up.txt': 'up.txt',
    'C:\\temp\\win.txt': 'win.txt',
    'grüße-😀.txt': 'grüße-😀.txt',
  };
  for (const [sent, stored] of Object.entries(names)) {
    assert.equal(bodyOf(await sendRaw(user, bucket, rawForm(filePart('x', sent)))).name, stored);
  }
});

test('a name may hold slashes and overrides the file name', async () => {
  const form = rawForm(filePart('x', 'file.bin'), fieldPart('name', 'a/b//c/.d'));
  assert.equal(bodyOf(await sendRaw(user, bucket, form)).name, 'a/b//c/.d');
});

test('an empty file is an object like any other', async () => {
  const body = bodyOf(await user.upload(bucket, 'empty', ''));
  assert.deepEqual([body.size, body.etag], [0, 'd41d8cd98f00b204e9800998ecf8427e']);
  const response = await user.fetch(`/api/storage/${body.object_id}/download`);
  assert.deepEqual([response.status, response.headers.get('content-length')], [200, '0']);
  assert.equal((await response.arrayBuffer()).byteLength, 0);
});

const TYPES: [name: string, sent: string, stored: string][] = [
  ['a.png', 'application/octet-stream', 'image/png'],
  ['a.PNG', 'application/octet-stream', 'image/png'],
  ['a.json', 'application/octet-stream', 'application/json'],
  ['a.html', 'text/plain', 'text/html'],
  ['a.txt', 'application/octet-stream', 'text/plain'],
  ['a.unknown-ending', 'application/octet-stream', 'application/octet-stream'],
  ['no-ending', 'application/octet-stream', 'application/octet-stream'],
  ['a.png', 'image/webp', 'image/webp'],
  ['a', 'application/x-mine', 'application/x-mine'],
  ['a.csv', 'text/csv; charset=iso-8859-1', 'text/csv; charset=iso-8859-1'],
  ['a.csv', 'text/plain;charset=UTF-8', 'text/csv'],
  ['a', 'text/plain;charset=UTF-8', 'text/plain; charset=UTF-8'],
];
for (const [name, sent, stored] of TYPES) {
  test(`${name} sent as ${sent} is ${stored}`, async () => {
    const { mime_type, object_id } = bodyOf(await sendRaw(user, bucket, rawForm(filePart('x', name, sent))));
    assert.equal(mime_type, stored);
    const response = await user.fetch(`/api/storage/${object_id}/download`, { method: 'HEAD' });
    assert.equal(response.headers.get('content-type'), stored);
  });
}

test('metadata is kept as it was given, at the limit too', async () => {
  const values = [
    '{}',
    '{"a":null}',
    '{"constructor":"ACME","prototype":{}}',
    '{"ü":"😀","n":1.5,"o":{"p":[]}}',
    `{"k":"${'v'.repeat(8192 - 8)}"}`,
  ];
  for (const text of values) {
    const body = bodyOf(await user.upload(bucket, 'with-metadata', 'x', { metadata: text }));
    assert.deepEqual(body.metadata, JSON.parse(text));
    const [entry] = await listOf(user, bucket, '?prefix=with-metadata');
    assert.deepEqual(entry.metadata, JSON.parse(text));
  }
});

test('uploads of many names at once are all there', async () => {
  const target = await newBucket(user);
  const names = Array.from({ length: 100 }, (_, i) => `n-${String(i).padStart(3, '0')}`);
  const answers = await Promise.all(names.map((name) => user.upload(target, name, name)));
  assert.ok(answers.every(({ status }) => status === 200));
  const entries = await listOf(user, target);
  assert.deepEqual(
    entries.map(({ name, etag }) => [name, etag]),
    names.map((name) => [name, md5(name)]),
  );
});
