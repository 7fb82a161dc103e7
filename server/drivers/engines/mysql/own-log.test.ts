/** An account reads the log of its MariaDB server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../../testing/eventually.ts';
import { connectMysql, mysqlFixture, noMysql } from '../../../testing/mysql-fixture.ts';
import { newDatabase } from '../../../testing/new-database.ts';

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const MOST = 100_000;

test("the log of an account's server tells of refused log-ins, and of nothing of others", {
  skip: noMysql,
}, async (t) => {
  const { engine, close } = mysqlFixture();
  t.after(close);
  const [own, other] = [newDatabase(), newDatabase({ accountId: 2 })];
  for (const database of [own, other]) await engine.provision(database, SECRET);
  await assert.rejects(connectMysql(engine, own, 'wrong'), { errno: 1045 });
  await eventually(async () =>
    (await engine.log(own, MOST)).includes(`Access denied for user '${own.username}'`),
  );
  assert.ok(!(await engine.log(other, MOST)).includes('Access denied'));
});
