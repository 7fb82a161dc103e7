import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Principal } from '../../calls/principal.ts';
import { by } from '../../testing/account-fixture.ts';
import { rejects, sharedStorage } from '../../testing/shared-storage.ts';
import type { StorageFixture } from '../../testing/storage-fixture.ts';

let fixture: StorageFixture;
let owner: Principal;
let buckets = 0;
sharedStorage((shared) => {
  ({ fixture, owner } = shared);
});

async function newBucket(settings: { versioning?: boolean; encryption?: boolean } = {}): Promise<string> {
  const name = `bucket-${buckets++}`;
  await fixture.buckets.create(by(owner), { name, ...settings });
  return name;
}

const SIZES = [0, 10, 100_000];

async function put(bucket: string, name: string, bytes = Buffer.from(name)): Promise<string> {
  const naming = { name, bytes, mimeType: 'text/x-test', metadata: '{"a":1}' };
  return (await fixture.put(owner, bucket, naming)).object_id;
}

async function read(bucket: string, name: string): Promise<Buffer | null> {
  const row = await fixture.buckets.find(owner, bucket);
  const found = await fixture.downloads.findNamed(owner, row, { name });
  if (found === undefined || !('content' in found)) return null;
  const { content } = found;
  assert.equal(content.mimeType, 'text/x-test');
  assert.equal(content.row.metadata, '{"a":1}');
  const pieces: Buffer[] = [];
  const sink = (chunk: Uint8Array) => void pieces.push(Buffer.from(chunk));
  const range = { start: 0, end: content.sizeBytes };
  await fixture.downloads.read(content, { range, sink, signal: new AbortController().signal });
  return Buffer.concat(pieces);
}

async function counted(bucket: string): Promise<{ objects: number; bytes: number }> {
  const { object_count: objects, size_bytes: bytes } = await fixture.buckets.find(owner, bucket);
  return { objects, bytes };
}

test('a copy has the bytes, the type and the metadata, in every bucket', async () => {
  for (const from of [{}, { encryption: true }]) {
    for (const to of [{}, { encryption: true }, { versioning: true }]) {
      const [source, target] = [await newBucket(from), await newBucket(to)];
      for (const size of SIZES) {
        const bytes = Buffer.alloc(size, `${size}`);
        const id = await put(source, `of-${size}`, bytes);
        const copied = await fixture.relocations.copy(by(owner), id, {
          bucket: target,
          name: `copy-${size}`,
        });
        assert.deepEqual([copied.bucket, copied.name, copied.size], [target, `copy-${size}`, size]);
        assert.ok((await read(target, `copy-${size}`))?.equals(bytes), JSON.stringify({ from, to, size }));
        assert.ok((await read(source, `of-${size}`))?.equals(bytes));
      }
      const all = { objects: SIZES.length, bytes: SIZES.reduce((a, b) => a + b) };
      assert.deepEqual([await counted(source), await counted(target)], [all, all]);
    }
  }
});

test('a move leaves one object, and in a versioned bucket a marker', async () => {
  for (const versioning of [false, true]) {
    const bucket = await newBucket({ versioning });
    const id = await put(bucket, 'a');
    await fixture.relocations.move(by(owner), id, { name: 'folder/b' });
    assert.deepEqual([await read(bucket, 'a'), `${await read(bucket, 'folder/b')}`], [null, 'a']);
    assert.deepEqual(await counted(bucket), { objects: 1, bytes: 1 });
    const { id: row } = await fixture.buckets.find(owner, bucket);
    assert.equal((await fixture.store.named(row, 'a')) !== undefined, versioning);
    await rejects(fixture.relocations.move(by(owner), id, { name: 'c' }), 'object_not_found');
  }
});

