/** Recovery points on Ceph's S3 gateway, which has checks that s3rver lacks. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { parseS3Url } from '../../server/config/s3-address.ts';
import { S3RecoveryTarget } from '../../server/drivers/recovery-s3/s3-recovery-target.ts';
import { systemClock } from '../../server/platform/clock.ts';
import { testRecoveryTarget } from '../../server/testing/recovery-target.conformance.ts';
import { Ceph } from './ceph.ts';
import { cannotMakeTree } from './debian-tree.ts';

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
  async function openTarget() {
    const url = await ceph.bucket(`points-${++buckets}`);
    const again = (lockDays = 0) =>
      new S3RecoveryTarget({
        address: parseS3Url(url),
        clock: systemClock,
        isOwn: async () => false,
        lockDays,
      });
    const target = again();
    const { removal, lock } = await target.prove();
    assert.deepEqual([removal, lock], ['gone', null]);
    return { target, again };
  }

  testRecoveryTarget('S3RecoveryTarget on Ceph', openTarget);

  test('a lock needs a bucket with object lock', async () => {
    const { again } = await openTarget();
    await assert.rejects(again(10).prove(), /CLOUDLET_RECOVERY_LOCK_DAYS needs object lock/);
  });
});
