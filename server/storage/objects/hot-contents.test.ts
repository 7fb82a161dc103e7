import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Principal } from '../../calls/principal.ts';
import { isAppError } from '../../platform/errors.ts';
import { by } from '../../testing/account-fixture.ts';
import { openStorageFixture, type StorageFixture } from '../../testing/storage-fixture.ts';
import type { Content } from './downloads.ts';
import { HotContents } from './hot-contents.ts';

const MIB = 2 ** 20;
const LIMIT = 16 * MIB;
/** Counted for an entry in addition to its bytes. */
const ENTRY = 1024;

let fixture: StorageFixture;
let owner: Principal;
let versioned = 0;
before(async () => {
  fixture = await openStorageFixture();
  owner = await fixture.newPrincipal('owner');
});
after(() => fixture.close());

const contentOf = (bytes: number, name = 'a', bucket_id = 1): Content =>
  ({ inline: Buffer.alloc(bytes), name, row: { bucket_id } }) as unknown as Content;

/** Read outside any change. */
function keep(hot: HotContents, objectId: string, bytes = 100): Content {
  const content = contentOf(bytes);
  hot.put(objectId, content, hot.epoch);
  return content;
}

async function newBucket(settings: { versioning?: boolean; encryption?: boolean } = {}): Promise<string> {
  const name = `hot-${++versioned}`;
  await fixture.buckets.create(by(owner), { name, ...settings });
  return name;
}

const put = (bucket: string, text: string) =>
  fixture.put(owner, bucket, { name: 'a', bytes: Buffer.from(text) });
const find = (id: string) => fixture.downloads.find(owner, id);
const textOf = ({ inline }: Content) => Buffer.from(inline ?? []).toString('utf8');
const gone = (error: unknown) => isAppError(error, 'object_not_found');

test('what was put is found until it is forgotten', () => {
  const hot = new HotContents();
  const [a, b] = [keep(hot, 'a'), keep(hot, 'b')];
  assert.equal(hot.get('a'), a);
  assert.equal(hot.get('never'), undefined);
  hot.forget('a');
  assert.equal(hot.get('a'), undefined);
  assert.equal(hot.get('b'), b);
});

test('current content is found by its name too, until the object is forgotten or has another name', () => {
  const hot = new HotContents();
  const content = contentOf(1, 'x/y');
  hot.put('a', content, hot.epoch);
  assert.equal(hot.named(1, 'x/y'), content);
  assert.equal(hot.named(2, 'x/y'), undefined);
  assert.equal(hot.named(1, 'y'), undefined);
  hot.forget('a');
  assert.equal(hot.named(1, 'x/y'), undefined);
  const renamed = contentOf(1, 'z');
  hot.put('a', renamed, hot.epoch);
  assert.equal(hot.named(1, 'x/y'), undefined);
  assert.equal(hot.named(1, 'z'), renamed);
  for (let index = 0; index < 20; index++) keep(hot, `${index}`, MIB);
  assert.equal(hot.named(1, 'z'), undefined, 'evicted with the rest');
});

test('what was read before anything was forgotten is not kept after it', () => {
  const hot = new HotContents();
  const { epoch } = hot;
  hot.forget('a');
  hot.put('a', contentOf(1), epoch);
  hot.put('b', contentOf(1), epoch);
  assert.equal(hot.get('a'), undefined);
  assert.equal(hot.get('b'), undefined);
});

test('it never holds more than its bound, whatever comes, and empty objects count too', () => {
  for (const bytes of [0, 100, 16_384]) {
    const hot = new HotContents();
    const count = Math.ceil((2 * LIMIT) / (bytes + ENTRY));
    for (let i = 0; i < count; i++) keep(hot, `${i}`, bytes);
    // Read from the oldest on, so that reading does not evict entries that are still to be read.
    const held = Array.from({ length: count }, (_, i) => `${i}`).filter((id) => hot.get(id) !== undefined);
    const total = held.length * (bytes + ENTRY);
    assert.ok(total <= LIMIT, `${total} bytes of entries of ${bytes}`);
    assert.ok(total >= LIMIT / 4, `${total} bytes of entries of ${bytes}: hardly anything is kept`);
  }
});

test('what is read again and again outlives what was read once', () => {
  const hot = new HotContents();
  const favourite = keep(hot, 'favourite');
  for (let i = 0; i < 5000; i++) {
    keep(hot, `once-${i}`, 16_384);
    assert.equal(hot.get('favourite'), favourite);
  }
  assert.equal(hot.get('once-0'), undefined);
});

test('forgetting reaches what has grown old', () => {
  const hot = new HotContents();
  keep(hot, 'old');
  for (let i = 0; i < 600; i++) keep(hot, `once-${i}`, 16_384);
  hot.forget('old');
  assert.equal(hot.get('old'), undefined);
});

test('a second download is answered from memory: the database is not asked', async () => {
  const { object_id } = await put(await newBucket(), 'asked often');
  const first = await find(object_id);
  assert.equal(await find(object_id), first);
});

test('encrypted bytes and those in files are not kept in the clear', async () => {
  const sealed = await put(await newBucket({ encryption: true }), 'secret');
  assert.notEqual(await find(sealed.object_id), await find(sealed.object_id));
  const large = await put(await newBucket(), 'x'.repeat(20_000));
  assert.notEqual(await find(large.object_id), await find(large.object_id));
});

test('someone else is not served from memory', async () => {
  const { object_id } = await put(await newBucket(), 'mine');
  await find(object_id);
  const stranger = await fixture.newPrincipal('stranger');
  await assert.rejects(fixture.downloads.find(stranger, object_id), gone);
  const limited = { ...owner, bucketLimits: [{ bucket: 'another', prefix: '' }] };
  await assert.rejects(fixture.downloads.find(limited, object_id), gone);
});

for (const versioning of [false, true]) {
  const kind = versioning ? 'versioned' : 'unversioned';

  test(`${kind}: as soon as an overwrite is acknowledged the old bytes are never served`, async () => {
    const bucket = await newBucket({ versioning });
    const { object_id } = await put(bucket, 'value 0');
    let acknowledged = 0;
    let isDone = false;
    const reader = async () => {
      while (!isDone) {
        const least = acknowledged;
        const seen = Number(textOf(await find(object_id)).split(' ')[1]);
        assert.ok(seen >= least, `value ${seen} after ${least} was acknowledged`);
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    const readers = [reader(), reader(), reader()];
    for (let value = 1; value <= 100; value++) {
      await put(bucket, `value ${value}`);
      acknowledged = value;
    }
    isDone = true;
    await Promise.all(readers);
  });

  test(`${kind}: what is deleted is not served, and what comes after it is`, async () => {
    const bucket = await newBucket({ versioning });
    const { object_id, version_id } = await put(bucket, 'before');
    assert.equal(textOf(await find(object_id)), 'before');
    await fixture.removals.remove(by(owner), object_id);
    await assert.rejects(find(object_id), gone);
    const again = await put(bucket, 'after');
    assert.equal(textOf(await find(again.object_id)), 'after');
    if (!versioning) return;
    await fixture.removals.remove(by(owner), object_id, { versionId: again.version_id });
    await assert.rejects(find(object_id), gone);
    assert.equal(textOf(await fixture.downloads.find(owner, object_id, version_id)), 'before');
  });
}
