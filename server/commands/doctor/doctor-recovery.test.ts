import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { S3Fixture } from '../../testing/s3-fixture.ts';
import { checkRecovery } from './doctor-recovery.ts';

let s3: S3Fixture;
before(async () => {
  s3 = await S3Fixture.start();
});
after(() => s3.close());
beforeEach(() => {
  s3.fault = () => undefined;
});

const check = (recoveryTarget: string) =>
  checkRecovery({
    recoveryTarget,
    recoveryCredentialsFile: '',
    recoveryLockDays: 0,
    dataDir: '/var/lib/cloudlet',
  });

test('a bucket that is fit is one line that says what was tried, and is left as it was', async () => {
  const found = await check(s3.url('fit'));
  assert.equal(found.length, 1, JSON.stringify(found));
  assert.equal(found[0]?.level, 'ok');
  assert.match(
    found[0]?.detail ?? '',
    /^s3:\/\/127[^@]*If-None-Match and Content-MD5 are honoured.*removed the object/,
  );
  assert.equal(s3.count('DELETE'), 1);
});

test('a key that may not remove objects is fit', async () => {
  s3.fault = ({ method }) => (method === 'DELETE' ? { status: 403, code: 'AccessDenied' } : undefined);
  const [finding] = await check(s3.url('kept'));
  assert.equal(finding?.level, 'ok');
  assert.match(finding?.detail ?? '', /may not remove objects/);
});

test('what is not fit is named, with its fix and without the secret', async () => {
  const cases: [string, RegExp, RegExp, (typeof s3)['fault']?][] = [
    [
      s3.url('x', { keys: 'S3RVER:wrong-secret' }),
      /SignatureDoesNotMatch/,
      /key and secret in CLOUDLET_RECOVERY/,
    ],
    [s3.url('x', { bucket: 'none' }), /NoSuchBucket/, /Create the bucket/],
    [s3.url('lax'), /ignores If-None-Match/, /must fit/, () => 'lax'],
    [
      s3.url('lax-sums'),
      /ignores Content-MD5/,
      /must fit/,
      // The fourth request that stores an object has the wrong checksum.
      ({ method }) => (method === 'PUT' && s3.count('PUT', 'lax-sums') === 4 ? 'lax' : undefined),
    ],
    [s3.url('hurt'), /different bytes/, /must fit/, ({ method }) => (method === 'GET' ? 'hurt' : undefined)],
    [
      s3.url('append'),
      /may not replace objects: if the key may only append, enable versioning/,
      /CLOUDLET_RECOVERY_TARGET/,
      ({ method }) =>
        method === 'PUT' && s3.count('PUT', 'append') === 3
          ? { status: 403, code: 'AccessDenied' }
          : undefined,
    ],
    [
      s3.url('late'),
      /RequestTimeTooSkewed.* by 360\d s/,
      /NTP/,
      () => ({ status: 403, code: 'RequestTimeTooSkewed', date: new Date(Date.now() - 3_600_000) }),
    ],
  ];
  for (const [url, detail, fix, fault = () => undefined] of cases) {
    s3.fault = fault;
    const [finding] = await check(url);
    assert.equal(finding?.level, 'fail');
    assert.match(finding?.detail ?? '', detail);
    assert.match(finding?.fix ?? '', fix);
    assert.doesNotMatch(JSON.stringify(finding), /secret\b.*wrong|wrong-secret|S3RVER/);
  }
  const [broken] = await check('s3://key:wrong-secret@host/UPPER');
  assert.match(broken?.detail ?? '', /must name a bucket/);
});

test('a clock that differs is a warning', async () => {
  s3.fault = ({ path }) =>
    path.includes('list-type')
      ? { status: 200, body: '<ListBucketResult/>', date: new Date(Date.now() + 120_000) }
      : undefined;
  const [, finding] = await check(s3.url('ahead'));
  assert.equal(finding?.level, 'warn');
  assert.match(finding?.detail ?? '', /differs from this host's by 1[12]\d s/);
});
