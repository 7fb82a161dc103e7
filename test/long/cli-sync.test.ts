/** The client syncs 10,000 files and is killed five times in each direction. */
import { after, test } from 'node:test';
import { CliUser } from '../acceptance/cli-kit.ts';
import { syncBothWays } from '../acceptance/cli-sync-kit.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';

const cloud = await CloudProcess.start();
const user = await CliUser.signedIn(cloud.api);
after(async () => {
  user.remove();
  await cloud.stop();
});

test('10,000 files arrive once and whole, though each client is killed five times', async () => {
  const json = { name: 'synced', versioning: true };
  await new Client(cloud.api, user.key).call('/api/buckets', { json });
  await syncBothWays(user, { files: 10_000, kills: 5 });
});
