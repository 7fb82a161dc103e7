import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { type Fault, S3Fixture } from '../../testing/s3-fixture.ts';
import { checkBlobs } from './doctor-blobs.ts';

let s3: S3Fixture;
before(async () => {
  s3 = await S3Fixture.start();
});
beforeEach(() => {
  s3.fault = () => undefined;
});
after(() => s3?.close());

const check = (blobsUrl = s3.url('doctor')) => checkBlobs({ blobsUrl, blobsCredentialsFile: '' });

function answering(part: string, fault: Fault): void {
  s3.fault = ({ path }) => (path.includes(part) ? fault : undefined);
}

test('objects in files are no concern of it', async () => {
  assert.deepEqual(await check(''), []);
});

test('a bucket that is right is one line, and is left as it was', async () => {
  const [finding, ...more] = await check();
  assert.deepEqual(more, []);
  assert.equal(finding?.level, 'ok', JSON.stringify(finding));
  assert.match(
    finding?.detail ?? '',
    /^s3:\/\/127\.0\.0\.1:\d+\/tests\/doctor, no cloud uses it yet: stored, read and/,
  );
  assert.equal(s3.count('PUT'), s3.count('DELETE'));
});

test('what is wrong is named, with the fix and without the secret', async () => {
  const cases: [string, RegExp][] = [
    [s3.url('doctor', { keys: 'S3RVER:not-the-secret' }), /returned 403.*Check key and secret/],
    [s3.url('doctor', { bucket: 'nowhere' }), /returned 404 NoSuchBucket.*Create the bucket/],
    ['s3://KEY:not-the-secret@127.0.0.1:1/bucket?tls=off', /ECONNREFUSED.*Check that S3 runs/],
    ['http://127.0.0.1', /CLOUDLET_BLOBS_URL/],
  ];
  for (const [url, pattern] of cases) {
    const [finding] = await check(url);
    assert.equal(finding?.level, 'fail');
    assert.match(`${finding.detail} ${finding.fix}`, pattern);
    assert.doesNotMatch(JSON.stringify(finding), /not-the-secret/);
  }
});

test('a clock that differs and versions that are kept are warnings', async () => {
  answering('list-type', { status: 200, date: new Date(Date.now() + 300_000) });
  const [clock] = await check();
  assert.deepEqual(
    [clock?.level, /differs from this host's by (299|300|301) s/.test(clock?.detail ?? '')],
    ['warn', true],
  );
  answering('versioning', {
    status: 200,
    body: '<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>',
  });
  const [versions] = await check();
  assert.equal(versions?.level, 'warn');
  assert.match(versions.detail, /keeps versions/);
  answering('versioning', { status: 403, code: 'AccessDenied' });
  assert.equal((await check())[0]?.level, 'ok', 'a key need not be able to ask');
});
