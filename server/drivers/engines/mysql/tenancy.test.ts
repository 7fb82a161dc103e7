/** Statements that MariaDB refuses to tenants, sent by the tenant's own driver. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import type { Connection, RowDataPacket } from 'mysql2/promise';
import { type EngineDatabase, LoadFailed, QueryFailed } from '../../../databases/engine.ts';
import { eventually } from '../../../testing/eventually.ts';
import { connectMysql, type MysqlFixture, mysqlFixture, noMysql } from '../../../testing/mysql-fixture.ts';
import { newDatabase } from '../../../testing/new-database.ts';

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const STAYS = new AbortController().signal;
const REFUSED = [1044, 1045, 1142, 1227, 1290, 1370, 1356, 1698];

describe('a tenant of MariaDB', { skip: noMysql }, () => {
  let fixture: MysqlFixture;
  let own: EngineDatabase;
  let other: EngineDatabase;
  let client: Connection;
  before(async () => {
    fixture = mysqlFixture();
    [own, other] = [newDatabase(), newDatabase()];
    for (const database of [own, other]) await fixture.engine.provision(database, SECRET);
    client = await connectMysql(fixture.engine, own, SECRET);
  });
  after(async () => {
    client?.destroy();
    await fixture.close();
  });

  const connectTo = (database: string, username: string, password = SECRET) =>
    connectMysql(fixture.engine, { ...own, database, username }, password);
  const refuses = (statement: string, numbers = REFUSED, on = client) =>
    assert.rejects(
      on.query(statement),
      (error: { errno?: number }) => {
        assert.ok(numbers.includes(error.errno ?? 0), `${statement}: ${error.errno} ${error}`);
        return true;
      },
      statement,
    );
  const rowsOf = async (statement: string, on = client) => (await on.query<RowDataPacket[]>(statement))[0];

  test('comes into no other database, and by no other user (D1)', async () => {
    for (const database of [other.database, 'mysql'])
      await assert.rejects(connectTo(database, own.username), { errno: 1044 });
    const rest = own.database.slice(2);
    for (const user of ['root', 'cloudlet', 'cloudlet_dump', `w_${rest}`, `r_${rest}`])
      await assert.rejects(connectTo(own.database, user), { errno: 1045 });
    await assert.rejects(connectTo(own.database, own.username, 'wrong'), { errno: 1045 });
    // `_` in a name matches only itself.
    await refuses(`CREATE DATABASE ${own.database.replace('_', 'x')}`);
  });

  test('reaches neither the host nor what is only for administrators (D2, D5)', async () => {
    await client.query('CREATE TABLE mine (a text)');
    const refused = [
      `SELECT * FROM ${other.database}.mine`,
      `CREATE TABLE ${other.database}.x (a int)`,
      'CREATE DATABASE x',
      'CREATE USER x',
      `GRANT SELECT ON ${own.database}.* TO cloudlet_dump@localhost`,
      `GRANT ALL ON *.* TO CURRENT_USER`,
      'SELECT * FROM mysql.global_priv',
      "SELECT * FROM mine INTO OUTFILE '/tmp/x'",
      "LOAD DATA INFILE '/etc/passwd' INTO TABLE mine",
      'SET GLOBAL local_infile = 1',
      'SET GLOBAL event_scheduler = ON',
      'SET SESSION sql_log_bin = 0',
      "INSTALL PLUGIN x SONAME 'x.so'",
      "CREATE FUNCTION f RETURNS STRING SONAME 'x.so'",
      'CREATE DEFINER = cloudlet@localhost PROCEDURE p() SELECT 1',
      'CREATE DEFINER = cloudlet@localhost VIEW v AS SELECT 1',
      'FLUSH TABLES',
      'SHUTDOWN',
      'RESET MASTER',
      `ALTER USER CURRENT_USER WITH MAX_USER_CONNECTIONS 0`,
      "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'x')",
    ];
    for (const statement of refused) await refuses(statement);
    const [row] = await rowsOf("SELECT LOAD_FILE('/etc/passwd') AS text");
    assert.equal(row?.text, null);
    await refuses("LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE mine", [...REFUSED, 1148, 4166]);
    await refuses('CREATE TABLE aria (a int) ENGINE = Aria', [1286, 1290]);
  });

  test('sees nothing of others (D4)', async () => {
    const neighbour = await connectTo(other.database, other.username);
    const names = (await rowsOf('SHOW DATABASES')).map((row) => String(row.Database)).sort();
    assert.deepEqual(names, [own.database, 'information_schema'].sort());
    for (const row of await rowsOf('SELECT * FROM information_schema.USER_STATISTICS'))
      assert.equal(row.USER, own.username);
    for (const row of await rowsOf('SHOW PROCESSLIST')) assert.equal(row.User, own.username);
    const [{ threadId }] = [neighbour];
    await refuses(`KILL ${threadId}`, [1095]);
    neighbour.destroy();
  });

  test('has so many connections (D3), and loses its own password with its sessions when it is rotated', async () => {
    const database = newDatabase({ limits: { connections: 3, statementMs: 10_000 } });
    await fixture.engine.provision(database, SECRET);
    await fixture.engine.restrict(database, 'full');
    const open = await Promise.all([1, 2, 3].map(() => connectMysql(fixture.engine, database, SECRET)));
    await assert.rejects(connectMysql(fixture.engine, database, SECRET), { errno: 1226 });
    await open[0]?.query("SET PASSWORD = PASSWORD('own')");
    await fixture.engine.rotate(database, 'next');
    for (const one of open) await assert.rejects(one.query('SELECT 1'));
    for (const old of ['own', SECRET])
      await assert.rejects(connectMysql(fixture.engine, database, old), { errno: 1045 });
    const session = await connectMysql(fixture.engine, database, 'next');
    await fixture.engine.drop(database.database);
    await assert.rejects(session.query('SELECT 1'));
  });

  test('makes databases for tests, and uses them', async () => {
    for (const name of ['test_shop', 'shop_test', 'prisma_migrate_shadow_db_1']) {
      await client.query(`CREATE DATABASE ${name}`);
      await client.query(`CREATE TABLE ${name}.t (a int)`);
      await client.query(`DROP DATABASE ${name}`);
    }
  });

  test('who drops all of the own database has an empty one again', async () => {
    const database = newDatabase();
    await fixture.engine.provision(database, SECRET);
    const session = await connectMysql(fixture.engine, database, SECRET);
    await session.query('CREATE TABLE t (a int)');
    await session.query(`DROP DATABASE ${database.database}`);
    const again = await eventually(() => connectMysql(fixture.engine, database, SECRET).catch(() => null));
    assert.deepEqual(await rowsOf('SHOW TABLES', again), []);
    await again.query('CREATE TABLE t (a int)');
    await fixture.engine.drop(database.database);
    assert.ok(!(await fixture.engine.list()).includes(database.database));
    for (const one of [session, again]) one.destroy();
  });

  test('while the disk is nearly full nobody writes, and everybody deletes', async () => {
    /** In its own session: sessions end when permissions change. Null: it succeeded. */
    const run = async (statement: string) => {
      try {
        const session = await connectTo(other.database, other.username);
        await session.query(statement).finally(() => session.destroy());
        return null;
      } catch (error) {
        return (error as { errno?: number }).errno;
      }
    };
    assert.equal(await run('CREATE TABLE low AS SELECT 1 AS a'), null);
    fixture.disk.isLow = true;
    await eventually(async () => (await run('INSERT INTO low VALUES (1)')) === 1142);
    assert.deepEqual(
      [await run('CREATE TABLE more (a int)'), await run('CREATE DATABASE test_more')],
      [1142, 1044],
    );
    for (const statement of ['SELECT * FROM low', 'DELETE FROM low', 'TRUNCATE TABLE low'])
      assert.equal(await run(statement), null, statement);
    fixture.disk.isLow = false;
    await eventually(async () => (await run('INSERT INTO low VALUES (1)')) === null);
    client.destroy();
    client = await connectMysql(fixture.engine, own, SECRET);
  });

  test('a query that only reads writes by no way round', async () => {
    const database = newDatabase();
    await fixture.engine.provision(database, SECRET);
    const session = await connectMysql(fixture.engine, database, SECRET);
    await session.query('CREATE TABLE t (a int)');
    await session.query('CREATE PROCEDURE p() BEGIN COMMIT; INSERT INTO t VALUES (1); END');
    await session.query('CREATE FUNCTION f() RETURNS int BEGIN INSERT INTO t VALUES (2); RETURN 1; END');
    await session.query('CREATE VIEW v AS SELECT f() AS a');
    const more = { params: [], readOnly: true, maxRows: 5, maxBytes: 1000, timeoutMs: 5000, signal: STAYS };
    const statements = [
      'CALL p()',
      'SELECT f()',
      'SELECT * FROM v',
      'BEGIN NOT ATOMIC COMMIT; SELECT * FROM v; END',
      '/*! INSERT INTO t VALUES (3) */',
      "EXECUTE IMMEDIATE 'INSERT INTO t VALUES (4)'",
      'ANALYZE INSERT INTO t VALUES (5)',
      'SELECT 1; INSERT INTO t VALUES (6)',
    ];
    for (const statement of statements)
      await assert.rejects(fixture.engine.query(database, { statement, ...more }), QueryFailed, statement);
    assert.deepEqual(await rowsOf('SELECT * FROM t', session), []);
    session.destroy();
  });

  test('rows that are too large to be shown are not loaded, and are no failure of the server', async () => {
    const more = {
      params: [],
      readOnly: true,
      maxRows: 100,
      maxBytes: 1000,
      timeoutMs: 20_000,
      signal: STAYS,
    };
    const columns = Array.from({ length: 8 }, (_, i) => `repeat('x', 10000000) AS c${i}`);
    const statement = `SELECT ${columns.join(', ')}`;
    const before = process.memoryUsage().arrayBuffers;
    let most = 0;
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage().arrayBuffers - before);
    }, 1);
    await assert
      .rejects(fixture.engine.query(own, { statement, ...more }), {
        name: 'QueryFailed',
        message: /too large to be shown/,
        engineCode: '1153',
      })
      .finally(() => clearInterval(watch));
    assert.ok(most < 60_000_000, `${most} bytes of the row were loaded`);
    const one = await fixture.engine.query(own, { ...more, statement: 'SELECT 1' });
    assert.deepEqual(one.rows.toJSON(), [[1]]);
  });

  test('a hostile dump does nothing, and the database stays as it was', async () => {
    await client.query('CREATE TABLE kept AS SELECT 1 AS a');
    const dumps = [
      '\\! id > /tmp/x\n',
      'SELECT 1; \\! id\n',
      'system id\n',
      'source /etc/passwd\n',
      '\\. /etc/passwd\n',
      'tee /tmp/x\n',
      'pager id\n',
      'DELIMITER //\nSELECT 1//\nsystem id//\n',
      `USE ${other.database};\n`,
      `USE ${own.database};\nDROP TABLE kept;\n`,
      'CREATE DEFINER=`cloudlet`@`localhost` PROCEDURE p() SELECT 1;\nSELECT * FROM mysql.global_priv;\n',
      'GRANT ALL ON *.* TO CURRENT_USER;\n',
      "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE kept;\n",
    ];
    for (const dump of dumps) {
      const load = fixture.engine.load(own, Readable.from([Buffer.from(dump)]), { signal: STAYS });
      await assert.rejects(load, LoadFailed, dump);
    }
    assert.equal((await rowsOf('SELECT COUNT(*) AS n FROM kept'))[0]?.n, 1);
  });

  test('a fork under writers has views, triggers, routines and keys, and they work', async () => {
    const [from, to] = [newDatabase(), newDatabase()];
    for (const database of [from, to]) await fixture.engine.provision(database, SECRET);
    const session = await connectMysql(fixture.engine, from, SECRET);
    const statements = [
      'CREATE TABLE p (id int PRIMARY KEY, t text)',
      'CREATE TABLE c (id int PRIMARY KEY, p int, FOREIGN KEY (p) REFERENCES p (id))',
      "INSERT INTO p VALUES (1, 'a;\\nCREATE DEFINER=`x`@`y` VIEW')",
      'CREATE VIEW v AS SELECT p.id, o.t FROM p JOIN p o ON o.id = p.id',
      'CREATE TRIGGER tr BEFORE INSERT ON c FOR EACH ROW SET NEW.id = NEW.id + 100',
      'CREATE PROCEDURE pr() BEGIN INSERT INTO c VALUES (1, 1); END',
      'CREATE FUNCTION fu() RETURNS int RETURN (SELECT COUNT(*) FROM c)',
    ];
    for (const statement of statements) await session.query(statement);
    let isOver = false;
    const writing = (async () => {
      for (let i = 2; !isOver; i++) await session.query('INSERT INTO p VALUES (?, ?)', [i, 'x']);
    })();
    await fixture.engine.fork(from, to, STAYS);
    isOver = true;
    await writing;
    const copy = await connectMysql(fixture.engine, to, SECRET);
    const [kept] = await rowsOf('SELECT t FROM v WHERE id = 1', copy);
    assert.equal(kept?.t, 'a;\nCREATE DEFINER=`x`@`y` VIEW');
    await copy.query('CALL pr()');
    assert.deepEqual((await rowsOf('SELECT id FROM c', copy))[0]?.id, 101);
    assert.equal((await rowsOf('SELECT fu() AS n', copy))[0]?.n, 1);
    assert.match((await rowsOf('SHOW CREATE PROCEDURE pr', copy))[0]?.['Create Procedure'], /INSERT INTO c/);
    await refuses('INSERT INTO c VALUES (2, 1000000)', [1452], copy);
    const dump = await buffer((await fixture.engine.dump(to, 'sql', { signal: STAYS })).stream);
    assert.doesNotMatch(dump.toString(), /sandbox mode|DEFINER=`[uw]_|`d_/);
    for (const one of [session, copy]) one.destroy();
  });
});
