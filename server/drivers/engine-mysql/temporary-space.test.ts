/** Temporary files of MariaDB: who takes too much of their room loses the statement, and nobody else does. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import type { EngineDatabase } from '../../databases/engine.ts';
import { connectMysql, type MysqlFixture, mysqlFixture, noMysql } from '../../testing/mysql-fixture.ts';
import { newDatabase } from '../../testing/new-database.ts';

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const INTERRUPTED = 1317;

describe('temporary files of MariaDB', { skip: noMysql }, () => {
  let fixture: MysqlFixture;
  let hostile: EngineDatabase;
  let neighbour: EngineDatabase;
  before(async () => {
    fixture = mysqlFixture();
    await fixture.engine.prepare();
    hostile = newDatabase({ limits: { connections: 5, statementMs: 600_000 } });
    neighbour = newDatabase({ limits: { connections: 5, statementMs: 600_000 } });
    for (const database of [hostile, neighbour]) await fixture.engine.provision(database, SECRET);
  });
  after(() => fixture.close());

  /** Whether the server has a /tmp of its own. */
  const hasOwn = () =>
    /^cloudlet \/ tmpfs /m.test(readFileSync(`/proc/${fixture.engine.pid}/mounts`, 'latin1'));

  test('a bomb of a sort, of a temporary table and of a recursion die, while a neighbour sorts', async (t) => {
    if (!hasOwn()) return t.skip('here it is on the disk, which is watched as a whole');
    const bombs = [
      "SELECT COUNT(*) FROM (SELECT DISTINCT CONCAT(seq, REPEAT('x', 8000)) FROM seq_1_to_1000000000) t",
      "SELECT CONCAT(seq, REPEAT('x', 900)) AS a FROM seq_1_to_1000000000 ORDER BY a LIMIT 1 OFFSET 500000000",
      "WITH RECURSIVE t AS (SELECT REPEAT('z', 8000) AS x UNION ALL SELECT t.x FROM t, seq_1_to_9) SELECT COUNT(*) FROM t",
    ];
    let left = bombs.length;
    const dying = bombs.map(async (statement) => {
      const session = await connectMysql(fixture.engine, hostile, SECRET);
      await assert.rejects(session.query(statement), { errno: INTERRUPTED });
      left--;
      // The session itself goes on.
      await session.query('SELECT 1');
      session.destroy();
    });
    const session = await connectMysql(fixture.engine, neighbour, SECRET);
    const some = "SELECT COUNT(*) FROM (SELECT DISTINCT CONCAT(seq, REPEAT('y', 8000)) FROM seq_1_to_3000) t";
    const sorting = (async () => {
      do await session.query(some);
      while (left > 0);
    })();
    await Promise.all([...dying, sorting]);
    session.destroy();
    assert.match(
      await fixture.engine.log(hostile, 10_000),
      /its temporary files took the room of all others/,
    );
    assert.equal(await fixture.engine.log(neighbour, 10_000).then((log) => log.includes('temporary')), false);
  });
});
