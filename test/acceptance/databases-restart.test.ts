/** Databases across a kill and restart of Cloudlet. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { DATABASES, DELETE, newDatabase, POST, rowsOf } from './databases-kit.ts';

const cloud = await CloudProcess.start();
after(() => cloud.stop());

/** After a kill, on new ports. */
async function restarted(user: CheckedClient): Promise<CheckedClient> {
  await cloud.crash();
  await cloud.start();
  return CheckedClient.open(cloud.api, user.key);
}

async function newUser(): Promise<CheckedClient> {
  const anyone = await CheckedClient.open(cloud.api);
  return anyone.as((await anyone.register()).api_key);
}

test('rows, passwords and what was deleted are still there', async () => {
  const before = await newUser();
  const path = await newDatabase(before, 'CREATE TABLE t (x)', 'INSERT INTO t VALUES (1)');
  const { connection } = await before.expect(200, `${path}/credentials/rotate`, POST);
  const deleted = await newDatabase(before, 'CREATE TABLE t (x)', 'INSERT INTO t VALUES (7)');
  await before.expect(200, deleted, DELETE);
  const user = await restarted(before);
  assert.deepEqual(await rowsOf(user, path, 'SELECT x FROM t'), [[1]]);
  const credentials = await user.expect(200, `${path}/credentials`);
  assert.equal(credentials.connection.password, connection.password);
  await user.expect(200, `${deleted}/undelete`, { json: {} });
  assert.deepEqual(await rowsOf(user, deleted, 'SELECT x FROM t'), [[7]]);
});

test('creations that were cut off are made once by whoever asks again', async () => {
  const before = await newUser();
  const request = (name: string) => ({ json: { name }, headers: { 'idempotency-key': name } });
  const names = Array.from({ length: 20 }, (_, i) => `cut${i}`);
  const answered = names.map((name) =>
    before.call(DATABASES, request(name)).then(
      ({ body }) => String(body.database_id),
      () => null,
    ),
  );
  await Promise.any(answered);
  const user = await restarted(before);
  const answers = await Promise.all(answered);
  for (const [i, name] of names.entries()) {
    const made = await user.expect(201, DATABASES, request(name));
    assert.equal(made.state, 'ready');
    if (answers[i] !== null) assert.equal(made.database_id, answers[i], 'what was answered is so');
    assert.deepEqual(await rowsOf(user, `${DATABASES}/${made.database_id}`, 'SELECT 1'), [[1]]);
  }
  assert.equal((await user.expect(200, DATABASES)).length, names.length);
});
