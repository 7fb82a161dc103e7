/** A PostgreSQL database as of a moment, from logs archived in a bucket of another cloud. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually } from '../harness/waiting.ts';
import { DATABASES, noServerOf, rowsOf, run } from './databases-kit.ts';
import { LosableCloud } from './recovery-kit.ts';
import { newKeyPair, newS3Bucket, startS3 } from './s3-kit.ts';

let other: Awaited<ReturnType<typeof startS3>>;
let lost: LosableCloud;
before(async () => {
  other = await startS3();
  const keys = await newKeyPair(other.user);
  const { hostname, port } = new URL(other.cloud.data);
  const bucket = await newS3Bucket(other.s3);
  const where = `${hostname}:${port}/${bucket}/points?tls=off`;
  lost = await LosableCloud.start({
    CLOUDLET_RECOVERY_TARGET: `s3://${keys.access_key_id}:${keys.secret_access_key}@${where}`,
    CLOUDLET_CONTINUOUS_SECONDS: '1',
  });
});
after(async () => {
  await lost.end();
  await other.cloud.stop();
});

const skip = noServerOf('postgresql');
test('a row that was deleted is back, and the live database goes on', { skip }, async () => {
  const { user } = lost;
  await lost.point();
  const made = await user.expect(201, DATABASES, { json: { name: 'shop', engine: 'postgresql' } });
  const path = `${DATABASES}/${made.database_id}`;
  const reach = async () => {
    const { windows } = await user.expect(200, `${path}/moments`);
    return windows.length === 0 ? 0 : Date.parse(`${windows[0].to}Z`);
  };
  await run(user, path, 'CREATE TABLE notes (x INTEGER)');
  await run(user, path, 'INSERT INTO notes VALUES (1)');
  await eventually('there is a base copy', async () => (await reach()) > 0);
  await run(user, path, 'INSERT INTO notes VALUES (2)');
  const [[time] = []] = await rowsOf(user, path, 'SELECT clock_timestamp()::text');
  await run(user, path, 'DELETE FROM notes');
  const at = new Date(String(time)).toISOString();
  await eventually('the log is archived', async () => (await reach()) > Date.parse(at));
  const json = { name: 'shop-back', from: { database_id: made.database_id, at } };
  const { database_id: id } = await user.expect(201, DATABASES, { json });
  assert.deepEqual(await rowsOf(user, `${DATABASES}/${id}`, 'SELECT x FROM notes ORDER BY x'), [[1], [2]]);
  assert.deepEqual(await rowsOf(user, path, 'SELECT x FROM notes'), []);
});
