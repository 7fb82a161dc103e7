/** One database of a recovery point, restored by its owner beside the live one. */
import assert from 'node:assert/strict';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { DATABASES, DELETE, newDatabase, noServerOf, rowsOf, run } from './databases-kit.ts';
import { LosableCloud } from './recovery-kit.ts';

let lost: LosableCloud;
before(async () => {
  lost = await LosableCloud.start();
});
after(() => lost.end());

const idOf = (path: string) => path.slice(DATABASES.length + 1);
/** The path of a new database, created from a point. */
async function restored(path: string, pointId: string, name: string): Promise<string> {
  const json = { name, from: { database_id: idOf(path), point_id: pointId } };
  const { database_id, state } = await lost.user.expect(201, DATABASES, { json });
  assert.equal(state, 'ready');
  return `${DATABASES}/${database_id}`;
}

for (const engine of ['sqlite', 'postgresql', 'mysql']) {
  test(`a table that was dropped is back in a new database of ${engine}`, {
    skip: noServerOf(engine),
  }, async () => {
    const { user } = lost;
    const made = await user.expect(201, DATABASES, { json: { name: `shop-${engine}`, engine } });
    const path = `${DATABASES}/${made.database_id}`;
    assert.deepEqual(await user.expect(200, `${path}/points`), []);
    await run(user, path, 'CREATE TABLE notes (id INTEGER PRIMARY KEY, x VARCHAR(20))');
    await run(user, path, "INSERT INTO notes VALUES (1, 'kept')");
    const first = await lost.point();
    await run(user, path, "UPDATE notes SET x = 'later' WHERE id = 1");
    const second = await lost.point();
    await run(user, path, 'DROP TABLE notes');
    const listed = await user.expect(200, `${path}/points`);
    assert.deepEqual(
      listed.map(({ point_id }: { point_id: string }) => point_id),
      [second.point_id, first.point_id],
    );
    const back = await restored(path, first.point_id, `back-${engine}`);
    assert.deepEqual(await rowsOf(user, back, 'SELECT id, x FROM notes'), [[1, 'kept']]);
    await run(user, back, "INSERT INTO notes VALUES (2, 'new')");
    // Its own database, which is not in those points.
    assert.deepEqual(await user.expect(200, `${back}/points`), []);
    await user.expect(400, `${path}/query`, { json: { statement: 'SELECT * FROM notes' } });
  });
}

const noMysql = noServerOf('mysql');
test('a database of mysql with a broken view, and one that calls a function, is in a point', {
  skip: noMysql,
}, async () => {
  const { user } = lost;
  const made = await user.expect(201, DATABASES, { json: { name: 'views', engine: 'mysql' } });
  const path = `${DATABASES}/${made.database_id}`;
  await run(user, path, 'CREATE TABLE gone (a int)');
  await run(user, path, 'CREATE FUNCTION five() RETURNS int RETURN 5');
  await run(user, path, 'CREATE VIEW broken AS SELECT a FROM gone');
  await run(user, path, 'CREATE VIEW calls AS SELECT five() AS n');
  await run(user, path, 'DROP TABLE gone');
  const { point_id: pointId } = await lost.point();
  const back = await restored(path, pointId, 'views-back');
  assert.deepEqual(await rowsOf(user, back, 'SELECT n FROM calls'), [[5]]);
  assert.deepEqual(await rowsOf(user, back, 'SHOW TABLES'), [['calls']]);
  await user.expect(200, path, DELETE);
  await user.expect(200, `${path}/undelete`, { json: {} });
  assert.deepEqual(await rowsOf(user, path, 'SELECT n FROM calls'), [[5]]);
});

test('a deleted database is there as long as it can be undeleted', async () => {
  const { user } = lost;
  const path = await newDatabase(user, 'CREATE TABLE t (x)', 'INSERT INTO t VALUES (7)');
  const { point_id: pointId } = await lost.point();
  await user.expect(200, path, DELETE);
  assert.deepEqual(
    (await user.expect(200, `${path}/points`)).map((point: { point_id: string }) => point.point_id),
    [pointId],
  );
  assert.deepEqual(await rowsOf(user, await restored(path, pointId, 'again'), 'SELECT x FROM t'), [[7]]);
});

test('another account, a point without it, and a wrong engine or size are refused', async () => {
  const { user, admin } = lost;
  const before = await lost.point();
  const path = await newDatabase(user, 'CREATE TABLE t (x)');
  const { point_id: pointId } = await lost.point();
  const stranger = user.as((await user.register()).api_key);
  for (const other of [stranger, admin]) {
    await other.refused(404, 'database_not_found', [`${path}/points`]);
    const json = { name: 'mine', from: { database_id: idOf(path), point_id: pointId } };
    await other.refused(404, 'database_not_found', [DATABASES, { json }]);
  }
  const attempt = (point_id: string, more: object = {}) => ({
    json: { name: 'never', from: { database_id: idOf(path), point_id }, ...more },
  });
  for (const wrong of [before.point_id, 'drp-none', '../x']) {
    await user.refused(404, 'point_not_found', [DATABASES, attempt(wrong)]);
  }
  await user.refused(400, 'invalid_request', [DATABASES, attempt(pointId, { engine: 'postgresql' })]);
  const names = (await user.expect(200, DATABASES)).map(({ name }: { name: string }) => name);
  assert.ok(!names.includes('never'));
});

test('a point whose pieces are gone gives an error, and leaves nothing', async () => {
  const { user } = lost;
  const rows = 'WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000)';
  const path = await newDatabase(
    user,
    'CREATE TABLE t (x)',
    `INSERT INTO t ${rows} SELECT randomblob(50) FROM n`,
  );
  const { point_id: pointId } = await lost.point();
  const pieces = join(lost.target, 'pieces');
  for (const folder of readdirSync(pieces)) rmSync(join(pieces, folder), { recursive: true });
  const json = { name: 'damaged', from: { database_id: idOf(path), point_id: pointId } };
  await user.refused(500, 'data_corrupted', [DATABASES, { json }]);
  const names = (await user.expect(200, DATABASES)).map(({ name }: { name: string }) => name);
  assert.ok(!names.includes('damaged'));
  assert.equal((await rowsOf(user, path, 'SELECT count(*) FROM t'))[0]?.[0], 20_000);
});