test('what is there is replaced only when that is asked for', async () => {
  const bucket = await newBucket();
  const [a, b] = [await put(bucket, 'a'), await put(bucket, 'b')];
  await rejects(fixture.relocations.copy(by(owner), a, { name: 'b' }), 'precondition_failed');
  await rejects(fixture.relocations.move(by(owner), b, { name: 'a' }), 'precondition_failed');
  assert.deepEqual([`${await read(bucket, 'a')}`, `${await read(bucket, 'b')}`], ['a', 'b']);
  await fixture.relocations.move(by(owner), a, { name: 'b', overwrite: true });
  assert.deepEqual([await read(bucket, 'a'), `${await read(bucket, 'b')}`], [null, 'a']);
});

test('the object itself, odd names, and what is another account’s are refused', async () => {
  const bucket = await newBucket();
  const id = await put(bucket, 'a');
  await rejects(fixture.relocations.copy(by(owner), id, {}), 'invalid_request');
  await rejects(fixture.relocations.copy(by(owner), id, { name: '' }), 'invalid_object_name');
  await rejects(fixture.relocations.copy(by(owner), id, { bucket: 'nobodys' }), 'bucket_not_found');
  const stranger = await fixture.newPrincipal(`stranger-${buckets}`);
  await rejects(fixture.relocations.copy(by(stranger), id, { name: 'b' }), 'object_not_found');
  await fixture.buckets.create(by(stranger), { name: 'of-the-stranger' });
  await rejects(fixture.relocations.copy(by(owner), id, { bucket: 'of-the-stranger' }), 'bucket_not_found');
  const limited: Principal = {
    ...owner,
    scopes: ['storage:write'],
    bucketLimits: [{ bucket, prefix: 'own/' }],
  };
  await rejects(fixture.relocations.copy(by(limited), id, { name: 'own/b' }), 'object_not_found');
  const own = await put(bucket, 'own/a');
  await rejects(fixture.relocations.move(by(limited), own, { name: 'b' }), 'scope_required');
  assert.equal(`${await read(bucket, 'own/a')}`, 'own/a');
});

test('two moves that cross, and many to one name, end with one of the outcomes', async () => {
  const bucket = await newBucket();
  const [a, b] = [await put(bucket, 'a'), await put(bucket, 'b')];
  const crossed = await Promise.allSettled([
    fixture.relocations.move(by(owner), a, { name: 'b', overwrite: true }),
    fixture.relocations.move(by(owner), b, { name: 'a', overwrite: true }),
  ]);
  assert.ok(crossed.some(({ status }) => status === 'fulfilled'));
  assert.equal((await counted(bucket)).objects, 1);
  const ids = await Promise.all(Array.from({ length: 10 }, (_, i) => put(bucket, `many-${i}`)));
  const all = await Promise.allSettled(
    ids.map((id) => fixture.relocations.move(by(owner), id, { name: 'one' })),
  );
  assert.equal(all.filter(({ status }) => status === 'fulfilled').length, 1);
  assert.equal((await counted(bucket)).objects, 1 + 10);
});

test('a copy ends with its caller, and leaves nothing', async () => {
  const [bucket, sealed] = [await newBucket(), await newBucket({ encryption: true })];
  const id = await put(bucket, 'large', Buffer.alloc(3_000_000));
  const leaving = new AbortController();
  const { signal } = leaving;
  const copying = fixture.relocations.copy(by(owner), id, { bucket: sealed, signal });
  leaving.abort(new Error('the caller has left'));
  await assert.rejects(copying, /the caller has left/);
  assert.equal(await read(sealed, 'large'), null);
  assert.equal((await counted(sealed)).objects, 0);
  assert.equal((await read(bucket, 'large'))?.length, 3_000_000);
});

test('a source that changes meanwhile is read again, and never taken for a name that is taken', async () => {
  const [bucket, sealed] = [await newBucket(), await newBucket({ encryption: true })];
  const id = await put(bucket, 'a', Buffer.alloc(1_000_000, 'old'));
  const copies = await Promise.allSettled([
    fixture.relocations.copy(by(owner), id, { bucket: sealed }),
    put(bucket, 'a', Buffer.from('new')),
  ]);
  assert.deepEqual(
    copies.map(({ status }) => status),
    ['fulfilled', 'fulfilled'],
  );
  assert.equal(`${await read(sealed, 'a')}`, 'new');
});
