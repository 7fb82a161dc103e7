import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertLinear } from '../../testing/hostile-text.ts';
import { ExactReader } from './exact-reader.ts';

const damaged = () => new Error('damaged');

async function* inPieces(text: string, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < text.length; at += size) yield Buffer.from(text.slice(at, at + size));
}

test('bytes come in the asked numbers, however they arrive', async () => {
  for (const size of [1, 2, 3, 5, 100]) {
    const reader = new ExactReader(inPieces('abcdefghijklm', size), damaged);
    assert.equal(String(await reader.take(3)), 'abc');
    assert.equal(String(await reader.peek(2)), 'de');
    reader.putBack(Buffer.from('BC'));
    assert.equal(String(await reader.take(4)), 'BCde');
    assert.equal(String(Buffer.concat(await Array.fromAsync(reader.through(6)))), 'fghijk');
    const rest: Buffer[] = [];
    for (let piece = await reader.piece(); piece !== null; piece = await reader.piece()) rest.push(piece);
    assert.equal(String(Buffer.concat(rest)), 'lm');
    assert.equal((await reader.take(1, { mayEnd: true })).length, 0);
    await assert.rejects(reader.take(1), /damaged/);
  }
});

test('tiny pieces of a large part are joined once', () =>
  assertLinear(
    (size) => `a${'x'.repeat(size)}`,
    async (text) => {
      const reader = new ExactReader(inPieces(text, 20), damaged);
      for (const part of text.split(/(?=a)/)) await reader.take(part.length);
    },
  ));
