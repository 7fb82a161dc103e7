/** What a tenant of MariaDB reads in the log of its database. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { EngineDatabase } from '../../databases/engine.ts';
import { eventually } from '../../testing/eventually.ts';
import { connectMysql, type MysqlFixture, mysqlFixture, noMysql } from '../../testing/mysql-fixture.ts';
import { newDatabase } from '../../testing/new-database.ts';

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';

describe("the log of a tenant's database in MariaDB", { skip: noMysql }, () => {
  let fixture: MysqlFixture;
  let own: EngineDatabase;
  let other: EngineDatabase;
  before(async () => {
    fixture = mysqlFixture();
    await fixture.engine.prepare();
    own = newDatabase({ limits: { connections: 5, statementMs: 3000 } });
    other = newDatabase();
    for (const database of [own, other]) await fixture.engine.provision(database, SECRET);
  });
  after(() => fixture.close());

  const untilTold = (database: EngineDatabase, pattern: RegExp) =>
    eventually(async () => pattern.test(await fixture.engine.log(database, 100_000)));

  test('it tells of refused logins, of what took long and of what was ended, and of nothing of others', async () => {
    const wrong = (database: EngineDatabase) =>
      assert.rejects(connectMysql(fixture.engine, database, 'wrong'), { errno: 1045 });
    await wrong(own);
    await wrong({ ...other, username: `${other.username}'x` });
    await wrong({ ...other, username: own.username });
    const session = await connectMysql(fixture.engine, own, SECRET);
    await session.query("SELECT SLEEP(2.5), 'slowly'");
    await session.query('SET SESSION max_statement_time = 0');
    await assert.rejects(session.query('SELECT SLEEP(10000)'));
    const neighbour = await connectMysql(fixture.engine, other, SECRET);
    await neighbour.query("SELECT SLEEP(2.5), 'of a neighbour'");
    await untilTold(own, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d Access denied for user 'u_[a-z0-9]{16}'@'127/m);
    await untilTold(own, /SLOW: \d+\.\d s or more: SELECT SLEEP\(2\.5\), 'slowly'$/m);
    await untilTold(own, /ERROR: a session was ended, as its statement ran for too long/);
    await untilTold(other, /of a neighbour/);
    const log = await fixture.engine.log(other, 100_000);
    for (const word of [own.username, 'slowly', 'Access denied', 'was ended'])
      assert.ok(!log.includes(word), `${word}: ${log}`);
    neighbour.destroy();
    await fixture.engine.drop(own.database);
    assert.equal(await fixture.engine.log(own, 100_000), '');
  });
});
