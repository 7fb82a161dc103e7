/**
 * A disk that fills up while parts arrive: nothing is stored partially, existing objects are served, and
 * space is released.
 */
import assert from 'node:assert/strict';
import { statfsSync } from 'node:fs';
import { test } from 'node:test';
import { completion, newS3, newUpload, pathOf, textsOf } from '../acceptance/s3-kit.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { blobFiles, eventually } from '../harness/waiting.ts';
import { LoopDisk, noLoopDisk } from './loop-disk.ts';

const MIB = 2 ** 20;
const PART = Buffer.alloc(5 * MIB, 'p');

test('a disk that is full in a part refuses it, keeps the parts before, and completes once there is space', {
  skip: noLoopDisk(),
}, async (t) => {
  const disk = new LoopDisk(96 * MIB);
  const dataDir = `${disk.mountPoint}/data`;
  let running: CloudProcess | undefined;
  t.after(async () => {
    await running?.crash();
    disk.remove();
  });
  const cloud = await CloudProcess.start({ dataDir, env: { CLOUDLET_SWEEP_GRACE_SECONDS: '1' } });
  running = cloud;
  const s3 = await newS3(cloud.data, await new Client(cloud.api).newUser());
  await s3.ok('PUT', '/full');
  await s3.ok('PUT', pathOf('full', 'small'), { body: 'small bytes' });
  const free = () => statfsSync(disk.mountPoint).bavail * statfsSync(disk.mountPoint).bsize;
  const freeBefore = free();

  const path = pathOf('full', 'large');
  const putPart = (uploadId: string, number: number) =>
    s3.call('PUT', path, { query: `partNumber=${number}&uploadId=${uploadId}`, body: PART });
  const fill = async (uploadId: string): Promise<(string | undefined)[]> => {
    const etags: (string | undefined)[] = [];
    for (;;) {
      const { status, headers, text } = await putPart(uploadId, etags.length + 1);
      if (status === 200) etags.push(headers.etag);
      else {
        assert.deepEqual([status, textsOf(text, 'Code')], [503, ['ServiceUnavailable']], text);
        return etags;
      }
    }
  };
  const [kept, other] = [await newUpload(s3, path), await newUpload(s3, path)];
  assert.equal((await putPart(other, 1)).status, 200);
  const etags = await fill(kept);
  assert.ok(etags.length >= 3, `${etags.length} parts`);

  // Existing objects are served, and the list of parts contains the acknowledged ones.
  assert.equal((await s3.ok('GET', pathOf('full', 'small'))).text, 'small bytes');
  const listed = await s3.ok('GET', path, { query: `uploadId=${kept}` });
  assert.deepEqual(textsOf(listed.text, 'ETag'), etags);
  await eventually('the bytes of the refused part are gone', () => {
    return blobFiles(dataDir).length === etags.length + 1;
  });

  // An aborted upload releases its space for the one that continues.
  await s3.ok('DELETE', path, { query: `uploadId=${other}` });
  await eventually('a part fits again', async () => {
    const { status, headers } = await putPart(kept, etags.length + 1);
    if (status === 200) etags.push(headers.etag);
    return status === 200;
  });
  const body = completion(etags.map((etag, index) => ({ number: index + 1, etag })));
  await s3.ok('POST', path, { query: `uploadId=${kept}`, body });
  const { bytes } = await s3.ok('GET', path);
  assert.ok(bytes.equals(Buffer.concat(etags.map(() => PART))));

  await s3.ok('DELETE', path);
  await eventually('all space is back', () => free() > freeBefore - 4 * MIB);
  assert.deepEqual(blobFiles(dataDir), []);
});
