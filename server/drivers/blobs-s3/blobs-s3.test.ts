import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { parseS3Url } from '../../config/s3-address.ts';
import { Alarms } from '../../platform/alarms.ts';
import { systemClock } from '../../platform/clock.ts';
import { StartupError } from '../../platform/data-directory.ts';
import { isAppError } from '../../platform/errors.ts';
import { randomSecret } from '../../platform/ids.ts';
import { readBlob, storeBlob, testBlobStore } from '../../testing/blobs.conformance.ts';
import { eventually } from '../../testing/eventually.ts';
import { S3Fixture } from '../../testing/s3-fixture.ts';
import { S3BlobStore } from './blobs-s3.ts';
import { keyOf } from './sealed-blob.ts';

const MIB = 2 ** 20;
const opened: S3BlobStore[] = [];
let s3: S3Fixture;

before(async () => {
  s3 = await S3Fixture.start();
});
after(async () => {
  await Promise.allSettled(opened.map((blobs) => blobs.close()));
  await s3.close();
});

let prefixes = 0;

interface OpenOptions {
  readonly url?: string;
  readonly cloudId?: string;
  readonly mayMark?: boolean;
  readonly memoryBytes?: number;
}

async function openStore({
  url,
  cloudId = 'cld-1',
  mayMark = true,
  memoryBytes = 64 * MIB,
}: OpenOptions = {}) {
  s3.fault = () => undefined;
  const alarms = new Alarms(systemClock);
  const address = parseS3Url(url ?? s3.url(`p${++prefixes}`));
  const options = { address, cloudId, mayMark, threads: 2, memoryBytes, clock: systemClock, alarms };
  const blobs = await S3BlobStore.open(options);
  opened.push(blobs);
  s3.seen.length = 0;
  return { blobs, alarms };
}

testBlobStore('S3BlobStore', async () => (await openStore()).blobs);

describe('uploads to S3', () => {
  test('at most 8 MiB are one request, more are parts of at least 8 MiB', async () => {
    const { blobs } = await openStore();
    for (const dataKey of [null, randomSecret(32)]) {
      for (const [size, parts] of [
        [8 * MIB, 0],
        [8 * MIB + 1, 2],
        [40 * MIB + 12_345, 6],
      ] as const) {
        s3.seen.length = 0;
        const ref = await storeBlob(blobs, randomSecret(size), { dataKey, stepBytes: 100_003 });
        // On a loaded host a part may be sent again.
        const sent = s3.seen.filter(({ method }) => method === 'PUT');
        const puts = new Map(sent.map(({ path, bodyBytes }) => [path, bodyBytes]));
        const bodies = [...puts.values()];
        assert.equal(
          [...puts.keys()].filter((path) => path.includes('partNumber=')).length,
          parts,
          String(size),
        );
        assert.equal(puts.size, Math.max(1, parts));
        for (const bytes of bodies.toSorted((a, b) => b - a).slice(0, -1)) assert.ok(bytes >= 8 * MIB);
        const { bytes, error } = await readBlob(blobs, ref);
        assert.equal(error, undefined);
        assert.ok(bytes.equals(ref.content));
      }
    }
  });

  test('errors that pass are tried again, and the bytes are stored once', async () => {
    const { blobs, alarms } = await openStore();
    for (const fault of [
      { status: 500 },
      { status: 503, code: 'SlowDown' },
      { status: 429 },
      'lose',
      'hurt-upload',
    ] as const) {
      for (const size of [100_000, 20 * MIB]) {
        const failed = new Set<string>();
        s3.fault = ({ method, path }) => {
          // Each request fails once.
          const id = `${method} ${path}`;
          if (method === 'GET' || failed.has(id)) return undefined;
          failed.add(id);
          return fault;
        };
        const ref = await storeBlob(blobs, randomSecret(size));
        assert.ok(failed.size > 0);
        s3.fault = () => undefined;
        const { bytes, error } = await readBlob(blobs, ref);
        assert.equal(error, undefined);
        assert.ok(bytes.equals(ref.content));
      }
    }
    assert.deepEqual(alarms.list(), []);
    assert.ok(blobs.counters.read('retries') >= 8);
  });

  test('a write that fails leaves nothing', async () => {
    const { blobs } = await openStore();
    s3.fault = ({ path }) =>
      path.includes('partNumber=2') ? { status: 403, code: 'AccessDenied' } : undefined;
    const writer = await blobs.create({ dataKey: null });
    await assert.rejects(async () => {
      for (let i = 0; i < 64; i++) await writer.write(randomSecret(MIB));
      await writer.finish();
    }, /cannot be reached/);
    await writer.abort();
    assert.equal(s3.count('DELETE', 'uploadId='), 1);
    assert.equal(blobs.partBytes, 0);
    assert.ok(!(await Array.fromAsync(blobs.list())).some(({ name }) => name === writer.name));
  });

  test('slow uploads wait for memory, and none is taken for ever', async () => {
    const { blobs } = await openStore({ memoryBytes: 16 * MIB });
    const slow = await Promise.all(Array.from({ length: 8 }, () => blobs.create({ dataKey: null })));
    for (const writer of slow) {
      for (let i = 0; i < 3; i++) await writer.write(randomSecret(64 * 1024));
    }
    await eventually(() => blobs.partBytes === 16 * MIB);
    // Each has 8 MiB, and there are two.
    await Promise.all(slow.slice(0, 2).map((writer) => writer.abort()));
    await eventually(() => blobs.partBytes === 16 * MIB);
    await Promise.all(slow.slice(2).map((writer) => writer.abort()));
    await eventually(() => blobs.partBytes === 0);
    const ref = await storeBlob(blobs, randomSecret(33 * MIB));
    assert.ok((await readBlob(blobs, ref)).bytes.equals(ref.content));
    assert.equal(blobs.partBytes, 0);
  });
});

