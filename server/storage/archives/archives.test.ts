import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Unpacked, unzip } from '../../../test/harness/zip.ts';
import type { Principal } from '../../calls/principal.ts';
import { endOfTick } from '../../platform/concurrency.ts';
import { type ErrorCode, isAppError } from '../../platform/errors.ts';
import { by } from '../../testing/account-fixture.ts';
import {
  openStorageFixture,
  type StorageFixture,
  TEST_ARCHIVE_FILES,
} from '../../testing/storage-fixture.ts';
import { ZipWriter } from './zip-writer.ts';

let fixture: StorageFixture;
let owner: Principal;
before(async () => {
  fixture = await openStorageFixture();
  owner = await fixture.newPrincipal('owner');
});
after(() => fixture.close());

async function archive(bucket: string, prefix: string): Promise<{ fileName: string; files: Unpacked[] }> {
  const { fileName, send } = await fixture.archives.open({ principal: owner }, { bucket, prefix });
  const chunks: Buffer[] = [];
  const keep = async (chunk: Uint8Array) => void chunks.push(Buffer.from(chunk));
  await send(keep, new AbortController().signal);
  return { fileName, files: unzip(Buffer.concat(chunks)) };
}

async function archiveChosen(bucket: string, names: readonly string[]) {
  const { id } = await fixture.selections.keep(owner, bucket, names);
  const selection = await fixture.selections.find(owner, id);
  const { fileName, send } = await fixture.archives.openChosen({ principal: owner }, bucket, selection);
  const chunks: Buffer[] = [];
  await send(async (chunk) => void chunks.push(Buffer.from(chunk)), new AbortController().signal);
  return { fileName, names: unzip(Buffer.concat(chunks)).map(({ name }) => name) };
}

async function fill(bucket: string, names: readonly string[], size = 1): Promise<void> {
  await fixture.buckets.create(by(owner), { name: bucket, versioning: true, encryption: true });
  for (const name of names) await fixture.put(owner, bucket, { name, bytes: Buffer.alloc(size, name) });
}

test('a folder with all below it, whole, and nothing else', async () => {
  await fill('trip', ['a.txt', 'year/2026/may.txt', 'year/june.txt', 'year0'], 100_000);
  const { object_id } = await fixture.put(owner, 'trip', { name: 'year/gone', bytes: Buffer.alloc(1) });
  await fixture.removals.remove(by(owner), object_id);
  await fixture.put(owner, 'trip', { name: 'year/folder/', bytes: Buffer.alloc(0) });
  const { fileName, files } = await archive('trip', 'year/');
  assert.equal(fileName, 'year.zip');
  assert.deepEqual(
    files.map(({ name, bytes }) => [name, bytes.equals(Buffer.alloc(100_000, name))]),
    [
      ['year/2026/may.txt', true],
      ['year/june.txt', true],
    ],
  );
  const whole = await archive('trip', '');
  assert.deepEqual([whole.fileName, whole.files.length], ['trip.zip', 4]);
});

test('files and folders that were chosen, each once, below the folder that they are in', async () => {
  const names = ['2026/a.txt', '2026/a.txt.old', '2026/b/c.txt', '2026/b/d/e.txt', '2026/f', 'x'];
  await fill('chosen', names);
  const few = ['2026/f', '2026/a.txt', '2026/gone', '2026/b/', '2026/b/c.txt', '2026/f'];
  assert.deepEqual(await archiveChosen('chosen', few), {
    fileName: '2026.zip',
    names: ['2026/a.txt', '2026/b/c.txt', '2026/b/d/e.txt', '2026/f'],
  });
  const far = await archiveChosen('chosen', ['x', '2026/b/d/e.txt']);
  assert.deepEqual(far, { fileName: 'chosen.zip', names: ['chosen/2026/b/d/e.txt', 'chosen/x'] });
  assert.deepEqual(await archiveChosen('chosen', ['2026/b/']), {
    fileName: 'b.zip',
    names: ['b/c.txt', 'b/d/e.txt'],
  });
  assert.deepEqual((await archiveChosen('chosen', ['2026/b/', '2026/bb/'])).fileName, '2026.zip');
});

test('a selection is its account’s and its bucket’s, for a while, and what a key may list', async () => {
  await fill('selected', ['own/a', 'b']);
  await fill('elsewhere', ['own/a']);
  const { id } = await fixture.selections.keep(owner, 'selected', ['own/a']);
  const other = await fixture.newPrincipal('nosy');
  const refused = (work: Promise<unknown>, code: ErrorCode) =>
    assert.rejects(work, (error) => isAppError(error, code));
  await refused(fixture.selections.find(other, id), 'selection_not_found');
  await refused(fixture.selections.keep(other, 'selected', ['own/a']), 'bucket_not_found');
  const selection = await fixture.selections.find(owner, id);
  await refused(
    fixture.archives.openChosen({ principal: owner }, 'elsewhere', selection),
    'selection_not_found',
  );
  const limited: Principal = { ...owner, bucketLimits: [{ bucket: 'selected', prefix: 'own/' }] };
  await refused(fixture.selections.keep(limited, 'selected', ['own/a', 'b']), 'scope_required');
  await fixture.selections.keep(limited, 'selected', ['own/a']);
  const many = Array.from({ length: TEST_ARCHIVE_FILES + 1 }, (_, i) => `many/${i}`);
  await fill('too-many', many);
  await refused(archiveChosen('too-many', many), 'invalid_request');
  fixture.clock.advance(15 * 60_000);
  await refused(fixture.selections.find(owner, id), 'selection_not_found');
});

