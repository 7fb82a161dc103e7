import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { notInstalled } from '../../../scripts/installed.ts';
import { Alarms } from '../../platform/alarms.ts';
import { systemClock } from '../../platform/clock.ts';
import { AppError, isAppError } from '../../platform/errors.ts';
import { newId, randomSecret } from '../../platform/ids.ts';
import { readBlob, storeBlob, testBlobStore } from '../../testing/blobs.conformance.ts';
import { eventually } from '../../testing/eventually.ts';
import { BlobFault } from '../blob-frames/blob-fault.ts';
import { blobPath, CHUNK_BYTES, CRC_BYTES, frameOffset, TAG_BYTES } from '../blob-frames/blob-format.ts';
import { frameCodec } from '../blob-frames/frame-codec.ts';
import { CachedAppender } from './appender.ts';
import { BlobDirectories } from './blob-directories.ts';
import { FileBlobStore, type SpaceCheck } from './blobs-file.ts';
import { type FileThreads, fileThreads } from './file-threads.ts';
import { FrameWriter } from './frame-writer.ts';

const scratch = mkdtempSync(join(tmpdir(), 'cloudlet-blobs-'));
const opened: FileBlobStore[] = [];
after(async () => {
  // A failed test has not closed its own.
  await Promise.allSettled(opened.map((blobs) => blobs.close()));
  rmSync(scratch, { recursive: true });
});

const unlimited: SpaceCheck = { assertSpace: () => {} };

interface Opened {
  readonly blobs: FileBlobStore;
  readonly workers: FileThreads;
  readonly alarms: Alarms;
  readonly directory: string;
}

function openAt(directory: string, diskSpace = unlimited): Opened {
  const alarms = new Alarms(systemClock);
  const workers = fileThreads({ directory, threads: 2, directWrites: 4, alarms });
  const deps = { directory, threads: 2, directWrites: 4, clock: systemClock, alarms, diskSpace };
  const blobs = new FileBlobStore(deps, workers);
  opened.push(blobs);
  return { blobs, workers, alarms, directory };
}

const openNew = (diskSpace?: SpaceCheck) => openAt(mkdtempSync(join(scratch, 'b-')), diskSpace);

