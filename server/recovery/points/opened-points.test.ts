import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { OpenedPoints } from './opened-points.ts';
import type { PointFile } from './point-files.ts';

/** A file of a point with these bytes. */
function fileOf(text: string): PointFile {
  return {
    sizeBytes: text.length,
    read: async function* () {
      yield Buffer.from(text);
    },
    writeTo: (path: string) => writeFile(path, text),
  } as unknown as PointFile;
}

/** Points whose metadata and key are texts; `opened` lists the open folders. */
function points(t: TestContext, more: { fails?: () => boolean; assertSpace?: (bytes: number) => void } = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-opened-'));
  const opened = new Set<string>();
  const all = new OpenedPoints({
    directory,
    files: () => ({
      points: async () => [],
      find: async (_pointId, { component }) => fileOf(component === 'metadata' ? 'rows' : 'key'),
      findAll: async () => new Map([['blobs/a', fileOf('bytes of a')]]),
    }),
    assertSpace: more.assertSpace ?? (() => {}),
    openFolder: async (folder, keys) => {
      if (more.fails?.()) throw new Error('no metadata');
      assert.deepEqual([keys.text, readdirSync(folder)], ['key', ['metadata.db']]);
      opened.add(folder);
      return {
        reads: {} as never,
        sealer: {} as never,
        blobs: {
          raw: (name: string) => ({ path: `blobs/${name}`, absolutePath: join(folder, 'blobs', name) }),
          read: async () => assert.deepEqual(readdirSync(join(folder, 'blobs')), ['a']),
        } as never,
        close: async () => void opened.delete(folder),
      };
    },
  });
  t.after(async () => {
    await all.close();
    rmSync(directory, { recursive: true, force: true });
  });
  return { all, opened, directory };
}

/** Uses a point until `leave` is called. */
function use(all: OpenedPoints, pointId: string) {
  const { promise, resolve: leave } = Promise.withResolvers<void>();
  const entered = Promise.withResolvers<void>();
  const done = all.during(pointId, async () => {
    entered.resolve();
    await promise;
  });
  return { entered: entered.promise, leave, done };
}

const turns = async () => {
  for (let i = 0; i < 20; i++) await new Promise(setImmediate);
};

test('two points are open at most; a third waits, and nobody passes it', async (t) => {
  const { all, opened } = points(t);
  const [one, other] = [use(all, 'a'), use(all, 'b')];
  await Promise.all([one.entered, other.entered]);
  const third = use(all, 'c');
  const again = use(all, 'a');
  let isPassed = false;
  void again.entered.then(() => {
    isPassed = true;
  });
  await turns();
  assert.deepEqual([opened.size, all.isWanted, isPassed], [2, true, false]);
  one.leave();
  await one.done;
  await third.entered;
  assert.equal(opened.size, 2);
  other.leave();
  third.leave();
  await again.entered;
  again.leave();
  await Promise.all([other.done, third.done, again.done]);
  assert.equal(all.isWanted, false);
});

test('callers of one point share it, and one of an opening that failed is tried again', async (t) => {
  let fails = true;
  const { all, opened, directory } = points(t, { fails: () => fails });
  await assert.rejects(use(all, 'a').done, /no metadata/);
  await turns();
  assert.equal(existsSync(join(directory, 'a')), false, 'the folder of a failed opening is gone');
  fails = false;
  const [one, other] = [use(all, 'a'), use(all, 'a')];
  await Promise.all([one.entered, other.entered]);
  assert.equal(opened.size, 1);
  one.leave();
  other.leave();
  await Promise.all([one.done, other.done]);
});

test('a file of an object is there only while it is read, and a missing one is damage', async (t) => {
  const { all, directory } = points(t);
  await all.during('a', async ({ blobs }) => {
    const { read } = await blobs(['a']);
    await read({ name: 'a' } as never, {} as never, {} as never);
    assert.deepEqual(readdirSync(join(directory, 'a', 'blobs')), []);
    await assert.rejects(read({ name: 'b' } as never, {} as never, {} as never), { code: 'data_corrupted' });
  });
});

test('without space no point is opened, and those in line are told when Cloudlet ends', async (t) => {
  const full = points(t, {
    assertSpace: () => {
      throw new Error('full');
    },
  });
  await assert.rejects(use(full.all, 'a').done, /full/);
  const { all, opened } = points(t);
  const users = [use(all, 'a'), use(all, 'b')];
  await Promise.all(users.map(({ entered }) => entered));
  const late = use(all, 'c');
  await turns();
  const closed = all.close();
  await assert.rejects(late.done, { code: 'shutting_down' });
  for (const { leave } of users) leave();
  await Promise.all([closed, ...users.map(({ done }) => done)]);
  assert.equal(opened.size, 0);
});
