import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Alarms } from '../../platform/alarms.ts';
import { systemClock as clock } from '../../platform/clock.ts';
import { openTestMetadata } from '../../testing/new-metadata.ts';
import { assertFiles, openAtBucket } from './blobs-place.ts';

const LABEL = 's3://s3.example.com/objects';
const FILE = { sql: "INSERT INTO blobs (name, size_bytes) VALUES ('a', 1)", params: [] };

async function openMetadata(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-place-'));
  const metadata = await openTestMetadata({ directory, clock, alarms: new Alarms(clock) });
  t.after(async () => {
    await metadata.close();
    rmSync(directory, { recursive: true });
  });
  return metadata;
}

test('a cloud without objects takes a bucket, and then needs it', async (t) => {
  const metadata = await openMetadata(t);
  await assertFiles(metadata);
  assert.equal(await openAtBucket(metadata, LABEL, async (isEmpty) => isEmpty), true);
  await assert.rejects(assertFiles(metadata), {
    name: 'StartupError',
    message: new RegExp(`are in ${LABEL}`),
  });
  await metadata.commit([FILE]);
  assert.equal(await openAtBucket(metadata, LABEL, async (isEmpty) => isEmpty), false);
});

test('a cloud whose objects are files opens no bucket', async (t) => {
  const metadata = await openMetadata(t);
  await metadata.commit([FILE]);
  const refused = { name: 'StartupError', message: /are files .*cloudlet migrate --blobs s3/ };
  await assert.rejects(
    openAtBucket(metadata, LABEL, async () => assert.fail()),
    refused,
  );
  await assertFiles(metadata);
});

test('a bucket that cannot be opened is not noted', async (t) => {
  const metadata = await openMetadata(t);
  await assert.rejects(
    openAtBucket(metadata, LABEL, () => Promise.reject(new Error('away'))),
    /away/,
  );
  await assertFiles(metadata);
});
