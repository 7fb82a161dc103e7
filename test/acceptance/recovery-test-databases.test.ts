/** Test databases created by programs, beside a database: in a recovery point, and restored. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { Client as Postgresql } from 'pg';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import { eventually } from '../harness/waiting.ts';
import { DATABASES, noServerOf, rowsOf, run } from './databases-kit.ts';
import { LosableCloud } from './recovery-kit.ts';

let lost: LosableCloud;
before(async () => {
  lost = await LosableCloud.start();
});
after(() => lost.end());

/** The rows of a statement, with the engine's driver, in that database of its server. */
async function ask(path: string, database: string | null, sql: string): Promise<unknown[]> {
  const { connection } = await lost.user.expect(200, `${path}/credentials`);
  const uri = String(connection.uri).replace(/[^/]+$/, database ?? connection.database);
  if (uri.startsWith('mysql:')) {
    const driver = await createConnection(uri);
    const [rows] = await driver.query<RowDataPacket[]>(sql);
    await driver.end();
    return rows;
  }
  const driver = new Postgresql({ connectionString: uri });
  await driver.connect();
  const { rows } = await driver.query(sql);
  await driver.end();
  return rows;
}

async function testsOf(path: string): Promise<string[]> {
  const listed = await lost.user.expect(200, `${path}/test-databases`);
  for (const { size_bytes: bytes } of listed) assert.ok(bytes > 0);
  return listed.map(({ name }: { name: string }) => name).sort();
}

/** One database with a test database for each engine, by engine. Fewer if an engine is missing. */
const made = new Map<string, string>();
const kept = { id: 1, what: 'kept' };

test('points have them', async (t) => {
  const { user } = lost;
  for (const engine of ['postgresql', 'mysql']) {
    if (noServerOf(engine)) continue;
    const { database_id: id } = await user.expect(201, DATABASES, {
      json: { name: `shop-${engine}`, engine },
    });
    const path = `${DATABASES}/${id}`;
    made.set(engine, path);
    await run(user, path, 'CREATE TABLE own (id INTEGER PRIMARY KEY)');
    await ask(path, null, 'CREATE DATABASE test_shop');
    await ask(path, 'test_shop', 'CREATE TABLE notes (id INTEGER PRIMARY KEY, what VARCHAR(20))');
    await ask(path, 'test_shop', "INSERT INTO notes VALUES (1, 'kept')");
  }
  if (made.size === 0) return t.skip(NO_POSTGRESQL);
  assert.deepEqual((await lost.point()).gaps, []);
});

for (const engine of ['postgresql', 'mysql'])
  test(`${engine}: one database of a point has them`, async (t) => {
    const path = made.get(engine);
    if (path === undefined) return t.skip(engine === 'mysql' ? NO_MARIADB : NO_POSTGRESQL);
    const [{ point_id: pointId }] = await lost.user.expect(200, `${path}/points`);
    const from = { database_id: path.slice(DATABASES.length + 1), point_id: pointId };
    const back = async (name: string) => {
      const { database_id: id } = await lost.user.expect(201, DATABASES, { json: { name, from } });
      return `${DATABASES}/${id}`;
    };
    await ask(path, 'test_shop', "UPDATE notes SET what = 'later'");
    const beside = await back(`beside-${engine}`);
    // MariaDB's databases have no owner, so the existing ones remain; PostgreSQL's new owner has a copy.
    const copies = engine === 'postgresql' ? ['test_shop', 'test_shop_copy'] : ['test_shop'];
    assert.deepEqual(await testsOf(beside), copies);
    assert.deepEqual(await ask(path, 'test_shop', 'SELECT * FROM notes'), [{ ...kept, what: 'later' }]);
    if (engine === 'postgresql')
      assert.deepEqual(await ask(beside, 'test_shop_copy', 'SELECT * FROM notes'), [kept]);
    await ask(path, null, 'DROP DATABASE test_shop');
    const again = await back(`again-${engine}`);
    assert.ok((await testsOf(again)).includes('test_shop'));
    assert.deepEqual(await ask(again, 'test_shop', 'SELECT * FROM notes'), [kept]);
  });

test('a cloud that is had back has them', async (t) => {
  if (made.size === 0) return t.skip(NO_POSTGRESQL);
  const tests = new Map<string, string[]>();
  for (const [engine, path] of made) tests.set(engine, await testsOf(path));
  assert.deepEqual((await lost.point()).gaps, []);
  await lost.keepKey();
  const to = join(lost.root, 'again');
  const { code, stderr } = await lost.restore(to, '--point', 'latest');
  assert.equal(code, 0, stderr);
  // An orderly stop ends its servers, too.
  await lost.goOn(to);
  for (const { database_id: id } of await lost.user.expect(200, DATABASES))
    await eventually(`${id} is ready`, async () => {
      return (await lost.user.expect(200, `${DATABASES}/${id}`)).state === 'ready';
    });
  for (const [engine, path] of made) {
    assert.deepEqual(await rowsOf(lost.user, path, 'SELECT count(*) FROM own'), [[0]]);
    assert.deepEqual(await testsOf(path), tests.get(engine), engine);
    const owner = engine === 'postgresql' ? await pathOf(`again-${engine}`) : path;
    assert.deepEqual(await ask(owner, 'test_shop', 'SELECT * FROM notes'), [kept]);
  }
});

async function pathOf(name: string): Promise<string> {
  const listed = await lost.user.expect(200, DATABASES);
  const { database_id: id } = listed.find((one: { name: string }) => one.name === name);
  return `${DATABASES}/${id}`;
}
