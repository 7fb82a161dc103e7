/** S3 for clients that can only reach the port of the API. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { Client } from '../harness/client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import { newS3, newS3Bucket, sharedS3, textsOf } from './s3-kit.ts';

let cloud: CloudProcess;
before(async () => {
  ({ cloud } = await sharedS3());
});

test('the port of the API serves requests that are signed in a header, as the data origin does', async () => {
  const own = await newS3(cloud.api, await new Client(cloud.api).newUser());
  const name = await newS3Bucket(own);
  for (const mode of ['hash', 'signed-trailer'] as const) {
    await own.ok('PUT', `/${name}/${mode}`, { body: 'some bytes', mode });
    assert.equal((await own.ok('GET', `/${name}/${mode}`)).text, 'some bytes');
  }
  assert.deepEqual(textsOf((await own.ok('GET', `/${name}`)).text, 'Key'), ['hash', 'signed-trailer']);
  const stranger = await newS3(cloud.api, await new Client(cloud.api).newUser());
  await stranger.refused(403, 'AccessDenied', ['GET', `/${name}/hash`]);
});

test('the port of the API serves no links, which a browser would follow', async () => {
  const own = await newS3(cloud.api, await new Client(cloud.api).newUser());
  const name = await newS3Bucket(own);
  await own.ok('PUT', `/${name}/page.html`, { body: '<script>alert(1)</script>' });
  const reply = await own.call('GET', `/${name}/page.html`, { presigned: 60 });
  assert.doesNotMatch(reply.text, /alert/);
});
