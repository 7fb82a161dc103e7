/** Cached content of a node while another node changes it without a notification. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Principal } from '../../calls/principal.ts';
import { Ages, MAX_AGE_MS } from '../../metadata/ages.ts';
import { isAppError } from '../../platform/errors.ts';
import { by } from '../../testing/account-fixture.ts';
import { openStorageFixture, type StorageFixture } from '../../testing/storage-fixture.ts';
import type { Content } from './downloads.ts';

const membership = { isShared: true, isCurrent: () => true };
const ages = (clock: { monotonic(): number }) => new Ages({ membership, clock });

let here: StorageFixture;
let there: StorageFixture;
let owner: Principal;
before(async () => {
  here = await openStorageFixture({ ages });
  const { metadata } = here;
  const shared = {
    get: metadata.get.bind(metadata),
    all: metadata.all.bind(metadata),
    snapshot: metadata.snapshot.bind(metadata),
    commit: metadata.commit.bind(metadata),
    close: async () => {},
  };
  there = await openStorageFixture({ ages, openMetadata: async () => shared });
  owner = await here.newPrincipal('owner');
});
after(async () => {
  await there.close();
  await here.close();
});

let made = 0;
async function newObject(settings: { versioning?: boolean } = {}) {
  const name = `bucket-${++made}`;
  await here.buckets.create(by(owner), { name, ...settings });
  const put = (node: StorageFixture, text: string) =>
    node.put(owner, name, { name: 'a', bytes: Buffer.from(text) });
  const uploaded = await put(here, 'first');
  const bucket = await here.buckets.find(owner, name);
  const byId = async () => here.downloads.find(owner, uploaded.object_id);
  const byName = async () => {
    const found = await here.downloads.findNamed(owner, bucket, { name: 'a' });
    return found !== undefined && 'content' in found ? found.content : undefined;
  };
  await byId();
  return { bucket, put, id: uploaded.object_id, byId, byName };
}

const textOf = (content: Content | undefined) => Buffer.from(content?.inline ?? []).toString('utf8');

test('content from memory takes one read, and is the same as long as nobody changes it', async () => {
  const { byId, byName } = await newObject();
  const first = await byId();
  assert.equal(await byId(), first);
  assert.equal(await byName(), first);
});

for (const versioning of [false, true]) {
  test(`${versioning ? 'versioned' : 'unversioned'}: what another node overwrites is served at once`, async () => {
    const { put, byId, byName } = await newObject({ versioning });
    for (let round = 0; round < 10; round++) {
      await put(there, `round ${round}`);
      assert.equal(textOf(await (round % 2 ? byId() : byName())), `round ${round}`);
      assert.equal(textOf(await (round % 2 ? byName() : byId())), `round ${round}`);
    }
  });

  test(`${versioning ? 'versioned' : 'unversioned'}: what another node deletes is gone at once`, async () => {
    const { id, put, byId, byName } = await newObject({ versioning });
    await there.removals.remove(by(owner), id);
    await assert.rejects(byId, (error) => isAppError(error, 'object_not_found'));
    assert.equal(await byName(), undefined);
    await put(there, 'again');
    assert.equal(textOf(await byName()), 'again');
  });
}

test('tags, lists and locks that another node sets are those that decide', async () => {
  const { bucket, id, byId } = await newObject();
  const { row } = await byId();
  const call = by(owner);
  await there.objects.setFact(call, row, { bucket, fact: { tags: '{"a":"b"}' } });
  assert.equal((await byId()).row.tags, '{"a":"b"}');
  await there.objects.setFact(by(owner), row, { bucket, fact: { acl: '{"grants":[]}' } });
  assert.equal((await byId()).row.acl, '{"grants":[]}');
  await there.objects.setLock(by(owner), { object_id: id, id: row.id }, { legalHold: true });
  assert.equal((await byId()).row.legal_hold, 1);
  assert.equal(await byId(), await byId(), 'kept again');
});

test('a named key that another node disables opens nothing after 2 s', async () => {
  await here.namedKeys.create(by(owner), 'mine');
  const { keyring } = here.dataKeys;
  const { id } = await keyring.find(owner.accountId, 'mine');
  await there.namedKeys.change(by(owner), 'mine', { enabled: false });
  await assert.rejects(keyring.find(owner.accountId, 'mine'), /is disabled/);
  await keyring.enabledByRow(id);
  here.clock.advance(MAX_AGE_MS);
  await assert.rejects(keyring.enabledByRow(id), /is disabled/);
  await here.namedKeys.change(by(owner), 'mine', { enabled: true });
  await keyring.enabledByRow(id);
});
