import assert from 'node:assert/strict';
import { Duplex } from 'node:stream';
import { test } from 'node:test';
import * as ws from 'ws';
import { closeFrame, FrameEdges } from './frame-edges.ts';

/** It has no types. */
// biome-ignore lint/suspicious/noExplicitAny: as above
const { Receiver, Sender } = ws as any;

/** The bytes that ws, as a server, sends for these messages. */
async function framesOf(...messages: readonly Buffer[]): Promise<Buffer> {
  const sent: Buffer[] = [];
  const wire = new Duplex({
    read: () => {},
    write: (bytes, _encoding, done) => {
      sent.push(bytes);
      done();
    },
  });
  const sender = new Sender(wire);
  const options = { binary: true, mask: false, compress: false, fin: true };
  for (const message of messages) sender.send(message, options, () => {});
  await new Promise((resolve) => setImmediate(resolve));
  return Buffer.concat(sent);
}

test('frames of every length end where they end, however their bytes arrive', async () => {
  const lengths = [0, 1, 125, 126, 65_535, 65_536, 70_000];
  const bytes = await framesOf(...lengths.map((length) => Buffer.alloc(length, 1)));
  const ends = new Set<number>();
  let at = 0;
  for (const length of lengths) {
    at += length + (length < 126 ? 2 : length < 65_536 ? 4 : 10);
    ends.add(at);
  }
  assert.equal(bytes.length, at);
  const one = new FrameEdges();
  for (let i = 0; i < bytes.length; i++) {
    one.follow(bytes.subarray(i, i + 1));
    if (one.mayAdd !== ends.has(i + 1)) assert.fail(`after ${i + 1} bytes`);
  }
  const all = new FrameEdges();
  assert.ok(all.mayAdd);
  all.follow(bytes);
  assert.ok(all.mayAdd);
});

test('after a frame that closes none follows', () => {
  const edges = new FrameEdges();
  edges.follow(closeFrame(1001, 'Cloudlet is stopping'));
  assert.ok(!edges.mayAdd);
});

test('the frame that closes is read as one, with its code and reason', async () => {
  const receiver = new Receiver({ isServer: false });
  const closed = new Promise((resolve) => {
    receiver.on('conclude', (code: number, reason: Buffer) => resolve([code, String(reason)]));
  });
  receiver.write(closeFrame(1012, 'connect again'));
  assert.deepEqual(await closed, [1012, 'connect again']);
});
