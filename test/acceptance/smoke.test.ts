import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';

let cloud: CloudProcess;
before(async () => {
  cloud = await CloudProcess.start();
});
after(() => cloud.stop());

test('an uploaded file comes back byte for byte', async () => {
  const user = await new Client(cloud.api).newUser();
  assert.equal((await user.call('/api/buckets', { json: { name: 'photos' } })).status, 201);
  const bytes = crypto.getRandomValues(new Uint8Array(50_000));
  const { status, body } = await user.upload('photos', 'a/b.bin', bytes);
  assert.equal(status, 200);
  assert.deepEqual(await user.download(body.object_id), Buffer.from(bytes));
});
