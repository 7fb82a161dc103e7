/** An account reads the log of its PostgreSQL server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../../testing/eventually.ts';
import { newDatabase } from '../../../testing/new-database.ts';
import { connect, noPostgresql, postgresqlFixture } from '../../../testing/postgresql-fixture.ts';

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const MOST = 100_000;

test("the log of an account's server tells of failures and of what took long, and goes with it", {
  skip: noPostgresql,
}, async (t) => {
  const { engine, close } = postgresqlFixture();
  t.after(close);
  const [own, other] = [newDatabase(), newDatabase({ accountId: 2 })];
  for (const database of [own, other]) await engine.provision(database, SECRET);
  const client = await connect(engine, own, SECRET);
  t.after(() => client.end());
  const untilLogged = (pattern: RegExp) => eventually(async () => pattern.test(await engine.log(own, MOST)));
  await assert.rejects(client.query('SELECT 1 / 0'));
  await assert.rejects(client.query("DO $$ BEGIN RAISE EXCEPTION 'one' USING HINT = 'three'; END $$"));
  await client.query('SELECT pg_sleep(1.2) AS slowly');
  await assert.rejects(connect(engine, own, 'a-wrong-password'));
  await untilLogged(new RegExp(`${own.username}@${own.database} 22012 ERROR: {2}division by zero`));
  await untilLogged(/ERROR: {2}one\n.*HINT: {2}three/);
  await untilLogged(/duration: \d+\.\d+ ms .*SELECT pg_sleep\(1\.2\) AS slowly/);
  await untilLogged(/password authentication failed/);
  const end = await engine.log(own, 200);
  assert.ok(Buffer.byteLength(end) <= 200 && (await engine.log(own, MOST)).endsWith(end));
  const ofOther = await engine.log(other, MOST);
  for (const word of [own.username, 'slowly', 'division']) assert.ok(!ofOther.includes(word), word);
});
