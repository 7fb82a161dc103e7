import { test } from 'node:test';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { newS3 } from './s3-kit.ts';
import { checkHistories } from './two-doors.ts';

/** test/long/two-doors.test.ts runs 10,000. */
const HISTORIES = 60;

test('whatever is done by REST and by S3 in turn, both show the same versions and the same bytes', async () => {
  const env = { CLOUDLET_RATE_REQUESTS: '1000000', CLOUDLET_RATE_S3: '1000000' };
  const cloud = await CloudProcess.start({ env });
  try {
    const client = await new Client(cloud.api).newUser();
    await checkHistories({ client, s3: await newS3(cloud.data, client) }, HISTORIES);
  } finally {
    await cloud.stop();
  }
});
