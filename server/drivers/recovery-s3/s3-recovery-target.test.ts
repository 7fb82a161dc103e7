import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { parseS3Url } from '../../config/s3-address.ts';
import { systemClock } from '../../platform/clock.ts';
import { testRecoveryTarget } from '../../testing/recovery-target.conformance.ts';
import { S3Fixture } from '../../testing/s3-fixture.ts';
import { S3RecoveryTarget } from './s3-recovery-target.ts';

let s3: S3Fixture;
before(async () => {
  s3 = await S3Fixture.start();
});
after(() => s3.close());

let prefixes = 0;
const targetAt = (url: string) =>
  new S3RecoveryTarget({
    address: parseS3Url(url),
    clock: systemClock,
    isOwn: async () => false,
    lockDays: 0,
  });

async function openTarget() {
  s3.fault = () => undefined;
  const url = s3.url(`p${++prefixes}`);
  const target = targetAt(url);
  assert.equal((await target.prove()).removal, 'gone');
  s3.seen.length = 0;
  return { target, again: () => targetAt(url) };
}

testRecoveryTarget('S3RecoveryTarget', openTarget);
