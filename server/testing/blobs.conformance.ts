/** Requirements for any BlobStore driver. The test of a driver calls this with a function that opens it. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { type DigestName, newDigest } from '../../libs/s3-wire/index.ts';
import { isAppError } from '../platform/errors.ts';
import { isId, randomSecret } from '../platform/ids.ts';
import type { BlobRef, BlobStore } from '../storage/blobs/blobs.ts';
import { cases } from './cases.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const SIZES = [0, 1, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, 256 * KIB, MIB - 1, MIB, MIB + 1, 5 * MIB];

export interface StoredRef extends BlobRef {
  readonly content: Buffer;
}

/** Writes `content` in pieces of `stepBytes`, and waits when asked to. */
export async function storeBlob(
  blobs: BlobStore,
  content: Buffer,
  { dataKey = null, stepBytes = 64 * KIB }: { dataKey?: Uint8Array | null; stepBytes?: number } = {},
): Promise<StoredRef> {
  const digests: readonly DigestName[] = ['MD5'];
  const writer = await blobs.create({ dataKey, digests });
  for (let at = 0; at < content.length; at += stepBytes) {
    // The caller may reuse its memory immediately, so the test does.
    const piece = Buffer.from(content.subarray(at, at + stepBytes));
    const pause = writer.write(piece);
    piece.fill(0xee);
    await pause;
  }
  const written = await writer.finish();
  assert.equal(written.name, writer.name);
  assert.equal(written.sizeBytes, content.length);
  assert.deepEqual(written.digests, { MD5: createHash('md5').update(content).digest('hex') });
  return { name: written.name, sizeBytes: content.length, dataKey, content };
}

/** Everything that the sink received, even from a read that then failed. */
export async function readBlob(
  blobs: BlobStore,
  ref: BlobRef,
  range = { start: 0, end: ref.sizeBytes },
): Promise<{ bytes: Buffer; error: unknown }> {
  const seen: Buffer[] = [];
  const sink = (chunk: Uint8Array) => {
    seen.push(Buffer.from(chunk));
    return undefined;
  };
  const error = await blobs.read(ref, range, { sink }).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return { bytes: Buffer.concat(seen), error };
}

async function assertReads(blobs: BlobStore, ref: StoredRef, range?: { start: number; end: number }) {
  const { bytes, error } = await readBlob(blobs, ref, range);
  assert.equal(error, undefined);
  assert.ok(bytes.equals(ref.content.subarray(range?.start ?? 0, range?.end ?? ref.sizeBytes)));
}

async function namesOf(blobs: BlobStore): Promise<Set<string>> {
  const names = new Set<string>();
  for await (const { name } of blobs.list()) names.add(name);
  return names;
}

/** Registers the tests. `open` is called once; its result is closed at the end. */
export function testBlobStore(driver: string, open: () => Promise<BlobStore>): void {
  describe(`${driver} as BlobStore`, () => {
    let blobs: BlobStore;
    before(async () => {
      blobs = await open();
    });
    after(() => blobs.close());
    for (const encrypted of [false, true]) {
      describe(encrypted ? 'encrypted' : 'plain', () => testContent(() => blobs, encrypted));
    }
    testWriting(() => blobs);
    testReading(() => blobs);
  });
}

