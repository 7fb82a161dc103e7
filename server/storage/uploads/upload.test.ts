import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { type DigestName, digestsOf } from '../../../libs/s3-wire/index.ts';
import { AppError, isAppError } from '../../platform/errors.ts';
import { randomSecret } from '../../platform/ids.ts';
import { openStorageFixture, type StorageFixture } from '../../testing/storage-fixture.ts';
import type { BlobStore, BlobWriter } from '../blobs/blobs.ts';
import { CustomerKey } from '../keys/customer-key.ts';
import { INLINE_MAX_BYTES, openInline, type ReceivedBytes, Upload, type UploadDeps } from './upload.ts';

let fixture: StorageFixture;
before(async () => {
  fixture = await openStorageFixture();
});
after(() => fixture.close());

/** Shows a data key instead of wrapping it, so that the test can use it. */
const open = (deps: Partial<UploadDeps> = {}) =>
  new Upload({
    owner: 1,
    blobs: fixture.blobs,
    dataKeys: { wrap: (key) => Buffer.from(key) },
    assertSpace: () => {},
    encryption: { kind: 'none' },
    maxBytes: 2 ** 30,
    ...deps,
  });

async function receive(upload: Upload, bytes: Buffer, stepBytes: number): Promise<ReceivedBytes> {
  for (let at = 0; at < bytes.length; at += stepBytes) {
    const piece = Buffer.from(bytes.subarray(at, at + stepBytes));
    const waiting = upload.write(piece);
    // The caller may reuse its memory immediately.
    piece.fill(0xee);
    await waiting;
  }
  return upload.finish();
}

/** The plaintext for the values that the row would have. */
async function bytesOf({ blob, sizeBytes }: ReceivedBytes): Promise<Buffer> {
  if (blob.data) return Buffer.from(openInline(blob.data, blob.checksum, blob.wrappedKey));
  assert.ok(blob.name !== null);
  const seen: Buffer[] = [];
  const ref = { name: blob.name, sizeBytes, dataKey: blob.wrappedKey };
  const sink = (chunk: Uint8Array) => {
    seen.push(Buffer.from(chunk));
    return undefined;
  };
  await fixture.blobs.read(ref, { start: 0, end: sizeBytes }, { sink });
  return Buffer.concat(seen);
}

async function storedNames(): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of fixture.blobs.list()) names.push(name);
  return names;
}

describe('pieces', () => {
  for (const size of [10, INLINE_MAX_BYTES, INLINE_MAX_BYTES + 1, 60_000, 200_000, 3 * 2 ** 20]) {
    test(`of ${size} bytes are hashed in order, wherever they end`, async () => {
      for (const pieceBytes of [8192, 65_536, 65_537, 700_000]) {
        const bytes = randomSecret(size);
        const upload = open({ encryption: { kind: size % 2 === 0 ? 'cloud' : 'none' } });
        const found: string[] = [];
        assert.ok(upload.hashPieces((hashes) => found.push(...hashes)));
        const wanted: string[] = [];
        for (let at = 0; at < size; at += pieceBytes) {
          const piece = bytes.subarray(at, at + pieceBytes);
          wanted.push(createHash('sha256').update(piece).digest('hex'));
          const half = Math.floor(piece.length / 2);
          await upload.write(piece.subarray(0, half));
          await upload.write(piece.subarray(half), true);
        }
        assert.ok((await bytesOf(await upload.finish())).equals(bytes));
        assert.deepEqual(found, wanted);
        await upload.end();
      }
    });
  }

  test('that a key of the client hides are not hashed', () => {
    const upload = open({ encryption: { kind: 'customer', key: new CustomerKey(randomSecret(32)) } });
    assert.equal(
      upload.hashPieces(() => {}),
      false,
    );
  });
});

test('the most that is inline can be less, down to nothing', async () => {
  for (const [maxInlineBytes, size, isInline] of [
    [0, 0, true],
    [0, 1, false],
    [1000, 1000, true],
    [1000, 1001, false],
  ] as const) {
    const bytes = randomSecret(size);
    const received = await receive(open({ maxInlineBytes }), bytes, 300);
    assert.equal(received.blob.data !== null, isInline, `${size} of ${maxInlineBytes}`);
    assert.ok((await bytesOf(received)).equals(bytes));
  }
});

for (const encrypt of [false, true]) {
  describe(encrypt ? 'encrypted' : 'plain', () => {
    const edges = [0, 1, INLINE_MAX_BYTES - 1, INLINE_MAX_BYTES, INLINE_MAX_BYTES + 1, 200_000];
    for (const size of edges) {
      test(`${size} bytes, in any pieces, are inline up to the limit and a file beyond`, async () => {
        const bytes = randomSecret(size);
        for (const stepBytes of [1000, INLINE_MAX_BYTES, 300_000]) {
          const received = await receive(
            open({ encryption: { kind: encrypt ? 'cloud' : 'none' } }),
            bytes,
            stepBytes,
          );
          assert.equal(received.sizeBytes, size);
          assert.equal(received.blob.sizeBytes, size);
          assert.equal(received.etag, createHash('md5').update(bytes).digest('hex'));
          assert.equal(received.blob.data !== null, size <= INLINE_MAX_BYTES);
          assert.equal(received.blob.name === null, size <= INLINE_MAX_BYTES);
          assert.equal(received.blob.wrappedKey !== null, encrypt);
          assert.ok((await bytesOf(received)).equals(bytes));
        }
      });
    }

    test('damage of inline bytes, wherever it is, is found', async () => {
      const { blob } = await receive(
        open({ encryption: { kind: encrypt ? 'cloud' : 'none' } }),
        randomSecret(500),
        500,
      );
      const { data, checksum, wrappedKey } = blob;
      assert.ok(data !== null);
      for (let at = 0; at < data.length; at += 7) {
        const bad = Buffer.from(data);
        bad[at] = (bad[at] as number) ^ 1;
        assert.throws(() => openInline(bad, checksum, wrappedKey), isDamage);
      }
      assert.throws(() => openInline(data.subarray(0, -1), checksum, wrappedKey), isDamage);
      assert.throws(() => openInline(data, null, wrappedKey), isDamage);
    });
  });
}

