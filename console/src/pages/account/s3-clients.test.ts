import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_KEY, S3_CLIENTS, type S3SetUp, snippetOf } from './s3-clients.ts';

const SET_UP: S3SetUp = {
  endpoint: 'https://s3.example.org',
  id: 'CLAK2345',
  secret: 'Secret40',
  bucket: 'photos',
  prefix: '2026/',
};

test('each client gets the endpoint, the key, the bucket and the folder', () => {
  for (const client of S3_CLIENTS) {
    const lines = snippetOf(client, SET_UP);
    for (const word of ['s3.example.org', 'CLAK2345', 'Secret40', 'photos', '2026'])
      assert.ok(lines.includes(word), `${client}: ${word}`);
    assert.ok(!/undefined|null|NaN/.test(lines), client);
  }
});

test('without a key there is something to fill in, and no folder', () => {
  for (const client of S3_CLIENTS) {
    const lines = snippetOf(client, { ...NO_KEY, endpoint: 'http://127.0.0.1:9000' });
    for (const word of ['ACCESS_KEY_ID', 'SECRET_ACCESS_KEY', 'BUCKET'])
      assert.ok(lines.includes(word), `${client}: ${word}`);
    assert.ok(!lines.includes('BUCKET//'), client);
  }
});

test('plain http is said to clients that would try https, and ports are kept', () => {
  const plain = { ...SET_UP, endpoint: 'http://127.0.0.1:9000' };
  assert.match(snippetOf('s3cmd', plain), /host_base = 127\.0\.0\.1:9000\n.*\nuse_https = False/);
  assert.match(snippetOf('s3cmd', SET_UP), /use_https = True/);
  assert.match(snippetOf('pgbackrest', plain), /endpoint=127\.0\.0\.1\nrepo1-storage-port=9000/);
  assert.match(snippetOf('pgbackrest', SET_UP), /repo1-storage-port=443/);
});

test('a folder with quotes and spaces stays one word, and runs nothing', () => {
  const hostile = { ...SET_UP, prefix: ['$(id) \'"$', '{x}/'].join('') };
  const quoted = `'s3://photos/$(id) '\\''"\${x}/'`;
  assert.ok(snippetOf('aws', hostile).includes(quoted), snippetOf('aws', hostile));
  assert.match(snippetOf('boto3', hostile), /Prefix="\$\(id\) '\\"\$\{x\}\/"/);
  assert.match(snippetOf('terraform', hostile), /"\$\(id\) '\\"\$\$\{x\}\/terraform\.tfstate"/);
});
