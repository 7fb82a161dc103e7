import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Changes } from '../../metadata/change.ts';
import { by } from '../../testing/account-fixture.ts';
import { openStorageFixture } from '../../testing/storage-fixture.ts';
import { ShareSql } from './share-sql.ts';
import { Shares } from './shares.ts';

test('a bucket that is deleted while a link to it is made is what the refusal names', async (t) => {
  const fixture = await openStorageFixture();
  t.after(() => fixture.close());
  const { metadata, clock, listing, downloads, buckets } = fixture;
  const owner = await fixture.newPrincipal('owner');
  await buckets.create(by(owner), { name: 'gone' });
  const shares = new Shares({
    changes: new Changes({ metadata }),
    clock,
    listing,
    downloads,
    secret: Buffer.alloc(32),
    dataUrl: () => 'http://127.0.0.1',
    store: new ShareSql(metadata),
    keys: { currentId: async () => '', holderOf: async () => owner },
    passwords: {
      // Between the check of the bucket and the commit.
      hash: async () => {
        await metadata.commit([{ sql: "DELETE FROM buckets WHERE name = 'gone'", params: [] }]);
        return 'hash';
      },
      check: async () => true,
    },
  });
  const call = { ...by(owner), address: '127.0.0.1' };
  const making = shares.create(call, { bucket: 'gone', name: '', password: 'a long password' });
  await assert.rejects(making, { code: 'bucket_not_found' });
});

test('of many lists at once one is made in a turn of the event loop', async (t) => {
  const fixture = await openStorageFixture();
  t.after(() => fixture.close());
  const { metadata, clock, listing, downloads } = fixture;
  const owner = await fixture.newPrincipal('owner');
  const store = new ShareSql(metadata);
  const inOneTurn = { lists: 0, most: 0 };
  const list: ShareSql['list'] = (...of) => {
    inOneTurn.lists++;
    inOneTurn.most = Math.max(inOneTurn.most, inOneTurn.lists);
    setImmediate(() => inOneTurn.lists--);
    return store.list(...of);
  };
  const shares = new Shares({
    changes: new Changes({ metadata }),
    clock,
    listing,
    downloads,
    secret: Buffer.alloc(32),
    dataUrl: () => 'http://127.0.0.1',
    store: Object.assign(Object.create(store), { list }),
    keys: { currentId: async () => '', holderOf: async () => owner },
    passwords: { hash: async () => '', check: async () => true },
  });
  await Promise.all(Array.from({ length: 20 }, () => shares.list(owner)));
  assert.equal(inOneTurn.most, 1);
});
