import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CommitRejected } from '../../metadata/metadata.ts';
import { Alarms } from '../../platform/alarms.ts';
import type { FakeClock } from '../../platform/clock.ts';
import { isAppError } from '../../platform/errors.ts';
import { DiskShares } from '../../resources/disk-shares.ts';
import { by } from '../../testing/account-fixture.ts';
import { openTestMetadata } from '../../testing/new-metadata.ts';
import { partUploadsOf } from '../../testing/part-uploads-fixture.ts';
import { openStorageFixture } from '../../testing/storage-fixture.ts';

const GIB = 2 ** 30;
const BYTES = Buffer.alloc(100_000);

/**
 * On a disk that is filling up; `first` other accounts are faster at each of the next commits that count
 * bytes.
 */
async function open() {
  const clash = { first: 0 };
  const openMetadata = async (directory: string, clock: FakeClock) => {
    const metadata = await openTestMetadata({ directory, clock, alarms: new Alarms(clock) });
    const commit = metadata.commit.bind(metadata);
    metadata.commit = async (statements) => {
      const index = statements.findIndex(({ sql }) => /^UPDATE accounts SET storage_bytes/.test(sql));
      if (index >= 0 && clash.first-- > 0) throw new CommitRejected(index, 'expectation', 'a test');
      return commit(statements);
    };
    return metadata;
  };
  const disk = { totalBytes: 100 * GIB, freeBytes: 49 * GIB };
  const trusted = async () => new Set<number>();
  const onError = (error: unknown) => assert.fail(String(error));
  const machines = new Map<number, number>();
  const objectShares = (clock: FakeClock) => {
    const shares = new DiskShares({ clock, percent: 50, disk: () => disk, trusted, onError });
    shares.count(() => machines);
    return shares;
  };
  const fixture = await openStorageFixture({ openMetadata, objectShares });
  const owner = await fixture.newPrincipal('owner');
  // Room for four objects.
  machines.set(owner.accountId, 12.5 * GIB - 4.5 * BYTES.length);
  await fixture.buckets.create(by(owner), { name: 'objects' });
  const put = (name: string) => fixture.put(owner, 'objects', { name, bytes: BYTES });
  return { fixture, owner, clash, put };
}

const isFull = (error: unknown) => isAppError(error, 'out_of_space');

test('only what was stored counts to the share of the disk, at once', async (t) => {
  const { fixture, owner, clash, put } = await open();
  t.after(() => fixture.close());
  clash.first = 10;
  await put('a');
  clash.first = 50;
  await assert.rejects(put('b'), (error) => isAppError(error, 'write_conflict'));
  clash.first = 0;
  const parts = partUploadsOf(fixture, owner);
  const upload = await parts.begin('objects', 'parts');
  await parts.put(upload, 1, BYTES);
  await parts.put(upload, 2, BYTES);
  await put('c');
  await assert.rejects(put('d'), isFull);
  await assert.rejects(parts.put(upload, 3, BYTES), isFull);
});
