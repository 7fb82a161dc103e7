import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cases } from '../../testing/cases.ts';
import { encodeFrame, type FrameHead, FrameReader } from './frames.ts';

interface Frame {
  readonly head: FrameHead;
  readonly body: Buffer;
}

const bodyOf = (length: number, seed: number) => Buffer.alloc(length, `${seed}-${length}`);

/** The frames read from `bytes`, which arrive in pieces of these lengths, repeated. */
function readIn(bytes: Buffer, lengths: readonly number[]): Frame[] {
  const found: Frame[] = [];
  const reader = new FrameReader((head, body) => found.push({ head, body }));
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const end = at + (lengths[turn % lengths.length] ?? 1);
    // Each piece has its own memory, as in data from a socket.
    reader.push(Buffer.from(new Uint8Array(bytes.subarray(at, end)).buffer));
    at = end;
  }
  return found;
}

test('frames are the same however they are cut, small ones and large ones', () => {
  const lengths = fc.oneof(fc.nat(40), fc.integer({ min: 65_530, max: 65_560 }), fc.nat(300_000));
  fc.assert(
    fc.property(
      fc.array(lengths, { minLength: 1, maxLength: 6 }),
      fc.array(fc.oneof(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: 140_000 })), {
        minLength: 1,
        maxLength: 4,
      }),
      (bodies, pieces) => {
        const sent = bodies.map((length, at) => ({ head: { id: at, of: 'ä' }, body: bodyOf(length, at) }));
        const bytes = Buffer.concat(sent.flatMap(({ head, body }) => encodeFrame(head, body)));
        // Pieces of a few bytes would take too long.
        const found = readIn(bytes, [...pieces, 50_000]);
        assert.deepEqual(
          found.map(({ head }) => head),
          sent.map(({ head }) => head),
        );
        for (const [at, { body }] of sent.entries()) assert.ok(body.equals(found[at]?.body as Buffer));
      },
    ),
    { numRuns: cases(200) },
  );
});

test('a large body has memory of its own, and that of its pieces is freed', () => {
  const bytes = Buffer.concat(encodeFrame({ id: 1 }, bodyOf(400_000, 1)));
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += 65_536)
    pieces.push(Buffer.from(new Uint8Array(bytes.subarray(at, at + 65_536)).buffer));
  const bodies: Buffer[] = [];
  const reader = new FrameReader((_, body) => bodies.push(body));
  for (const piece of pieces) reader.push(piece);
  assert.equal(bodies[0]?.buffer.byteLength, 400_000);
  assert.deepEqual(
    pieces.slice(1, -1).map(({ length }) => length),
    pieces.slice(1, -1).map(() => 0),
  );
});

test('a frame that is too long, or has no id, is refused', () => {
  const long = Buffer.alloc(8);
  long.writeUInt32LE(2, 0);
  long.writeUInt32LE(128 * 2 ** 20, 4);
  assert.throws(() => new FrameReader(() => {}).push(long), /too long/);
  const [start] = encodeFrame({ id: 'x' } as never);
  assert.throws(() => new FrameReader(() => {}).push(Buffer.from(start)), /no id/);
});
