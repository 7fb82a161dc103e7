/** The blob store on Ceph's S3 gateway, which has checks that s3rver lacks. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { parseS3Url } from '../../server/config/s3-address.ts';
import { S3BlobStore } from '../../server/drivers/blobs-s3/blobs-s3.ts';
import { Alarms } from '../../server/platform/alarms.ts';
import { systemClock } from '../../server/platform/clock.ts';
import { isAppError } from '../../server/platform/errors.ts';
import { randomSecret } from '../../server/platform/ids.ts';
import { readBlob, storeBlob, testBlobStore } from '../../server/testing/blobs.conformance.ts';
import { Ceph } from './ceph.ts';
import { cannotMakeTree } from './debian-tree.ts';

const MIB = 2 ** 20;
const folder = mkdtempSync(join(tmpdir(), 'cloudlet-ceph-'));

describe('on Ceph', { skip: cannotMakeTree() }, () => {
  let ceph: Ceph;
  before(async () => {
    ceph = await Ceph.start(folder);
  });
  after(async () => {
    await ceph?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  let buckets = 0;
  async function openStore(url?: string) {
    const alarms = new Alarms(systemClock);
    const address = parseS3Url(url ?? (await ceph.bucket(`bucket-${++buckets}`)));
    const own = { cloudId: 'cld-1', mayMark: true, clock: systemClock, alarms };
    const blobs = await S3BlobStore.open({ address, threads: 2, memoryBytes: 64 * MIB, ...own });
    return { blobs, alarms };
  }

  testBlobStore('S3BlobStore on Ceph', async () => (await openStore()).blobs);

  test('40 MiB come back, and what an upload left that was cut off is removed', async () => {
    const url = await ceph.bucket('unfinished');
    const first = await openStore(url);
    const ref = await storeBlob(first.blobs, randomSecret(40 * MIB + 7), { dataKey: randomSecret(32) });
    assert.ok((await readBlob(first.blobs, ref)).bytes.equals(ref.content));
    const left = await first.blobs.create({ dataKey: null });
    for (let i = 0; i < 20; i++) await left.write(randomSecret(MIB));
    // Another process does not know that upload, as after a crash.
    const second = await openStore(url);
    assert.equal(await second.blobs.removeUnfinished(systemClock.now() - 3_600_000), 0);
    assert.equal(await second.blobs.removeUnfinished(systemClock.now() + 60_000), 1);
    await assert.rejects(left.finish());
    await left.abort();
    assert.ok((await readBlob(second.blobs, ref)).bytes.equals(ref.content));
    await first.blobs.close();
    await second.blobs.close();
  });

  test('a gateway that is gone is 503 with an alarm', async () => {
    const { blobs, alarms } = await openStore();
    const ref = await storeBlob(blobs, randomSecret(MIB));
    await ceph.stop();
    assert.ok(isAppError((await readBlob(blobs, ref)).error, 'overloaded'));
    await assert.rejects(storeBlob(blobs, randomSecret(MIB)), /cannot be reached/);
    assert.equal(alarms.list()[0]?.code, 'blobs_unreachable');
    await blobs.close();
  });
});
