import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Changes } from '../../metadata/change.ts';
import { by } from '../../testing/account-fixture.ts';
import { openStorageFixture, type StorageFixture } from '../../testing/storage-fixture.ts';
import { ShareSql } from './share-sql.ts';
import { Shares, type SharesDeps } from './shares.ts';

type Differing = Partial<Pick<SharesDeps, 'store' | 'passwords'>>;

/** A storage with an owner of links, and links with what a test replaces. */
async function openShares(t: TestContext, differing: (fixture: StorageFixture) => Differing) {
  const fixture = await openStorageFixture();
  t.after(() => fixture.close());
  const { metadata, clock, listing, downloads } = fixture;
  const owner = await fixture.newPrincipal('owner');
  const shares = new Shares({
    changes: new Changes({ metadata }),
    clock,
    listing,
    downloads,
    secret: Buffer.alloc(32),
    dataUrl: () => 'http://127.0.0.1',
    store: new ShareSql(metadata),
    keys: { currentId: async () => '', holderOf: async () => owner },
    passwords: { hash: async () => '', check: async () => true },
    ...differing(fixture),
  });
  return { fixture, owner, shares };
}

test('a bucket that is deleted while a link to it is made is what the refusal names', async (t) => {
  const { fixture, owner, shares } = await openShares(t, ({ metadata }) => ({
    passwords: {
      // Between the check of the bucket and the commit.
      hash: async () => {
        await metadata.commit([{ sql: "DELETE FROM buckets WHERE name = 'gone'", params: [] }]);
        return 'hash';
      },
      check: async () => true,
    },
  }));
  await fixture.buckets.create(by(owner), { name: 'gone' });
  const call = { ...by(owner), address: '127.0.0.1' };
  const making = shares.create(call, { bucket: 'gone', name: '', password: 'a long password' });
  await assert.rejects(making, { code: 'bucket_not_found' });
});

test('of many lists at once one is made in a turn of the event loop', async (t) => {
  const inOneTurn = { lists: 0, most: 0 };
  const { owner, shares } = await openShares(t, ({ metadata }) => {
    const store = new ShareSql(metadata);
    const list: ShareSql['list'] = (...of) => {
      inOneTurn.lists++;
      inOneTurn.most = Math.max(inOneTurn.most, inOneTurn.lists);
      setImmediate(() => inOneTurn.lists--);
      return store.list(...of);
    };
    return { store: Object.assign(Object.create(store), { list }) };
  });
  await Promise.all(Array.from({ length: 20 }, () => shares.list(owner)));
  assert.equal(inOneTurn.most, 1);
});