describe('reads from S3', () => {
  test('an answer that breaks off, or was hurt on its way, is asked for again', async () => {
    const { blobs } = await openStore();
    for (const dataKey of [null, randomSecret(32)]) {
      const ref = await storeBlob(blobs, randomSecret(3 * MIB + 77), { dataKey });
      for (const fault of ['cut', 'hurt', 'lose', { status: 500 }] as const) {
        let done = false;
        s3.fault = ({ method }) => {
          if (method !== 'GET' || done) return undefined;
          done = true;
          return fault;
        };
        const { bytes, error } = await readBlob(blobs, ref);
        assert.equal(error, undefined, `${JSON.stringify(fault)} ${error}`);
        assert.ok(done && bytes.equals(ref.content));
      }
    }
  });

  test('bytes that are hurt each time are damaged, and none of the bad chunk is seen', async () => {
    const { blobs } = await openStore();
    const ref = await storeBlob(blobs, randomSecret(3 * MIB));
    s3.fault = ({ method }) => (method === 'GET' ? 'hurt' : undefined);
    const { bytes, error } = await readBlob(blobs, ref);
    assert.ok(isAppError(error, 'data_corrupted'), String(error));
    assert.ok(bytes.equals(ref.content.subarray(0, bytes.length)));
    assert.ok(bytes.length < ref.content.length);
  });

  test('a missing object is damaged, but a bucket without its mark is not', async () => {
    const { blobs, alarms } = await openStore();
    const ref = await storeBlob(blobs, randomSecret(100_000));
    await blobs.remove(ref.name);
    assert.ok(isAppError((await readBlob(blobs, ref)).error, 'data_corrupted'));
    assert.deepEqual(alarms.list(), []);
    s3.fault = ({ method }) => (method === 'GET' ? { status: 404, code: 'NoSuchBucket' } : undefined);
    assert.ok(isAppError((await readBlob(blobs, ref)).error, 'overloaded'));
    assert.match(alarms.list()[0]?.fix ?? '', /Create the bucket/);
  });
});

describe('S3 that does not work', () => {
  test('connections refused, or no answers: 503 and an alarm, and back by itself', async () => {
    const { blobs, alarms } = await openStore();
    const ref = await storeBlob(blobs, randomSecret(100_000));
    await s3.shut();
    const error = await storeBlob(blobs, randomSecret(100_000)).catch((reason: unknown) => reason);
    assert.ok(isAppError(error, 'overloaded'), String(error));
    assert.ok(isAppError((await readBlob(blobs, ref)).error, 'overloaded'));
    assert.match(alarms.list()[0]?.detail ?? '', /ECONNREFUSED/);
    assert.equal(alarms.list()[0]?.code, 'blobs_unreachable');
    // It accepts requests, and does not answer them.
    s3.fault = () => 'hang';
    await s3.open();
    assert.ok(isAppError((await readBlob(blobs, ref)).error, 'overloaded'));
    assert.equal(alarms.list()[0]?.code, 'blobs_unreachable');
    s3.fault = () => undefined;
    await eventually(() => alarms.list().length === 0);
    assert.equal((await readBlob(blobs, ref)).error, undefined);
  });

  test('each cause has its own words, and none has the secret', async () => {
    const { blobs, alarms } = await openStore();
    const date = new Date(systemClock.now() - 3_600_000);
    for (const [fault, words] of [
      [{ status: 403, code: 'AccessDenied' }, /may get, put, delete and list/],
      [{ status: 403, code: 'RequestTimeTooSkewed', date }, /by NTP/],
      [{ status: 404, code: 'NoSuchBucket' }, /Create the bucket/],
      [{ status: 403, code: 'SignatureDoesNotMatch' }, /key and secret/],
      [{ status: 301, code: 'PermanentRedirect' }, /region=/],
    ] as const) {
      s3.fault = () => fault;
      const error = await storeBlob(blobs, randomSecret(100_000)).catch((reason: unknown) => reason);
      assert.ok(isAppError(error, 'overloaded'));
      const [alarm] = alarms.list();
      assert.match(alarm?.fix ?? '', words);
      if (fault.code === 'RequestTimeTooSkewed') assert.match(alarm?.detail ?? '', /by 3(?:599|60\d) s/);
      assert.doesNotMatch(JSON.stringify([alarm, error, String((error as Error).cause)]), /S3RVER/);
    }
  });

  test('a full S3 is 507, with an alarm until something is stored', async () => {
    const { blobs, alarms } = await openStore();
    s3.fault = ({ method }) => (method === 'PUT' ? { status: 507, code: 'XMinioStorageFull' } : undefined);
    const error = await storeBlob(blobs, randomSecret(100_000)).catch((reason: unknown) => reason);
    assert.ok(isAppError(error, 'out_of_space'));
    assert.equal(alarms.list()[0]?.code, 'blobs_full');
    s3.fault = () => undefined;
    await storeBlob(blobs, randomSecret(100_000));
    assert.deepEqual(alarms.list(), []);
  });
});

