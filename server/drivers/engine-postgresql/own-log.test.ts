/** What a tenant of PostgreSQL reads in the log of its database, and that nobody else's lines get there. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Client } from 'pg';
import type { EngineDatabase } from '../../databases/engine.ts';
import { eventually } from '../../testing/eventually.ts';
import { newDatabase } from '../../testing/new-database.ts';
import {
  connect,
  noPostgresql,
  type PostgresqlFixture,
  postgresqlFixture,
} from '../../testing/postgresql-fixture.ts';

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';

describe("the log of a tenant's database in PostgreSQL", { skip: noPostgresql }, () => {
  let fixture: PostgresqlFixture;
  let own: EngineDatabase;
  let other: EngineDatabase;
  let client: Client;
  before(async () => {
    fixture = postgresqlFixture();
    await fixture.engine.prepare();
    [own, other] = [newDatabase(), newDatabase()];
    for (const database of [own, other]) await fixture.engine.provision(database, SECRET);
    client = await connect(fixture.engine, own, SECRET);
  });
  after(async () => {
    await client?.end();
    await fixture.close();
  });

  const logOf = (database: EngineDatabase) => fixture.engine.log(database, 100_000);
  const fails = (statement: string) => assert.rejects(client.query(statement), statement);
  const untilTold = (database: EngineDatabase, pattern: RegExp) =>
    eventually(async () => pattern.test(await logOf(database)));

  test('it tells of failed statements, of what took long and of what was ended', async () => {
    await fails('SELECT 1 / 0');
    await fails("DO $$ BEGIN RAISE EXCEPTION 'one' USING DETAIL = 'two', HINT = 'three'; END $$");
    await client.query('SELECT pg_sleep(2.5) AS slowly');
    const short = newDatabase({ limits: { connections: 5, statementMs: 1000 } });
    await fixture.engine.provision(short, SECRET);
    const session = await connect(fixture.engine, short, SECRET);
    await assert.rejects(session.query('SET statement_timeout = 0; SELECT pg_sleep(10000)'));
    await untilTold(own, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ERROR 22012: division by zero$/m);
    await untilTold(own, /ERROR P0001: one\n\tDETAIL: two\n\tHINT: three\n/);
    await untilTold(own, /SLOW: \d+\.\d s or more: SELECT pg_sleep\(2\.5\) AS slowly$/m);
    await untilTold(short, /a session was ended, as its statement ran for too long/);
  });

  test('of others it has nothing, whatever they say', async () => {
    const line = `2026-01-01 00:00:00.000 UTC [1] in a session of ${other.database}, 22012: ERROR:  forged`;
    await fails(`DO $$ BEGIN RAISE EXCEPTION E'mine\\n${line}'; END $$`);
    // Names that somebody says who is not logged in.
    const as = (database: string, username: string) =>
      assert.rejects(connect(fixture.engine, { ...own, database, username }, SECRET));
    await as(`x%0A${encodeURIComponent(line)}`, own.username);
    await as(`%0A2026-01-01 00:00:00.000 UTC [1] ${other.database}`, own.username);
    await as(other.database, own.username);
    await assert.rejects(connect(fixture.engine, other, 'wrong'));
    await untilTold(own, /ERROR P0001: mine\n\t2026-01-01/);
    await untilTold(other, /FATAL 28P01: password authentication failed for user "u_/);
    const log = await logOf(other);
    for (const word of ['forged', own.username, own.database, 'pg_hba', '2026-01-01'])
      assert.ok(!log.includes(word), `${word} in ${log}`);
  });

  test('it has a size, and goes with its database', async () => {
    const { length } = Buffer.from(await logOf(own));
    const end = await fixture.engine.log(own, 200);
    assert.ok(Buffer.byteLength(end) <= 200 && length > 200);
    assert.ok((await logOf(own)).endsWith(end));
    assert.match(end, /^(?:\d{4}-|\t)/);
    await fails(`DO $$ BEGIN RAISE EXCEPTION '%', repeat('x', 100000); END $$`);
    await untilTold(own, /xxx …\n/);
    // Too large to be read: it is left out, and what comes after it is not.
    await fails(`DO $$ BEGIN RAISE EXCEPTION '%', repeat('x', 10000000); END $$`);
    await eventually(async () => {
      await fails('SELECT now() + now()');
      return /operator does not exist/.test(await logOf(own));
    });
    for (let times = 0; times < 500; times++) await client.query('SELECT 1 / 0').catch(() => {});
    await fails(`SELECT 'the last one'::int`);
    await untilTold(own, /the last one|… and \d+ more/);
    const gone = newDatabase();
    await fixture.engine.provision(gone, SECRET);
    const session = await connect(fixture.engine, gone, SECRET);
    await assert.rejects(session.query('SELECT 1 / 0'));
    await untilTold(gone, /division/);
    await fixture.engine.drop(gone.database);
    assert.equal(await logOf(gone), '');
  });
});