function testContent(blobs: () => BlobStore, encrypted: boolean): void {
  const newKey = () => (encrypted ? randomSecret(32) : null);

  test('a round trip at every size keeps the bytes and names their MD5', async () => {
    for (const size of SIZES) {
      for (const stepBytes of [64 * KIB, 100_003, 5 * MIB]) {
        const ref = await storeBlob(blobs(), randomSecret(size), { dataKey: newKey(), stepBytes });
        await assertReads(blobs(), ref);
      }
    }
  });

  test('any set of digests is that of the bytes, however many slots they fill', async () => {
    const names: readonly DigestName[] = ['CRC32', 'CRC32C', 'CRC64NVME', 'SHA1', 'SHA256', 'MD5'];
    const sizes = fc.oneof(fc.constantFrom(...SIZES), fc.integer({ min: 0, max: 3 * MIB }));
    await fc.assert(
      fc.asyncProperty(fc.subarray([...names]), sizes, async (asked, size) => {
        const content = randomSecret(size);
        const writer = await blobs().create({ dataKey: newKey(), digests: asked });
        for (let at = 0; at < size; at += 100_003) await writer.write(content.subarray(at, at + 100_003));
        const written = await writer.finish();
        const expected = asked.map((name) => {
          const digest = newDigest(name);
          digest.update(content);
          return [name, digest.digest().toString('hex')];
        });
        assert.deepEqual(written.digests, Object.fromEntries(expected));
        await writer.abort();
      }),
      { numRuns: cases(40) },
    );
  });

  test('any range gives exactly those bytes', async () => {
    const ref = await storeBlob(blobs(), randomSecret(5 * 64 * KIB + 77), { dataKey: newKey() });
    const edges = [0, 1, 65_535, 65_536, 65_537, 131_072, 262_144, ref.sizeBytes - 1, ref.sizeBytes];
    const position = fc.oneof(fc.constantFrom(...edges), fc.integer({ min: 0, max: ref.sizeBytes }));
    await fc.assert(
      fc.asyncProperty(position, position, (a, b) =>
        assertReads(blobs(), ref, { start: Math.min(a, b), end: Math.max(a, b) }),
      ),
      { numRuns: cases(150) },
    );
  });

  test('writes of any lengths add up to the same blob', async () => {
    const lengths = fc.array(fc.integer({ min: 0, max: 150_000 }), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(lengths, async (steps) => {
        const content = randomSecret(steps.reduce((sum, step) => sum + step, 0));
        const dataKey = newKey();
        const writer = await blobs().create({ dataKey });
        let at = 0;
        for (const step of steps) {
          await writer.write(content.subarray(at, at + step));
          at += step;
        }
        const { name, sizeBytes } = await writer.finish();
        await assertReads(blobs(), { name, sizeBytes, dataKey, content });
      }),
      { numRuns: cases(25) },
    );
  });

  test('under the name, the size or the key of another blob it is damaged', async () => {
    const dataKey = newKey();
    for (const size of [0, 1000, 3 * 64 * KIB]) {
      const ref = await storeBlob(blobs(), randomSecret(size), { dataKey });
      const wrong: BlobRef[] = [
        { ...ref, sizeBytes: size + 1 },
        { ...ref, dataKey: randomSecret(32) },
        { ...ref, name: `blob-${'0'.repeat(26)}` },
      ];
      if (size > 0) wrong.push({ ...ref, sizeBytes: size - 1 });
      if (encrypted) wrong.push({ ...ref, dataKey: null });
      for (const other of wrong) {
        const { bytes, error } = await readBlob(blobs(), other);
        assert.ok(isAppError(error, 'data_corrupted'), String(error));
        assert.equal(bytes.length, 0);
      }
    }
  });
}