test('names lead nowhere but into the folder they are unpacked in, and none becomes another', async () => {
  const hostile = [
    '../../etc/passwd',
    '/etc/passwd',
    'a//b',
    'a/_/b',
    'x/./y',
    'C:\\Windows\\x',
    '..',
    '<b>é😀',
  ];
  await fill('hostile', hostile);
  const { files } = await archive('hostile', '');
  const names = files.map(({ name }) => name);
  assert.equal(new Set(names).size, hostile.length);
  for (const name of names) {
    assert.ok(name.startsWith('hostile/'), name);
    assert.doesNotMatch(name, /[\\:]/);
    for (const part of name.split('/')) assert.ok(!['', '.', '..'].includes(part), name);
  }
  assert.ok(names.includes('hostile/<b>é😀'), 'what leads nowhere stays as it is');
});

test('a file that is a folder too has another name, so that all of the zip can be unpacked', async () => {
  const names = ['a', 'a-b', 'a/b', 'a/b/c', 'a.d', 'b', 'ba'];
  await fill('both', names);
  const own = async (found: Promise<{ files: Unpacked[] }>) =>
    (await found).files.map(({ name }) => name.replace(/~\w{6}$/, '~'));
  const all = ['a~', 'a-b', 'a.d', 'a/b~', 'a/b/c', 'b', 'ba'].map((name) => `both/${name}`);
  assert.deepEqual(await own(archive('both', '')), all);
  assert.deepEqual((await archiveChosen('both', ['a', 'b', 'ba'])).names, ['both/a', 'both/b', 'both/ba']);
  const chosen = (await archiveChosen('both', ['a', 'a/'])).names.map((name) => name.replace(/~\w{6}$/, '~'));
  assert.deepEqual(chosen, ['both/a~', 'both/a/b~', 'both/a/b/c']);
});

test('what is sent is counted as a download, for owners alone, and too many files are refused', async () => {
  await fill('counted', ['a', 'b'], 30_000);
  const { id } = await fixture.buckets.find(owner, 'counted');
  await archive('counted', '');
  assert.equal(fixture.egress.latest(id), 60_000);
  const other = await fixture.newPrincipal('other');
  await assert.rejects(
    fixture.archives.open({ principal: other }, { bucket: 'counted', prefix: '' }),
    (error) => isAppError(error, 'bucket_not_found'),
  );
  await fill(
    'crowded',
    Array.from({ length: TEST_ARCHIVE_FILES + 1 }, (_, i) => `file-${i}`),
  );
  await assert.rejects(
    fixture.archives.open({ principal: owner }, { bucket: 'crowded', prefix: '' }),
    (error) => isAppError(error, 'invalid_request'),
  );
});

test('others get their turn while small files are sent to a fast reader', async () => {
  const names = Array.from({ length: 10 }, (_, i) => `file-${i}`);
  await fill('small', names);
  let turns = 0;
  let isEnded = false;
  const count = () => {
    turns++;
    if (!isEnded) setImmediate(count);
  };
  setImmediate(count);
  await archive('small', '');
  isEnded = true;
  assert.ok(turns >= names.length, `${turns} turns of the event loop`);
});

test('zips of an account that nobody reads leave others their share, and a later one its own', async () => {
  await fill('held', ['a', 'b']);
  const gone = Promise.withResolvers<never>();
  gone.promise.catch(() => {});
  const waiting: Promise<void>[] = [];
  const more = async () => {
    const { send } = await fixture.archives.open({ principal: owner }, { bucket: 'held', prefix: '' });
    waiting.push(send(() => gone.promise, new AbortController().signal));
    return Promise.race([waiting.at(-1), endOfTick()]);
  };
  await assert.rejects(
    async () => {
      for (let i = 0; i < 100; i++) await more();
    },
    (error) => isAppError(error, 'overloaded'),
  );
  assert.ok(waiting.length > 10);
  const other = await fixture.newPrincipal('reader');
  await fixture.buckets.create(by(other), { name: 'theirs', versioning: false, encryption: false });
  const { send } = await fixture.archives.open({ principal: other }, { bucket: 'theirs', prefix: '' });
  await send(async () => {}, new AbortController().signal);
  gone.reject(new Error('gone'));
  await Promise.allSettled(waiting);
  assert.equal((await archive('held', '')).files.length, 2);
});

test('more files than the old format counts', async () => {
  const chunks: Buffer[] = [];
  const zip = new ZipWriter(async (chunk) => void chunks.push(Buffer.from(chunk)));
  for (let i = 0; i < 65_540; i++) {
    const bytes = Buffer.from(String(i));
    await zip.add({
      name: `file-${i}`,
      modifiedAt: 0,
      sizeBytes: bytes.length,
      read: async (sink) => {
        await sink(bytes);
      },
    });
  }
  await zip.end();
  const files = unzip(Buffer.concat(chunks));
  assert.deepEqual([files.length, files.at(-1)?.bytes.toString()], [65_540, '65539']);
});
