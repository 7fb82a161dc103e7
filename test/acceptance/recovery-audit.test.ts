/** Calls of recovery with several commits: the first one contains the entry in the audit log. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { POINTS, POST } from './recovery-kit.ts';

const watched = new URL('../harness/entries-in-commits.ts', import.meta.url).href;
const command = [process.execPath, '--import', watched, 'server/main.ts', 'start'];
const cloud = await CloudProcess.start({ command });
after(() => cloud.stop());
const anyone = await CheckedClient.open(cloud.api);
const admin = anyone.as(ADMIN_KEY);

/** The entries of an action, at once: one that is stored apart comes up to a second later. */
const targetsOf = async (action: string): Promise<string[]> => {
  const entries = await admin.expect(200, `/api/audit?account_id=all&action=${action}&outcome=done`);
  return entries.map(({ target }: { target: string }) => target);
};

async function fullAccount() {
  const account = await anyone.register();
  const user = anyone.as(account.api_key);
  await user.expect(201, '/api/buckets', { json: { name: 'photos' } });
  for (const name of ['a.txt', 'b.txt', 'c.txt']) await user.upload('photos', name, name);
  await user.expect(201, '/api/databases', { json: { name: 'shop' } });
  return { username: account.username, user };
}

test('each has one entry, in the commit of its first effect', async () => {
  const { username, user } = await fullAccount();
  const later = { method: 'POST', headers: { prefer: 'respond-async' } };
  const { operation_id: id } = await admin.expect(202, POINTS, later);
  const { result } = await admin.expect(200, `/api/operations/${id}?wait=60`);
  const { point_id } = result;
  assert.deepEqual(await targetsOf('createRecoveryPoint'), [point_id]);

  const copy = { point_id, to_bucket: 'photos-then' };
  assert.equal((await user.expect(200, '/api/buckets/photos/restore', { json: copy })).objects, 3);
  assert.deepEqual(await targetsOf('restoreBucket'), ['photos']);

  const json = { username: 'again', email: 'again@example.org' };
  const restored = await admin.expect(200, `${POINTS}/${point_id}/accounts/${username}/restore`, { json });
  assert.equal(restored.state, 'complete');
  assert.deepEqual(await targetsOf('restoreAccount'), [`${point_id}/${username}`]);

  const { recovery_key } = await admin.expect(200, '/api/admin/recovery-key', POST);
  await admin.expect(200, '/api/admin/recovery-key/confirm', { json: { recovery_key } });
  assert.equal((await targetsOf('confirmRecoveryKey')).length, 1);

  await admin.expect(200, '/api/disaster-recovery/check', POST);
  assert.equal((await targetsOf('checkRecoveryTarget')).length, 1);
});

test('nothing of it was committed without its entry', async () => {
  await eventually(
    'the last note is stored',
    async () => (await targetsOf('createRecoveryPoint')).length > 0,
  );
  assert.deepEqual(
    cloud.output.split('\n').filter((line) => / apart from /.test(line)),
    [],
  );
});
