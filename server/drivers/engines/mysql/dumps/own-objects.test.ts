/** Objects of a tenant that must not make our work on the database fail, nor run with our rights. */
// A process of its own: it starts servers.
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import type { Connection, RowDataPacket } from 'mysql2/promise';
import type { Engine, EngineDatabase } from '../../../../databases/engine.ts';
import {
  connectMysql,
  externalMysqlFixture,
  mysqlFixture,
  noMysql,
} from '../../../../testing/mysql-fixture.ts';
import { newDatabase } from '../../../../testing/new-database.ts';
import { grantsOf, operatorMysql } from '../../../../testing/operator-mysql.ts';
import { serverAddress } from '../../../managed-server/links/server-url.ts';

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const { signal } = new AbortController();

/** Our own server, and one of an operator with the rights that Cloudlet asks for. */
const SERVERS = [
  ['on our server', async () => mysqlFixture()],
  [
    "on an operator's server",
    async () => {
      const server = await operatorMysql();
      for (const sql of ["CREATE USER maker@'%' IDENTIFIED BY 'secret'", ...grantsOf("maker@'%'")])
        await server.run(sql);
      const fixture = externalMysqlFixture(
        serverAddress('CLOUDLET_MYSQL_URL', server.url('maker', 'secret'), 3306),
      );
      const close = async () => {
        await fixture.close();
        await server.close();
      };
      return { engine: fixture.engine, close };
    },
  ],
] as const;