/** Open files below `directory`, deleted ones included. */
function openFiles(directory: string): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`);
      return target.startsWith(directory) ? [target] : [];
    } catch {
      return [];
    }
  });
}

async function assertNoOpenFiles(directory: string): Promise<void> {
  await eventually(() => openFiles(directory).length === 0);
}

testBlobStore('FileBlobStore', () =>
  FileBlobStore.open({
    directory: join(scratch, 'made', 'by', 'open'),
    threads: 2,
    directWrites: 2,
    clock: systemClock,
    alarms: new Alarms(systemClock),
    diskSpace: unlimited,
  }),
);
testBlobStore('FileBlobStore with one thread, through the cache', () =>
  FileBlobStore.open({
    directory: join(scratch, 'one'),
    threads: 1,
    directWrites: 0,
    clock: systemClock,
    alarms: new Alarms(systemClock),
    diskSpace: unlimited,
  }),
);

test('files and directories are private', async () => {
  const { blobs, directory } = openNew();
  const { name } = await storeBlob(blobs, randomSecret(100));
  assert.equal(statSync(join(directory, blobPath(name))).mode & 0o777, 0o600);
  assert.equal(statSync(join(directory, blobPath(name), '..')).mode & 0o777, 0o700);
  await assert.rejects(blobs.remove('../../etc/passwd'));
  await assert.rejects(blobs.remove(`blob-../${'a'.repeat(23)}`));
  await blobs.close();
});

for (const dataKey of [null, randomSecret(32)]) {
  const kind = dataKey === null ? 'plain' : 'encrypted';
  const tail = dataKey === null ? CRC_BYTES : TAG_BYTES;
  const frame = CHUNK_BYTES + tail;

  test(`${kind}: a flipped bit anywhere in a blob ends the read before its chunk`, async () => {
    const { blobs, directory } = openNew();
    const ref = await storeBlob(blobs, randomSecret(6 * CHUNK_BYTES + 100), { dataKey });
    const path = join(directory, blobPath(ref.name));
    const good = readFileSync(path);
    const offsets = Array.from({ length: 60 }, () => randomSecret(4).readUInt32LE() % good.length);
    for (let i = 0; i < 7; i++)
      offsets.push(frameOffset(i, tail), Math.min((i + 1) * frame, good.length) - 1);
    for (const offset of offsets) {
      const bad = Buffer.from(good);
      bad.writeUInt8(bad.readUInt8(offset) ^ (1 << (offset % 8)), offset);
      writeFileSync(path, bad);
      const { bytes, error } = await readBlob(blobs, ref);
      assert.ok(isAppError(error, 'data_corrupted'), `byte ${offset}: ${error}`);
      const chunk = Math.floor(offset / frame);
      assert.ok(bytes.equals(ref.content.subarray(0, chunk * CHUNK_BYTES)), `byte ${offset}`);
      // The chunks beside it are still readable.
      const other = chunk === 0 ? 1 : 0;
      const range = { start: other * CHUNK_BYTES, end: (other + 1) * CHUNK_BYTES };
      assert.equal((await readBlob(blobs, ref, range)).error, undefined);
    }
    await assertNoOpenFiles(directory);
    await blobs.close();
  });

  test(`${kind}: a blob cut, lengthened, swapped, reordered or missing is damaged`, async () => {
    const { blobs, directory } = openNew();
    const ref = await storeBlob(blobs, randomSecret(3 * CHUNK_BYTES), { dataKey });
    const twin = await storeBlob(blobs, randomSecret(3 * CHUNK_BYTES), { dataKey });
    const path = join(directory, blobPath(ref.name));
    const good = readFileSync(path);
    const assertDamaged = async (what: string) => {
      const { bytes, error } = await readBlob(blobs, ref);
      assert.ok(isAppError(error, 'data_corrupted'), `${what}: ${error}`);
      assert.ok(bytes.equals(ref.content.subarray(0, bytes.length)), what);
      writeFileSync(path, good);
    };
    for (const edge of [0, frame, 2 * frame, 3 * frame]) {
      for (const length of [edge - 1, edge, edge + 1]) {
        if (length < 0 || length === good.length) continue;
        truncateSync(path, length);
        await assertDamaged(`length ${length}`);
      }
    }
    appendFileSync(path, Buffer.alloc(frame));
    await assertDamaged('a frame more');
    copyFileSync(join(directory, blobPath(twin.name)), path);
    await assertDamaged('swapped');
    writeFileSync(
      path,
      Buffer.concat([good.subarray(frame, 2 * frame), good.subarray(0, frame), good.subarray(2 * frame)]),
    );
    await assertDamaged('reordered');
    writeFileSync(path, Buffer.concat([good.subarray(0, 2 * frame), good.subarray(0, frame)]));
    await assertDamaged('a frame twice');
    // Cut at a frame, and the row's size made to fit: only the last-flag can tell.
    truncateSync(path, 2 * frame);
    const shorter = await readBlob(blobs, { ...ref, sizeBytes: 2 * CHUNK_BYTES });
    assert.ok(isAppError(shorter.error, 'data_corrupted'));
    rmSync(path);
    await assertDamaged('missing');
    await blobs.close();
  });
}

test('a thread is started when there is work for it, and no more than are allowed', async () => {
  const { blobs, workers } = openNew();
  assert.equal(workers.threads.length, 0);
  const ref = await storeBlob(blobs, randomSecret(1000));
  assert.equal(workers.threads.length, 1);
  await readBlob(blobs, ref);
  assert.equal(workers.threads.length, 1, 'one after the other needs no second');
  await Promise.all(Array.from({ length: 8 }, () => storeBlob(blobs, randomSecret(2 ** 20))));
  assert.equal(workers.threads.length, 2);
  await blobs.close();
});

test('no file stays open after reads that end early or writes that are aborted', async () => {
  const { blobs, directory } = openNew();
  const ref = await storeBlob(blobs, randomSecret(4 * 2 ** 20));
  const range = { start: 0, end: ref.sizeBytes };
  await Promise.all(
    Array.from({ length: 50 }, async (_, i) => {
      const controller = new AbortController();
      let calls = 0;
      const sink = () => {
        if (++calls > i % 7) controller.abort();
        return i % 2 === 0 ? undefined : sleep(1);
      };
      const run = blobs.read(ref, range, { sink, signal: controller.signal });
      if (i % 5 === 0) controller.abort();
      await assert.rejects(run, { name: 'AbortError' });
      const writer = await blobs.create({ dataKey: null });
      writer.write(randomSecret(100_000 * (i % 9)))?.catch(() => {});
      await writer.abort();
    }),
  );
  await assertNoOpenFiles(directory);
  await blobs.close();
});

test('a thread that dies takes its work with it, and nothing else', async () => {
  const { blobs, workers, alarms, directory } = openNew();
  const ref = await storeBlob(blobs, randomSecret(4 * 2 ** 20));
  const writers = await Promise.all(Array.from({ length: 6 }, () => blobs.create({ dataKey: null })));
  for (const writer of writers) await writer.write(randomSecret(2 ** 20));
  const reads = Promise.allSettled(
    Array.from({ length: 6 }, () =>
      blobs.read(ref, { start: 0, end: ref.sizeBytes }, { sink: () => sleep(5) }),
    ),
  );
  const [victim] = workers.threads;
  await sleep(10);
  await victim?.kill();
  // Reads continue in another thread; a blob half written by the dead thread is lost.
  const writes = await Promise.allSettled(writers.map((writer) => writer.finish()));
  const failed = [...(await reads), ...writes].filter((end) => end.status === 'rejected');
  assert.ok(failed.length > 0);
  for (const { reason } of failed) assert.ok(isAppError(reason, 'internal_error'), String(reason));
  assert.deepEqual(
    alarms.list().map(({ code }) => code),
    ['blob_thread_died'],
  );
  await Promise.all(writers.map((writer) => writer.abort()));
  assert.equal(workers.threads.length, 2);
  const again = await storeBlob(blobs, randomSecret(3 * 2 ** 20));
  assert.ok((await readBlob(blobs, again)).bytes.equals(again.content));
  const names = [];
  for await (const { name } of blobs.list()) names.push(name);
  assert.deepEqual(names.sort(), [ref.name, again.name].sort());
  await assertNoOpenFiles(directory);
  await blobs.close();
});

test('disk space is asked for before and while a blob is written', async () => {
  let left = 1_000_000;
  const { blobs } = openNew({
    assertSpace: (bytes) => {
      if (bytes > left) throw new AppError('out_of_space', 'The disk is nearly full.');
      left -= bytes;
    },
  });
  const writer = await blobs.create({ dataKey: null });
  const writing = (async () => {
    for (let i = 0; i < 100; i++) await writer.write(randomSecret(65_536));
  })();
  await assert.rejects(writing, { code: 'out_of_space' });
  await writer.abort();
  left = 0;
  await assert.rejects(blobs.create({ dataKey: null }), { code: 'out_of_space' });
  await blobs.close();
});

test('close aborts what is being written and refuses what comes later', async () => {
  const { blobs, directory } = openNew();
  const writer = await blobs.create({ dataKey: null });
  await writer.write(randomSecret(500_000));
  await blobs.close();
  assert.throws(() => writer.write(Buffer.alloc(1)));
  await assert.rejects(blobs.create({ dataKey: null }), { code: 'shutting_down' });
  assert.equal(
    readdirSync(directory, { recursive: true }).filter((name) => String(name).includes('blob-')).length,
    0,
  );
});

const isRoot = process.getuid?.() === 0;
const needsRoot = { skip: isRoot ? notInstalled('mount') : 'mounting a file system needs root' };

test('a full disk: out_of_space, the rest stays readable, and space ends it', needsRoot, async () => {
  const directory = mkdtempSync(join(scratch, 'full-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', directory]);
  try {
    const { blobs } = openAt(directory);
    const ref = await storeBlob(blobs, randomSecret(3 * 2 ** 20));
    for (const size of [1_200_000, 2_000_000]) {
      const writer = await blobs.create({ dataKey: null });
      const writing = (async () => {
        await writer.write(randomSecret(size));
        await writer.finish();
      })();
      await assert.rejects(writing, { code: 'out_of_space' });
      await writer.abort();
    }
    assert.ok((await readBlob(blobs, ref)).bytes.equals(ref.content));
    await blobs.remove(ref.name);
    await storeBlob(blobs, randomSecret(2 * 2 ** 20));
    assert.equal(
      readdirSync(directory, { recursive: true }).filter((name) => String(name).includes('blob-')).length,
      1,
    );
    await assertNoOpenFiles(directory).finally(() => blobs.close());
  } finally {
    execFileSync('umount', ['-l', directory]);
  }
});

test('a file system without O_DIRECT is written through the cache', needsRoot, async () => {
  const directory = mkdtempSync(join(scratch, 'ramfs-'));
  execFileSync('mount', ['-t', 'ramfs', 'ramfs', directory]);
  try {
    const { blobs } = openAt(directory);
    const ref = await storeBlob(blobs, randomSecret(3 * 2 ** 20));
    assert.ok((await readBlob(blobs, ref)).bytes.equals(ref.content));
    await blobs.close();
  } finally {
    execFileSync('umount', ['-l', directory]);
  }
});

test('a read goes on when the thread that opened its file dies, although the number is another file by then', async () => {
  const { blobs, workers, directory } = openNew();
  const ref = await storeBlob(blobs, randomSecret(6 * 2 ** 20));
  const received: Buffer[] = [];
  const others: number[] = [];
  const sink = async (chunk: Uint8Array) => {
    received.push(Buffer.from(chunk));
    if (received.length !== 2) return;
    await Promise.all(workers.threads.map((thread) => thread.kill()));
    for (let i = 0; i < 20; i++) others.push(openSync('/dev/zero', 'r'));
  };
  await blobs.read(ref, { start: 0, end: ref.sizeBytes }, { sink });
  for (const fd of others) closeSync(fd);
  assert.ok(Buffer.concat(received).equals(ref.content));
  await assertNoOpenFiles(directory);
  await blobs.close();
});

test('a directory that could not be opened is synced by the next who asks', async () => {
  const root = mkdtempSync(join(scratch, 'd-'));
  const directories = new BlobDirectories(root);
  const name = newId('blob', systemClock);
  const isNoSyncFault = (error: unknown) => error instanceof BlobFault && error.kind === 'write';
  await assert.rejects(directories.sync(name), isNoSyncFault);
  mkdirSync(join(root, dirname(blobPath(name))));
  await directories.sync(name);
});

test('a failed fsync: no finish, an alarm, and no write after it', async () => {
  const { blobs, alarms, directory } = openNew();
  const good = await storeBlob(blobs, randomSecret(200_000));
  // Enough of them to be in both threads, only one of which sees the failure.
  const others = await Promise.all(Array.from({ length: 8 }, () => blobs.create({ dataKey: null })));
  const writer = await blobs.create({ dataKey: null });
  await writer.write(randomSecret(2 ** 20));
  const path = join(directory, blobPath(writer.name));
  await eventually(() => existsSync(path));
  // The kernel really refuses to sync /proc: the driver syncs the directory that has taken the place.
  renameSync(dirname(path), join(directory, 'moved'));
  symlinkSync('/proc', dirname(path));
  await assert.rejects(writer.finish(), { code: 'read_only' });
  assert.deepEqual(
    alarms.list().map(({ code }) => code),
    ['blob_fsync_failed'],
  );
  rmSync(dirname(path));
  await writer.abort();
  await assert.rejects(blobs.create({ dataKey: null }), { code: 'read_only' });
  await Promise.all(others.map((other) => assert.rejects(other.finish(), { code: 'read_only' })));
  if (dirname(blobPath(good.name)) !== dirname(blobPath(writer.name))) {
    assert.ok((await readBlob(blobs, good)).bytes.equals(good.content));
  }
  await blobs.close();
});

test('a failed fdatasync is remembered, not tried again', async () => {
  // A device that accepts writes and has no fdatasync.
  const fd = openSync('/dev/null', 'w');
  const writer = new FrameWriter(fd, new CachedAppender(fd), frameCodec('blob', null));
  await writer.append(Buffer.alloc(10), true);
  const isSyncFault = (error: unknown) => error instanceof BlobFault && error.kind === 'sync';
  await assert.rejects(writer.sync(), isSyncFault);
  await assert.rejects(writer.sync(), isSyncFault);
  await assert.rejects(writer.append(Buffer.alloc(10), true), isSyncFault);
  await writer.close();
});
