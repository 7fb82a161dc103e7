import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { MessageChannel } from 'node:worker_threads';
import { ThreadStream } from './thread-stream.ts';

test('bytes sent one by one take no more than themselves, and few are under way', async (t) => {
  const { port1, port2 } = new MessageChannel();
  t.after(() => port2.close());
  const got: Uint8Array[] = [];
  port2.on('message', ({ bytes }) => got.push(bytes));
  const stream = new ThreadStream(port1);
  for (let count = 0; count < 5000; count++) stream.write(Buffer.from(Buffer.from('x')));
  await sleep(100);
  assert.ok(got.length <= 512, `${got.length} messages are under way`);
  assert.deepEqual([...new Set(got.map((bytes) => bytes.buffer.byteLength))], [1]);
  for (let seen = 0; got.length < 5000; ) {
    port2.postMessage({ read: (got.length - seen) * 256 });
    seen = got.length;
    await sleep(5);
  }
});

test('all arrives in order, in pieces of any size, to a reader of any pace', async () => {
  const { port1, port2 } = new MessageChannel();
  const [near, far] = [new ThreadStream(port1), new ThreadStream(port2)];
  const pieces = Array.from({ length: 3000 }, (_, at) => randomBytes(at % 7 === 0 ? 5000 : at % 300));
  const all = buffer(far);
  for (const piece of pieces) if (!near.write(piece)) await new Promise((go) => near.once('drain', go));
  near.end();
  assert.ok(Buffer.concat(pieces).equals(await all));
  far.end();
});