describe('the bucket of a cloud', () => {
  const refusal = (options: OpenOptions) =>
    openStore(options).then(
      () => assert.fail('it was opened'),
      (error: unknown) => {
        assert.ok(error instanceof StartupError, String(error));
        assert.doesNotMatch(error.message, /S3RVER|wrong-secret|\n/);
        return error.message;
      },
    );

  test("another cloud's bucket, a missing one and wrong keys are refused with the way out", async () => {
    const url = s3.url('owned');
    await openStore({ url });
    await openStore({ url });
    assert.match(await refusal({ url, cloudId: 'cld-2' }), /belongs to the cloud cld-1/);
    assert.match(await refusal({ url: s3.url('empty'), mayMark: false }), /no objects of this cloud/);
    assert.match(await refusal({ url: s3.url('x', { bucket: 'elsewhere' }) }), /Create the bucket/);
    assert.match(await refusal({ url: s3.url('x', { keys: 'S3RVER:wrong-secret' }) }), /key and secret/);
  });

  test('nothing is removed once the mark is gone, or is of another cloud', async () => {
    const prefix = 'unmarked';
    const { blobs } = await openStore({ url: s3.url(prefix) });
    const { name } = await storeBlob(blobs, randomSecret(100_000));
    s3.fault = ({ path }) =>
      path.includes('cloudlet.json') ? { status: 404, code: 'NoSuchKey' } : undefined;
    assert.equal(await blobs.isOurs(), false);
    await assert.rejects(blobs.remove(name), /cannot be reached/);
    await assert.rejects(blobs.removeUnfinished(systemClock.now()), /cannot be reached/);
    // Removals of earlier tests may still be running, below other prefixes.
    assert.equal(s3.count('DELETE', `${prefix}/blobs/`), 0);
    s3.fault = () => undefined;
    assert.equal(await blobs.isOurs(), true);
    await blobs.remove(name);
    assert.equal(s3.count('DELETE', keyOf(name)), 1);
  });

  test('S3 that is away at the start raises the alarm, and the bucket is claimed when it is back', async () => {
    const url = s3.url('late');
    await s3.shut();
    const { blobs, alarms } = await openStore({ url });
    assert.equal(alarms.list()[0]?.code, 'blobs_unreachable');
    await assert.rejects(blobs.create({ dataKey: null }), /cannot be reached/);
    await s3.open();
    const ref = await storeBlob(blobs, randomSecret(100_000));
    assert.equal((await readBlob(blobs, ref)).error, undefined);
    assert.deepEqual(alarms.list(), []);
    assert.equal(await blobs.isOurs(), true);
  });
});

test('stored bytes are copied as they are, and read again with the same key', async () => {
  const { blobs } = await openStore();
  for (const size of [100_000, 17 * MIB]) {
    const ref = await storeBlob(blobs, randomSecret(size), { dataKey: randomSecret(32) });
    const raw = blobs.raw(ref.name);
    assert.equal(raw.path, keyOf(ref.name));
    if (!('open' in raw)) return assert.fail('it is no file');
    const pieces = await Array.fromAsync((await raw.open()) ?? []);
    const stored = Buffer.concat(pieces);
    await blobs.remove(ref.name);
    assert.equal(await raw.open(), undefined);
    const copy = { name: ref.name, storedBytes: stored.length };
    const bytes = async function* () {
      for (let at = 0; at < stored.length; at += 77_777) yield stored.subarray(at, at + 77_777);
    };
    await assert.rejects(
      blobs.storeRaw({ ...copy, storedBytes: stored.length + 1, bytes: bytes() }),
      /damaged/,
    );
    await blobs.storeRaw({ ...copy, bytes: bytes() });
    await blobs.storeRaw({ ...copy, bytes: bytes() });
    assert.ok((await readBlob(blobs, ref)).bytes.equals(ref.content));
  }
});
