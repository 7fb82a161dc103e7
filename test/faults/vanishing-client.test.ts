/** Clients that disconnect in the middle of an upload leave nothing: no object, no bytes, no count. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { blobFiles, eventually } from '../harness/waiting.ts';
import { contentOf } from './oracle.ts';

const SIZE = 20 * 2 ** 20;
const BOUNDARY = 'fault-test-boundary';
const HEAD = `--${BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="gone.bin"\r\n\r\n`;
const TAIL = `\r\n--${BOUNDARY}--\r\n`;

let cloud: CloudProcess;
let client: Client;
let kept: string;

before(async () => {
  cloud = await CloudProcess.start();
  client = await new Client(cloud.api).newUser();
  assert.equal((await client.call('/api/buckets', { json: { name: 'box', versioning: true } })).status, 201);
  kept = (await client.upload('box', 'kept', contentOf(1, 100_000))).body.object_id;
});
after(() => cloud.stop());

/** Sends the head of an upload and `bytes` of its form, as fast as the server reads them. */
async function sendPart(bytes: number, bucket = 'box'): Promise<Socket> {
  const { hostname, port } = new URL(cloud.api);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  const form = Buffer.concat([Buffer.from(HEAD), contentOf(2, SIZE), Buffer.from(TAIL)]);
  socket.write(
    [
      `POST /api/buckets/${bucket}/upload HTTP/1.1`,
      `host: ${hostname}:${port}`,
      `x-api-key: ${client.key}`,
      `content-type: multipart/form-data; boundary=${BOUNDARY}`,
      `content-length: ${form.length}`,
      '\r\n',
    ].join('\r\n'),
  );
  const cut = bytes < 0 ? form.length + bytes : bytes;
  await new Promise((resolve) => socket.write(form.subarray(0, cut), resolve));
  return socket;
}

async function assertNothingLeft(before: unknown): Promise<void> {
  await eventually('only the file of the kept object is left', () => blobFiles(cloud.dataDir).length === 1);
  assert.deepEqual((await client.call('/api/buckets/box')).body, before);
  const { body } = await client.call('/api/buckets/box/files?include_versions=true');
  assert.deepEqual(
    body.map(({ name }: { name: string }) => name),
    ['kept'],
  );
  assert.deepEqual(await client.download(kept), contentOf(1, 100_000));
}

for (const [how, leave] of [
  ['a reset', (socket) => socket.resetAndDestroy()],
  ['a closed connection', (socket) => socket.end()],
] satisfies [string, (socket: Socket) => void][]) {
  for (const [where, bytes] of [
    ['in the middle of the bytes', SIZE / 2],
    ['before the first byte', HEAD.length - 20],
    ['within the first bytes', HEAD.length + 10_000],
    ['in the tail of the form', -5],
  ] satisfies [string, number][]) {
    test(`${how} ${where} leaves nothing`, async () => {
      const counters = (await client.call('/api/buckets/box')).body;
      const socket = await sendPart(bytes);
      if (bytes > 100_000 || bytes < 0) {
        await eventually('the server writes what it was sent', () => blobFiles(cloud.dataDir).length === 2);
      } else await sleep(50);
      leave(socket);
      await assertNothingLeft(counters);
      socket.destroy();
    });
  }
}

test('an upload that is refused after its last byte leaves nothing', async () => {
  const counters = (await client.call('/api/buckets/box')).body;
  assert.equal((await client.call('/api/buckets', { json: { name: 'doomed' } })).status, 201);
  const socket = await sendPart(-5, 'doomed');
  await eventually('the server writes what it was sent', () => blobFiles(cloud.dataDir).length === 2);
  assert.equal((await client.call('/api/buckets/doomed', { method: 'DELETE' })).status, 200);
  socket.write(TAIL.slice(-5));
  const [answer] = await once(socket, 'data');
  assert.match(String(answer), /^HTTP\/1\.1 404 /);
  await assertNothingLeft(counters);
  socket.destroy();
});

test('20 clients that vanish at once leave nothing', async () => {
  const counters = (await client.call('/api/buckets/box')).body;
  const sockets = await Promise.all(Array.from({ length: 20 }, (_, i) => sendPart(100_000 + i * 900_000)));
  await eventually('all are being written', () => blobFiles(cloud.dataDir).length === 21);
  for (const socket of sockets) socket.resetAndDestroy();
  await assertNothingLeft(counters);
});

test('clients that vanish right after their last byte leave whole objects or nothing', async () => {
  const sockets = await Promise.all(Array.from({ length: 8 }, () => sendPart(Number.POSITIVE_INFINITY)));
  for (const socket of sockets) socket.resetAndDestroy();
  const listed = async () => (await client.call('/api/buckets/box/files?include_versions=true')).body.length;
  await eventually('there are as many files as versions', async () => {
    return blobFiles(cloud.dataDir).length === (await listed());
  });
  const { body } = await client.call('/api/buckets/box/files');
  for (const { id, name } of body) {
    assert.ok(
      (await client.download(id)).equals(name === 'kept' ? contentOf(1, 100_000) : contentOf(2, SIZE)),
    );
  }
});
