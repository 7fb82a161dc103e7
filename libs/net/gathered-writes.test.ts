import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { GatheredWrites } from './gathered-writes.ts';

/** Accepts a write on request. */
class Slow extends Writable {
  readonly got: Buffer[] = [];
  #done: (() => void)[] = [];

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.got.push(Buffer.from(chunk));
    this.#done.push(done);
  }

  take(): void {
    this.#done.shift()?.();
  }

  get text(): string {
    return Buffer.concat(this.got).toString();
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('bytes that wait are put together, and arrive once and in order', async () => {
  const slow = new Slow();
  const writes = new GatheredWrites(slow);
  const letters = Array.from({ length: 40_000 }, (_, at) => String.fromCharCode(97 + (at % 26)));
  for (const letter of letters) writes.write(Buffer.from(letter));
  assert.equal(writes.length, 40_000);
  assert.equal(slow.writableLength, 1, 'one write is under way, and the rest is not of the stream');
  writes.end();
  for (let count = 0; count < 5; count++) {
    slow.take();
    await settled();
  }
  assert.equal(slow.text, letters.join(''));
  assert.ok(slow.got.length <= 4, `${slow.got.length} writes`);
  assert.equal(writes.length, 0);
  assert.equal(slow.writableFinished, true);
});

test('what is written while gathered bytes are under way comes after them', async () => {
  const slow = new Slow();
  const writes = new GatheredWrites(slow);
  for (const word of ['a', 'b']) writes.write(Buffer.from(word));
  slow.take();
  await settled();
  for (const word of ['c', 'd']) writes.write(Buffer.from(word));
  const taken = writes.whenTaken();
  slow.take();
  await settled();
  slow.take();
  await taken;
  assert.equal(slow.text, 'abcd');
});

test('small and large pieces keep their order', async () => {
  const slow = new Slow();
  const writes = new GatheredWrites(slow);
  const pieces = Array.from({ length: 400 }, (_, at) => Buffer.alloc(at % 5 === 0 ? 9000 : at, at % 251));
  for (const piece of pieces) writes.write(piece);
  for (let count = 0; writes.length > 0 && count < 1000; count++) {
    slow.take();
    await settled();
  }
  assert.ok(Buffer.concat(pieces).equals(Buffer.concat(slow.got)));
});

test('nobody waits for a stream that was destroyed', async () => {
  const slow = new Slow().on('error', () => {});
  const writes = new GatheredWrites(slow);
  for (const word of ['a', 'b']) writes.write(Buffer.from(word));
  const taken = writes.whenTaken();
  slow.destroy();
  await taken;
  assert.equal(writes.length, 0);
  writes.write(Buffer.from('c'));
  await writes.whenTaken();
});