test('digests are of the plaintext, whoever encrypts it, and ETags do not show it', async () => {
  const names: readonly DigestName[] = ['MD5', 'CRC64NVME', 'SHA256'];
  const customer = { kind: 'customer', key: new CustomerKey(randomSecret(32)) } as const;
  for (const size of [0, 1000, INLINE_MAX_BYTES + 1, 900_000]) {
    const bytes = randomSecret(size);
    for (const encryption of [{ kind: 'none' }, { kind: 'cloud' }, customer] as const) {
      const upload = open({ encryption });
      upload.digest(names);
      const { digests, etag } = await receive(upload, bytes, 100_000);
      assert.deepEqual(digests, digestsOf(bytes, names));
      assert.equal(etag === digests.MD5, encryption.kind !== 'customer');
      assert.match(etag, /^[0-9a-f]{32}$/);
    }
  }
});

const isDamage = (error: unknown) => isAppError(error, 'data_corrupted');

test('encrypted inline bytes are not the plaintext, and open only under their own key', async () => {
  const bytes = Buffer.from('a text that would be seen at once'.repeat(10));
  const [one, two] = await Promise.all(
    [1, 2].map(() => receive(open({ encryption: { kind: 'cloud' } }), bytes, 1000)),
  );
  assert.ok(one?.blob.data && two?.blob.data);
  assert.ok(!Buffer.from(one.blob.data).includes('text'));
  assert.notDeepEqual(one.blob.data, two.blob.data);
  assert.throws(
    () => openInline(one.blob.data as Uint8Array, one.blob.checksum, two.blob.wrappedKey),
    isDamage,
  );
});

test('too many bytes are refused when they come, whatever the size of the pieces', async () => {
  for (const maxBytes of [10, 50_000]) {
    for (const stepBytes of [1, 1000, 60_000]) {
      if (maxBytes / stepBytes > 100) continue;
      await receive(open({ maxBytes }), randomSecret(maxBytes), stepBytes);
      const upload = open({ maxBytes });
      const tooLarge = (error: unknown) => isAppError(error, 'payload_too_large');
      await assert.rejects(receive(upload, randomSecret(maxBytes + 1), stepBytes), tooLarge);
      await upload.end();
    }
  }
});

test('an aborted upload leaves nothing behind, at any stage', async () => {
  const before = await storedNames();
  for (const size of [0, 100, INLINE_MAX_BYTES + 1, 500_000]) {
    for (const finishes of [false, true]) {
      const upload = open();
      if (size > 0) await upload.write(randomSecret(size));
      if (finishes) await upload.finish();
      await upload.end();
      await upload.end();
    }
  }
  assert.deepEqual(await storedNames(), before);
});

test('an upload that a row may name stays', async () => {
  const before = await storedNames();
  const upload = open();
  const { blob, keep } = await receive(upload, randomSecret(INLINE_MAX_BYTES + 1), 4096);
  keep();
  await upload.end();
  assert.deepEqual(
    (await storedNames()).filter((name) => !before.includes(name)),
    [blob.name],
  );
});

test('an upload aborted while its file is being made leaves nothing behind and no name held', async () => {
  const before = await storedNames();
  const made = Promise.withResolvers<void>();
  const writers: BlobWriter[] = [];
  const create = async (options: Parameters<BlobStore['create']>[0]) => {
    await made.promise;
    writers.push(await fixture.blobs.create(options));
    return writers[0] as BlobWriter;
  };
  const upload = open({ blobs: { create } });
  const writing = upload.write(randomSecret(500_000));
  const aborting = upload.end();
  made.resolve();
  await Promise.all([writing, aborting]);
  assert.equal(fixture.blobs.isBeingWritten(writers[0]?.name ?? 'none'), false);
  assert.deepEqual(await storedNames(), before);
});

test('a full disk refuses inline bytes too', async () => {
  const full = () => {
    throw new AppError('out_of_space', 'full');
  };
  const isFull = (error: unknown) => isAppError(error, 'out_of_space');
  const refusal = receive(open({ assertSpace: full }), randomSecret(10), 10);
  await assert.rejects(refusal, (error) => isFull(error) && /for 10 bytes;/.test(String(error)));
});

test('what comes while the blob is being created is stored in order, also if the end comes too', async () => {
  const slow: BlobStore = Object.assign(Object.create(fixture.blobs), {
    create: async (options: Parameters<BlobStore['create']>[0]): Promise<BlobWriter> => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return fixture.blobs.create(options);
    },
  });
  const before = (await storedNames()).length;
  const bytes = randomSecret(5 * INLINE_MAX_BYTES);
  const upload = open({ blobs: slow });
  // The last data of the request and its end may be one event: no code runs in between.
  const waits = [0, 2, 3].map((at, i) =>
    upload.write(bytes.subarray(at * INLINE_MAX_BYTES, ([2, 3, 5][i] ?? 0) * INLINE_MAX_BYTES)),
  );
  const received = await upload.finish();
  await Promise.all(waits);
  assert.notEqual(received.blob.name, null);
  assert.deepEqual(await bytesOf(received), bytes);
  await upload.end();
  assert.equal((await storedNames()).length, before);
});