function testWriting(blobs: () => BlobStore): void {
  test('a blob is listed, known as being written until it is released, and gone once removed', async () => {
    const writer = await blobs().create({ dataKey: null });
    assert.ok(isId('blob', writer.name));
    assert.ok(blobs().isBeingWritten(writer.name));
    await writer.write(randomSecret(3 * MIB));
    assert.ok((await namesOf(blobs())).has(writer.name));
    await writer.finish();
    assert.ok(blobs().isBeingWritten(writer.name), 'its commit is still to come');
    writer.release();
    assert.ok(!blobs().isBeingWritten(writer.name));
    for await (const { name, storedBytes, modifiedAt } of blobs().list()) {
      if (name !== writer.name) continue;
      assert.ok(storedBytes >= 3 * MIB && storedBytes < 3.1 * MIB);
      assert.ok(Math.abs(modifiedAt - performance.timeOrigin) < 3_600_000);
    }
    await blobs().remove(writer.name);
    await blobs().remove(writer.name);
    assert.ok(!(await namesOf(blobs())).has(writer.name));
  });

  test('abort removes the blob at once, whenever it comes, and may come twice', async () => {
    for (const size of [0, 1000, 300 * KIB, 8 * MIB]) {
      for (const stage of ['writing', 'finishing', 'finished']) {
        const writer = await blobs().create({ dataKey: null });
        for (let at = 0; at < size; at += 64 * KIB) {
          writer.write(randomSecret(Math.min(64 * KIB, size - at)))?.catch(() => {});
        }
        const finished = stage === 'writing' ? undefined : writer.finish();
        finished?.catch(() => {});
        if (stage === 'finished') await finished;
        await writer.abort();
        await writer.abort();
        assert.ok(!(await namesOf(blobs())).has(writer.name), `${size} ${stage}`);
        assert.ok(!blobs().isBeingWritten(writer.name));
        assert.throws(() => writer.write(Buffer.alloc(1)), 'written after abort');
        await assert.rejects(async () => writer.finish());
        if (stage === 'finishing') await assert.rejects(async () => finished);
      }
    }
  });

  test('a writer asks the caller to wait, and then to go on', async () => {
    const writer = await blobs().create({ dataKey: null });
    let pause: Promise<void> | undefined;
    let taken = 0;
    for (; pause === undefined && taken < 1000; taken++) pause = writer.write(Buffer.alloc(64 * KIB));
    assert.ok(taken < 1000, 'no back-pressure within 64 MiB');
    await pause;
    assert.equal((await writer.finish()).sizeBytes, taken * 64 * KIB);
  });

  test('many writers and readers at once do not mix', async () => {
    await Promise.all(
      Array.from({ length: 24 }, async (_, i) => {
        const dataKey = i % 2 === 0 ? randomSecret(32) : null;
        const ref = await storeBlob(blobs(), randomSecret(i * 50_021), { dataKey });
        await assertReads(blobs(), ref);
        await blobs().remove(ref.name);
      }),
    );
  });
}

function testReading(blobs: () => BlobStore): void {
  test('a slow sink keeps its memory until it lets go of it', async () => {
    const ref = await storeBlob(blobs(), randomSecret(2 * MIB + 5), { dataKey: randomSecret(32) });
    const seen: Buffer[] = [];
    let busy = false;
    const sink = async (chunk: Uint8Array) => {
      assert.ok(!busy, 'two chunks at once');
      busy = true;
      await sleep(seen.length === 1 ? 250 : 2);
      seen.push(Buffer.from(chunk));
      busy = false;
    };
    await blobs().read(ref, { start: 3, end: ref.sizeBytes }, { sink });
    assert.ok(Buffer.concat(seen).equals(ref.content.subarray(3)));
  });

  test('an abort rejects with its reason, before, between and inside the sink', async () => {
    const ref = await storeBlob(blobs(), randomSecret(4 * MIB));
    const range = { start: 0, end: ref.sizeBytes };
    const never = () => new Promise<void>(() => {});
    const reason = new Error('gone away');
    await assert.rejects(
      blobs().read(ref, range, { sink: never, signal: AbortSignal.abort(reason) }),
      reason,
    );
    const inside = new AbortController();
    setTimeout(() => inside.abort(reason), 30);
    const started = performance.now();
    await assert.rejects(blobs().read(ref, range, { sink: never, signal: inside.signal }), reason);
    assert.ok(performance.now() - started < 1000);
    const between = new AbortController();
    let calls = 0;
    const sink = () => {
      if (++calls === 2) between.abort(reason);
      return undefined;
    };
    await assert.rejects(blobs().read(ref, range, { sink, signal: between.signal }), reason);
    assert.equal(calls, 2);
  });

  test("a sink's own error comes out as it is", async () => {
    const ref = await storeBlob(blobs(), randomSecret(MIB));
    const failure = new Error('socket closed');
    const range = { start: 0, end: ref.sizeBytes };
    const throwing = () => {
      throw failure;
    };
    await assert.rejects(blobs().read(ref, range, { sink: throwing }), failure);
    await assert.rejects(blobs().read(ref, range, { sink: () => Promise.reject(failure) }), failure);
  });

  test('a range outside of the blob is refused', async () => {
    const ref = await storeBlob(blobs(), randomSecret(1000));
    for (const [start, end] of [
      [-1, 5],
      [5, 4],
      [0, 1001],
      [Number.NaN, 1],
    ] as const) {
      const { error } = await readBlob(blobs(), ref, { start, end });
      assert.ok(isAppError(error, 'range_not_satisfiable'));
    }
  });
}
