/** Databases of a lost cloud, restored from a recovery point. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually } from '../harness/waiting.ts';
import { DATABASES, DELETE, newDatabase, POST, rowsOf, run } from './databases-kit.ts';
import { LosableCloud } from './recovery-kit.ts';

let lost: LosableCloud;
before(async () => {
  lost = await LosableCloud.start();
});
after(() => lost.end());

const ready = (path: string) =>
  eventually('it is ready again', async () => {
    const { state, state_reason: reason } = await lost.user.expect(200, path);
    if (state !== 'ready') assert.deepEqual([state, reason.code], ['error', 'restoring']);
    return state === 'ready';
  });

test('rows, names, ids and passwords come back, and what was deleted can be had back', async () => {
  const { user } = lost;
  const rows = 'WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000)';
  const path = await newDatabase(
    user,
    'CREATE TABLE t (x INTEGER PRIMARY KEY, y TEXT)',
    `INSERT INTO t ${rows} SELECT i, hex(randomblob(20)) FROM n`,
  );
  const empty = await newDatabase(user);
  const deleted = await newDatabase(user, 'CREATE TABLE t (x)', 'INSERT INTO t VALUES (7)');
  await user.expect(200, deleted, DELETE);
  const { connection } = await user.expect(200, `${path}/credentials/rotate`, POST);
  const listed = await user.expect(200, DATABASES);
  const content = await rowsOf(user, path, 'SELECT count(*), sum(x), max(y), min(y) FROM t');
  const first = await lost.point();
  assert.deepEqual([first.state, first.gaps], ['complete', []]);
  await run(user, path, `UPDATE t SET y = 'changed' WHERE x = 7`);
  const second = await lost.point();
  assert.ok(second.stored_bytes < first.stored_bytes / 2, `${second.stored_bytes} of ${first.stored_bytes}`);
  await run(user, path, `UPDATE t SET y = 'lost' WHERE x = 8`);
  await lost.keepKey();
  await lost.lose();
  await ready(path);
  await ready(empty);
  const [, ...names] = listed.map(({ name }: { name: string }) => name);
  const again = await lost.user.expect(200, DATABASES);
  assert.deepEqual(
    again.slice(1).map(({ name }: { name: string }) => name),
    names,
  );
  const found = await rowsOf(lost.user, path, 'SELECT count(*), sum(x), max(y) FROM t');
  assert.deepEqual(found, [[...(content[0] ?? []).slice(0, 2), 'changed']]);
  const credentials = await lost.user.expect(200, `${path}/credentials`);
  const { password, username, database } = credentials.connection;
  const { password: old, username: oldUser, database: oldDatabase } = connection;
  assert.deepEqual([password, username, database], [old, oldUser, oldDatabase]);
  await run(lost.user, path, 'DELETE FROM t WHERE x = 1');
  await lost.user.expect(200, `${deleted}/undelete`, { json: {} });
  assert.deepEqual(await rowsOf(lost.user, deleted, 'SELECT x FROM t'), [[7]]);
});

test('a point of a cloud that was restored restores too', async () => {
  await run(lost.user, await newDatabase(lost.user), 'CREATE TABLE after_restore (x)');
  const listed = await lost.user.expect(200, DATABASES);
  assert.deepEqual((await lost.point()).gaps, []);
  await lost.lose();
  for (const { database_id: id } of listed) await ready(`${DATABASES}/${id}`);
});

test('documents of MongoDB come back, with their indexes', async () => {
  const { database_id: id } = await lost.user.expect(201, DATABASES, {
    json: { name: 'notes', engine: 'mongodb' },
  });
  const path = `${DATABASES}/${id}`;
  const insert = { command: { insert: 'notes', documents: [{ _id: 1, note: 'tea' }] }, read_only: false };
  await lost.user.expect(200, `${path}/query`, { json: insert });
  const index = { key: { note: 1 }, name: 'note_1', unique: true };
  const command = { createIndexes: 'notes', indexes: [index] };
  await lost.user.expect(200, `${path}/query`, { json: { command, read_only: false } });
  assert.deepEqual((await lost.point()).gaps, []);
  await lost.lose();
  await ready(path);
  const { rows } = await lost.user.expect(200, `${path}/query`, { json: { command: { find: 'notes' } } });
  assert.deepEqual(rows, [[1, 'tea']]);
  const again = { command: { insert: 'notes', documents: [{ _id: 2, note: 'tea' }] }, read_only: false };
  await lost.user.refused(400, 'query_failed', [`${path}/query`, { json: again }]);
});
