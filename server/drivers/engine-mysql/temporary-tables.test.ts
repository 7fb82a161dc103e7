/** Temporary tables of MariaDB, which are all in one file: who fills it is ended, and the server goes on. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../testing/eventually.ts';
import { connectMysql, mysqlFixture, noMysql } from '../../testing/mysql-fixture.ts';
import { newDatabase } from '../../testing/new-database.ts';

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const limits = { connections: 5, statementMs: 600_000 };

test('who fills the room of temporary tables is ended, a neighbour and the server go on', {
  skip: noMysql,
}, async (t) => {
  const fixture = mysqlFixture();
  t.after(fixture.close);
  const { engine } = fixture;
  await engine.prepare();
  const [hostile, neighbour] = [newDatabase({ limits }), newDatabase({ limits })];
  const open = async (database: typeof hostile) => {
    await engine.provision(database, SECRET);
    const session = await connectMysql(engine, database, SECRET);
    t.after(() => session.destroy());
    await session.query('CREATE TEMPORARY TABLE some (x LONGTEXT)');
    return session;
  };
  const bomber = await open(hostile);
  const other = await open(neighbour);
  const pid = engine.pid;
  let isOver = false;
  const bomb = assert
    .rejects(bomber.query("INSERT INTO some SELECT REPEAT('x', 1000000) FROM seq_1_to_10000"))
    .finally(() => {
      isOver = true;
    });
  let rows = 0;
  for (; !isOver; rows++) await other.query("INSERT INTO some VALUES (REPEAT('y', 8000))");
  await bomb;
  assert.equal(engine.pid, pid, 'it is the same server');
  const again = await eventually(() => connectMysql(engine, hostile, SECRET).catch(() => null));
  t.after(() => again.destroy());
  await again.query('CREATE TEMPORARY TABLE some (x LONGTEXT)');
  await again.query('INSERT INTO some VALUES (1)');
  const [found] = await other.query('SELECT COUNT(*) AS n FROM some');
  assert.deepEqual(found, [{ n: rows }]);
  assert.match(await engine.log(hostile, 10_000), /their temporary tables took the room of all others/);
  assert.doesNotMatch(await engine.log(neighbour, 10_000), /temporary/);
});
