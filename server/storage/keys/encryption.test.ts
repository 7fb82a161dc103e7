import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import type { Principal } from '../../calls/principal.ts';
import { isAppError } from '../../platform/errors.ts';
import { randomSecret } from '../../platform/ids.ts';
import { by } from '../../testing/account-fixture.ts';
import { openStorageFixture, type StorageFixture } from '../../testing/storage-fixture.ts';
import { CustomerKey } from './customer-key.ts';
import type { Encryption } from './encryption.ts';

const FAST = { bytesPerSecond: 2 ** 40, fresh: true };
const SIZES = [0, 100, 200_000];
let fixture: StorageFixture;
let owner: Principal;
beforeEach(async () => {
  fixture = await openStorageFixture();
  owner = await fixture.newPrincipal('owner');
  await fixture.buckets.create(by(owner), { name: 'kept' });
});
afterEach(() => fixture.close());

async function store(name: string, bytes: Uint8Array, encryption: Encryption) {
  const { objects } = fixture;
  const { bucket, upload } = await objects.beginUpload(owner, 'kept', encryption);
  try {
    await upload.write(bytes);
    const content = objects.received(await upload.finish());
    const naming = { name, mimeType: 'text/plain', metadata: null };
    return await objects.publish(by(owner), { bucket, content, naming }, (version) => version);
  } finally {
    await upload.end();
  }
}

async function found(name: string) {
  const bucket = await fixture.buckets.find(owner, 'kept');
  const stored = await fixture.downloads.findNamed(owner, bucket, { name });
  return stored !== undefined && 'content' in stored ? stored.content : assert.fail(`no ${name}`);
}

type Found = Awaited<ReturnType<typeof found>>;
async function read(content: Found): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const range = { start: 0, end: content.sizeBytes };
  const sink = (chunk: Uint8Array) => {
    chunks.push(Buffer.from(chunk));
    return undefined;
  };
  await fixture.downloads.read(content, { range, sink, signal: new AbortController().signal });
  return Buffer.concat(chunks);
}

test('bytes under a client’s key are verified without it, and read with it only', async () => {
  const key = new CustomerKey(randomSecret(32));
  for (const size of SIZES) {
    const bytes = randomSecret(size);
    const { objectId } = await store('mine', bytes, { kind: 'customer', key });
    const content = await found('mine');
    const needsKey = (error: unknown) => isAppError(error, 'customer_key_required');
    await assert.rejects(read(content), needsKey);
    await assert.rejects(fixture.downloads.find(owner, objectId), needsKey);
    assert.throws(() => fixture.downloads.unlock(content, new CustomerKey(randomSecret(32))), needsKey);
    assert.deepEqual(await read(fixture.downloads.unlock(content, key)), bytes);
    const scrubber = fixture.openScrubber();
    await scrubber.run(FAST);
    assert.equal((await scrubber.status()).damaged_blobs, 0);
  }
});

test('a named key opens the bytes it wrapped, is kept while they need it, and others do not open them', async () => {
  const { namedKeys, dataKeys } = fixture;
  for (const name of ['one', 'two']) await namedKeys.create(by(owner), name);
  const key = await dataKeys.keyring.find(owner.accountId, 'one');
  for (const size of SIZES) {
    const bytes = randomSecret(size);
    const { etag, objectId } = await store('named', bytes, { kind: 'named', key });
    assert.match(etag, /^[0-9a-f]{32}$/);
    assert.deepEqual(await read(await found('named')), bytes);
    assert.deepEqual(await read(await fixture.downloads.find(owner, objectId)), bytes);
  }
  const scrubber = fixture.openScrubber();
  await scrubber.run(FAST);
  assert.equal((await scrubber.status()).damaged_blobs, 0);
  const { row } = await found('named');
  const two = await dataKeys.keyring.find(owner.accountId, 'two');
  await assert.rejects(
    async () => dataKeys.open({ wrapped_key: row.wrapped_key, named_key: two.id }),
    (error) => isAppError(error, 'data_corrupted'),
  );
  const remove = (name: string) => namedKeys.remove(by(owner), name);
  await assert.rejects(remove('one'), (error) => isAppError(error, 'encryption_key_in_use'));
  assert.equal((await remove('two')).id, 'two');
  await assert.rejects(remove('two'), (error) => isAppError(error, 'encryption_key_not_found'));
});

test('a disabled key opens nothing for those who ask, and all for the scrub, until it is enabled', async () => {
  const { namedKeys, dataKeys } = fixture;
  await namedKeys.create(by(owner), 'one');
  const key = await dataKeys.keyring.find(owner.accountId, 'one');
  const isDisabled = (error: unknown) => isAppError(error, 'encryption_key_disabled');
  for (const size of SIZES) {
    const bytes = randomSecret(size);
    await store('named', bytes, { kind: 'named', key });
    assert.deepEqual(await read(await found('named')), bytes);
    const { disabled_at } = await namedKeys.change(by(owner), 'one', { enabled: false });
    assert.ok(disabled_at);
    await assert.rejects(dataKeys.keyring.find(owner.accountId, 'one'), isDisabled);
    await assert.rejects(async () => read(await found('named')), isDisabled);
    const scrubber = fixture.openScrubber();
    await scrubber.run(FAST);
    assert.equal((await scrubber.status()).damaged_blobs, 0);
    assert.equal((await namedKeys.change(by(owner), 'one', { enabled: true })).disabled_at, null);
    assert.equal((await namedKeys.change(by(owner), 'one', { enabled: true })).disabled_at, null);
    assert.deepEqual(await read(await found('named')), bytes);
  }
});

test('an account has at most 100 named keys', async () => {
  const { namedKeys } = fixture;
  for (let i = 0; i < 100; i++) await namedKeys.create(by(owner), `key-${i}`);
  await assert.rejects(namedKeys.create(by(owner), 'more'), (error) => isAppError(error, 'quota_exceeded'));
});
