import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { before, test } from 'node:test';
import { Client } from '../harness/client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';
import {
  assertProblem,
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
before(async () => {
  cloud = await sharedCloud();
  user = await new Client(cloud.api).newUser();
});

/** The stored object: its name in the field `name`, byte for byte. */
const named = (bucket: string, name: string) =>
  sendRaw(user, bucket, rawForm(fieldPart('name', name), filePart('the bytes', 'other.bin')));

const ACCEPTED = [
  '../escape.txt',
  '../../../../etc/passwd',
  '..',
  '.',
  '/',
  '//',
  '/absolute',
  'folder/',
  'a//b',
  '%2e%2e/%2e%2e',
  '%2e%2e',
  '%00',
  '%',
  '100%',
  'trailing.',
  'trailing ',
  ' leading',
  'a b',
  'a"b',
  "a'b",
  'a;b',
  'a\\b',
  'a?b#c&d=e',
  '<script>alert(1)</script>',
  '$(touch x)`touch y`',
  "'; DROP TABLE objects; --",
  '*?[a]',
  'CON',
  'NUL.txt',
  '.hidden',
  '~',
  '-rf',
  'grüße.txt',
  'cafe\u0301',
  'caf\u00e9',
  '日本語.txt',
  '👩‍👩‍👧‍👦.png',
  '\u202eexe.txt',
  '\u00a0',
  '\ufeffbom',
  '__proto__',
  'constructor',
  'x'.repeat(1024),
  'é'.repeat(512),
  '😀'.repeat(256),
];
for (const name of ACCEPTED) {
  test(`the object name ${JSON.stringify(name.slice(0, 40))} is a name like any other`, async () => {
    const bucket = await newBucket(user);
    const uploaded = bodyOf(await named(bucket, name));
    assert.equal(uploaded.name, name);
    const entries = await listOf(user, bucket);
    assert.deepEqual(
      entries.map((entry) => [entry.name, entry.id]),
      [[name, uploaded.object_id]],
    );
    const prefix = encodeURIComponent(name);
    assert.equal((await listOf(user, bucket, `?prefix=${prefix}`)).length, 1);
    assert.equal((await user.download(uploaded.object_id)).toString(), 'the bytes');
    const { cdn_url } = bodyOf(await user.call(`/api/storage/${uploaded.object_id}/cdn-url`));
    const linked = await fetch(cdn_url);
    assert.deepEqual([linked.status, await linked.text()], [200, 'the bytes']);
    bodyOf(await user.call(`/api/storage/${uploaded.object_id}`, { method: 'DELETE' }));
    assert.deepEqual(await listOf(user, bucket), []);
  });
}

const REFUSED: Record<string, string> = {
  nothing: '',
  NUL: 'a\0b',
  'a line break': 'a\r\nb',
  'a header break and a quote': 'a\r\n"; filename="evil.exe',
  'a line feed': 'a\nb',
  'a tab': 'a\tb',
  'an escape': 'a\u001bb',
  DEL: 'a\u007fb',
  '1,025 bytes': 'x'.repeat(1025),
  '1,025 bytes of UTF-8': `${'é'.repeat(512)}x`,
  '1,028 bytes of emoji': '😀'.repeat(257),
  '60,000 bytes': 'x'.repeat(60_000),
};
for (const [kind, name] of Object.entries(REFUSED)) {
  test(`an object name with ${kind} is refused`, async () => {
    const bucket = await newBucket(user);
    const answer = await named(bucket, name);
    assertProblem(answer, 400, 'invalid_object_name');
    assert.equal(answer.body.errors[0].field, 'name');
    assert.deepEqual(await listOf(user, bucket), []);
  });
}

test('a file name with control characters is refused as well', async () => {
  const bucket = await newBucket(user);
  for (const fileName of ['a\0b', 'a\tb', 'a\u0001b']) {
    const { status } = await sendRaw(user, bucket, rawForm(filePart('x', fileName)));
    assert.equal(status, 400, JSON.stringify(fileName));
  }
  assert.deepEqual(await listOf(user, bucket), []);
});

test('names that differ only by case, form or dots are different objects', async () => {
  const bucket = await newBucket(user);
  const names = ['A', 'a', 'a.', 'a/', './a', 'caf\u00e9', 'cafe\u0301', 'a ', '%61'];
  for (const name of names)
    bodyOf(await sendRaw(user, bucket, rawForm(fieldPart('name', name), filePart(name))));
  const entries = await listOf(user, bucket);
  assert.deepEqual(entries.map(({ name }) => name).sort(), names.toSorted());
  for (const { id, name } of entries) assert.equal((await user.download(id)).toString(), name);
});

test('no name reaches the file system', async () => {
  const bucket = await newBucket(user);
  const marker = `escaped-${process.pid}`;
  for (const up of ['../', '../../', '../../../', '%2e%2e/', '..\\']) {
    bodyOf(await named(bucket, `${up}${marker}`));
  }
  const folders = [cloud.dataDir, dirname(cloud.dataDir), join(cloud.dataDir, 'blobs')];
  for (const folder of folders) assert.equal(existsSync(join(folder, marker)), false, folder);
});

test('ids that could be paths are simply not found', async () => {
  for (const id of [
    '..%2f..%2fetc%2fpasswd',
    'obj-',
    'obj-..%2fx',
    '%F0%9F%98%80',
    '__proto__',
    `obj-${'a'.repeat(26)}`,
  ]) {
    for (const rest of ['', '/download', '/cdn-url']) {
      assertProblem(await user.call(`/api/storage/${id}${rest}`), 404, 'object_not_found');
    }
    assertProblem(await user.call(`/api/storage/${id}`, { method: 'DELETE' }), 404, 'object_not_found');
  }
});