for (const [where, open] of SERVERS)
  describe(`objects of a tenant ${where}`, { skip: noMysql }, () => {
    let fixture: { readonly engine: Engine & Parameters<typeof connectMysql>[0]; close(): Promise<void> };
    let own: EngineDatabase;
    let client: Connection;
    before(async () => {
      fixture = await open();
    });
    after(() => fixture?.close());

    const begin = async () => {
      own = newDatabase();
      await fixture.engine.provision(own, SECRET);
      client = await connectMysql(fixture.engine, own, SECRET);
    };
    const end = async () => {
      client.destroy();
      await fixture.engine.drop(own.database);
    };
    const run = async (...statements: readonly string[]) => {
      for (const statement of statements) await client.query(statement);
    };
    const rows = async (sql: string, on = client) => (await on.query<RowDataPacket[]>(sql))[0];
    const dumped = async () => {
      const { stream } = await fixture.engine.dump(own, 'sql', { signal });
      return (await buffer(stream as Readable)).toString();
    };
    /** A new database with that dump; without one, a fork. */
    const withCopy = async (dump: string | null, look: (copy: Connection) => Promise<void>) => {
      const to = newDatabase();
      await fixture.engine.provision(to, SECRET);
      if (dump === null) await fixture.engine.fork(own, to, signal);
      else await fixture.engine.load(to, Readable.from([Buffer.from(dump)]), { signal });
      const copy = await connectMysql(fixture.engine, to, SECRET);
      try {
        await look(copy);
      } finally {
        copy.destroy();
        await fixture.engine.drop(to.database);
      }
    };

    test('views that call functions, stand on views, and have odd names are in dumps and forks', async () => {
      await begin();
      await run(
        'CREATE TABLE t (a int, `x``y ü` text)',
        "INSERT INTO t VALUES (1, 'one')",
        'CREATE TABLE `V1` (a int)',
        'INSERT INTO `V1` VALUES (7)',
        'CREATE FUNCTION f(n int) RETURNS int RETURN n + 5',
        'CREATE PROCEDURE p() SELECT f(2) AS a',
        'CREATE VIEW z AS SELECT f(t.a) AS a, `x``y ü` AS b FROM t',
        'CREATE SQL SECURITY INVOKER VIEW y AS SELECT f(z.a) AS a FROM (SELECT a FROM z WHERE a < 100) z',
        `CREATE VIEW v1 AS SELECT y.a, "\`${own.database}\`. it's */ ; ü" AS b FROM ${own.database}.y
         WHERE y.a IN (SELECT o.a FROM z JOIN y o ON o.a > z.a)`,
        'CREATE VIEW checked AS SELECT a FROM t WHERE a < 5 WITH LOCAL CHECK OPTION',
        "SET NAMES latin1, collation_connection = 'latin1_german1_ci'",
        "CREATE VIEW `--é ``b.c` AS SELECT 'x' AS a, COLLATION('x') AS c, a AS n FROM v1 UNION ALL SELECT '', '', 0",
        'SET NAMES utf8mb4',
        'CREATE VIEW late AS SELECT 1 AS a',
        'CREATE OR REPLACE ALGORITHM=MERGE VIEW a_first AS SELECT l.a FROM late l LEFT JOIN V1 ON l.a = V1.a',
      );
      const views = ['checked', 'z', 'y', 'v1', '`--é ``b.c`', 'late', 'a_first'];
      const shown = async (on: Connection) => {
        const all: unknown[] = [];
        for (const view of views) {
          const [made] = await rows(`SHOW CREATE VIEW ${view}`, on);
          const text = String(made?.['Create View']).replaceAll(/DEFINER=\S+ |`d_\w+`\.(?! it)/g, '');
          all.push(text.replace(/`d_\w+`\. it/, '`d`. it'), await rows(`SELECT * FROM ${view}`, on));
        }
        return [all, await rows('SELECT * FROM V1', on), (await on.query('CALL p()'))[0]];
      };
      const wanted = await shown(client);
      const dump = await dumped();
      assert.doesNotMatch(dump, /DEFINER=/);
      for (const from of [dump, null])
        await withCopy(from, async (copy) => assert.deepEqual(await shown(copy), wanted));
      await end();
    });

    test('views that are broken are comments of a dump, and the rest is there', async () => {
      await begin();
      await run(
        'CREATE TABLE gone (a int)',
        'CREATE FUNCTION f() RETURNS int RETURN 5',
        'CREATE FUNCTION kept() RETURNS int RETURN 6',
        'CREATE VIEW by_table AS SELECT a FROM gone',
        'CREATE VIEW by_view AS SELECT a FROM by_table',
        'CREATE VIEW by_function AS SELECT f() AS a',
        'CREATE VIEW fine AS SELECT kept() AS a',
      );
      // Nothing but views is left.
      await run('DROP TABLE gone', 'DROP FUNCTION f');
      const dump = await dumped();
      assert.match(dump, /^-- View `by_function` could not be created again: .*\n-- CREATE .*`f`\(\)/m);
      for (const from of [dump, null])
        await withCopy(from, async (copy) => {
          const found = await rows('SHOW FULL TABLES', copy);
          assert.deepEqual(
            found.map((row) => Object.values(row)[0]),
            ['fine'],
          );
          assert.deepEqual(await rows('SELECT a FROM fine', copy), [{ a: 6 }]);
        });
      await end();
    });

    test('sequences, older rows, modes and collations of routines do not make a load fail', async () => {
      await begin();
      await run(
        'CREATE SEQUENCE s START WITH 5',
        "CREATE TABLE t (a int DEFAULT nextval(s) COMMENT 'DEFAULT nextval(s)', b int CHECK (b < 5))",
        'INSERT INTO t (b) VALUES (1)',
        'SET check_constraint_checks = 0',
        'INSERT INTO t (b) VALUES (9)',
        'SET check_constraint_checks = 1',
        'CREATE SEQUENCE short_lived',
        'CREATE TABLE left_over (a int DEFAULT nextval(short_lived), b int)',
        'INSERT INTO left_over VALUES (3, 4)',
        'DROP SEQUENCE short_lived',
        "SET sql_mode = 'ORACLE'",
        'CREATE PACKAGE pack AS FUNCTION one RETURN int; END',
        'CREATE PACKAGE BODY pack AS FUNCTION one RETURN int AS BEGIN RETURN 1; END; END',
        'CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.b = COALESCE(NEW.b, 2)',
        'SET sql_mode = DEFAULT',
        `ALTER DATABASE ${own.database} CHARACTER SET latin1`,
        'CREATE FUNCTION narrow(a text) RETURNS text RETURN COLLATION(a)',
        `ALTER DATABASE ${own.database} CHARACTER SET utf8mb4`,
      );
      await withCopy(await dumped(), async (copy) => {
        await copy.query('INSERT INTO t () VALUES ()');
        await assert.rejects(copy.query('INSERT INTO t (b) VALUES (9)'), { errno: 4025 });
        const [first, second, third] = await rows('SELECT a, b FROM t ORDER BY a', copy);
        assert.deepEqual([first, second, third?.b], [{ a: 5, b: 1 }, { a: 6, b: 9 }, 2]);
        assert.deepEqual(await rows('SELECT a, b FROM left_over', copy), [{ a: 3, b: 4 }]);
        await copy.query("SET sql_mode = 'ORACLE'");
        assert.deepEqual(await rows("SELECT pack.one() AS a, narrow('x') AS b", copy), [
          { a: 1, b: 'latin1_swedish_ci' },
        ]);
      });
      await end();
    });

    test('no function of a tenant runs with the rights of others', async () => {
      await begin();
      await run(
        'CREATE TABLE seen (who text)',
        `CREATE FUNCTION spy() RETURNS int DETERMINISTIC SQL SECURITY INVOKER
         BEGIN INSERT INTO seen VALUES (CURRENT_USER()); RETURN 1; END`,
        'CREATE SQL SECURITY INVOKER VIEW as_invoker AS SELECT round(1.234, spy()) AS a',
        'CREATE SQL SECURITY DEFINER VIEW as_definer AS SELECT round(1.234, spy()) AS a',
        'DELETE FROM seen',
      );
      const measured = await fixture.engine.measure({ ...own, sizeLimitBytes: 0 });
      assert.ok(measured.sizeBytes > 0);
      await withCopy(null, async () => {});
      const dump = await dumped();
      await fixture.engine.load(own, Readable.from([Buffer.from(dump)]), { signal });
      const session = await connectMysql(fixture.engine, own, SECRET);
      const rest = own.database.slice(2);
      const others = (await rows('SELECT who FROM seen', session)).filter(
        ({ who }) => !new RegExp(`^(?:[uw]_${rest}|t_\\w+)@`).test(String(who)),
      );
      session.destroy();
      assert.deepEqual(others, []);
      await end();
    });
  });
