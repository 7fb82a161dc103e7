/** A recovery point keeps what is encrypted as it is: bytes of a client's key, and named keys with theirs. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { LosableCloud } from './recovery-kit.ts';
import { newS3 } from './s3-kit.ts';

let lost: LosableCloud;
before(async () => {
  lost = await LosableCloud.start();
});
after(() => lost.end());

const SSE = 'x-amz-server-side-encryption';

test('both are read after a loss, with the key that each needs', async () => {
  const key = randomBytes(32);
  const mine = {
    [`${SSE}-customer-algorithm`]: 'AES256',
    [`${SSE}-customer-key`]: key.toString('base64'),
    [`${SSE}-customer-key-MD5`]: createHash('md5').update(key).digest('base64'),
  };
  const named = { [SSE]: 'aws:kms', [`${SSE}-aws-kms-key-id`]: 'photos' };
  await lost.user.expect(201, '/api/encryption-keys', { json: { id: 'photos' } });
  const s3 = await newS3(lost.cloud.data, lost.user);
  await s3.ok('PUT', '/kept');
  const contents = [100, 200_000].map((size) => randomBytes(size));
  for (const [i, body] of contents.entries()) {
    await s3.ok('PUT', `/kept/mine-${i}`, { headers: mine, body });
    await s3.ok('PUT', `/kept/named-${i}`, { headers: named, body });
  }
  await lost.keepKey();
  await lost.point();
  await lost.lose();
  const again = await newS3(lost.cloud.data, lost.user);
  for (const [i, body] of contents.entries()) {
    const read = await again.ok('GET', `/kept/mine-${i}`, { headers: mine });
    assert.ok(read.bytes.equals(body));
    await again.refused(400, 'InvalidRequest', ['GET', `/kept/mine-${i}`, {}]);
    const shown = await again.ok('GET', `/kept/named-${i}`);
    assert.ok(shown.bytes.equals(body));
    assert.equal(shown.headers[`${SSE}-aws-kms-key-id`], 'photos');
  }
});
