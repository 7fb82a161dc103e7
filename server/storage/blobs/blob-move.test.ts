import assert from 'node:assert/strict';
import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, beforeEach, test } from 'node:test';
import { FileBlobStore } from '../../drivers/blobs-file/blobs-file.ts';
import { systemClock } from '../../platform/clock.ts';
import { randomSecret } from '../../platform/ids.ts';
import { openStorageFixture, type StorageFixture } from '../../testing/storage-fixture.ts';
import { type MoveFigures, moveBlobs } from './blob-move.ts';

const SIZE = 100_000;
const COUNT = 5;

const opened: { close(): Promise<unknown> }[] = [];
let fixture: StorageFixture;
let to: FileBlobStore;
let names: string[];

beforeEach(async () => {
  fixture = await openStorageFixture();
  const { alarms, diskSpace, directory } = fixture;
  const options = { clock: systemClock, alarms, diskSpace, threads: 1, directWrites: 1 };
  to = await FileBlobStore.open({ directory: join(directory, 'moved'), ...options });
  opened.push(to, fixture);
  names = [];
  for (let i = 0; i < COUNT; i++) {
    const writer = await fixture.blobs.create({ dataKey: null });
    await writer.write(randomSecret(SIZE));
    const { name } = await writer.finish();
    writer.release();
    names.push(name);
    const params = [name, SIZE];
    await fixture.metadata.commit([{ sql: 'INSERT INTO blobs (name, size_bytes) VALUES (?, ?)', params }]);
  }
});
after(async () => {
  for (const each of opened) await each.close();
});

function move(onProgress: (done: MoveFigures, total: MoveFigures) => void = () => {}) {
  const { blobs: from, blobSql: store } = fixture;
  return moveBlobs({ store, from, to, dataKeys: { open: () => null }, onProgress });
}

function pathIn(store: FileBlobStore, index: number): string {
  return store.raw(names[index] ?? '').absolutePath ?? assert.fail();
}

function markDamaged(index: number): Promise<unknown> {
  return fixture.metadata.commit([fixture.blobSql.setDamaged(index + 1, 1)]);
}

test('all blobs are there, byte for byte, and the progress ends at all', async () => {
  const seen: MoveFigures[] = [];
  const moved = await move((done, total) => {
    seen.push({ ...done });
    assert.deepEqual(total, { blobs: COUNT, bytes: COUNT * SIZE });
  });
  assert.deepEqual(moved, { blobs: COUNT, bytes: COUNT * SIZE, compared: 1, damaged: [] });
  assert.deepEqual(
    seen.map(({ blobs }) => blobs),
    [1, 2, 3, 4, 5],
  );
  for (const i of names.keys())
    assert.deepEqual(readFileSync(pathIn(to, i)), readFileSync(pathIn(fixture.blobs, i)));
});

test('bytes that are missing end the move, unless they are known to be damaged', async () => {
  rmSync(pathIn(fixture.blobs, 3));
  await assert.rejects(move(), (error: Error) => {
    assert.ok(error.message.includes(`the bytes of 1 object are missing (${names[3]})`), error.message);
    return error.message.includes('cloudlet scrub');
  });
  await markDamaged(3);
  assert.deepEqual((await move()).damaged, [names[3]]);
});

test('a copy that cannot be read back ends the move; damage that was there before does not', async () => {
  const good = readFileSync(pathIn(fixture.blobs, 0));
  const bad = Buffer.from(good);
  bad[500] = (bad[500] ?? 0) ^ 1;
  await move();
  writeFileSync(pathIn(to, 0), bad);
  await assert.rejects(move(), /was copied, but cannot be read back/);
  writeFileSync(pathIn(fixture.blobs, 0), bad);
  assert.deepEqual((await move()).damaged, [names[0]]);
});

test('a copy that was cut short is made again', async () => {
  await move();
  truncateSync(pathIn(to, 2), 10);
  await move();
  assert.deepEqual(readFileSync(pathIn(to, 2)), readFileSync(pathIn(fixture.blobs, 2)));
});
