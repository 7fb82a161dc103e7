/** Views, programs and names of MySQL that MariaDB does not take as they are. */
// A process of its own: it starts servers.
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import type { Connection } from 'mysql2/promise';
import type { EngineDatabase } from '../../../../databases/engine.ts';
import { LeftOut } from '../../../../databases/left-out.ts';
import { connectMysql, type MysqlFixture, mysqlFixture, noMysql } from '../../../../testing/mysql-fixture.ts';
import { newDatabase } from '../../../../testing/new-database.ts';

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const { signal } = new AbortController();
const HEAD = `-- MySQL dump 10.13  Distrib 8.0.36, for Linux (x86_64)
--
-- Host: localhost    Database: shop
-- ------------------------------------------------------
-- Server version	8.0.36
/*!50503 SET NAMES utf8mb4 */;
`;
const END = '-- Dump completed on 2026-11-29 10:00:00\n';

/** A view as mysqldump writes it. */
const view = (name: string, query: string) => `/*!50001 CREATE ALGORITHM=UNDEFINED */
/*!50013 DEFINER=\`root\`@\`%\` SQL SECURITY DEFINER */
/*!50001 VIEW \`${name}\` AS ${query} */;
`;

describe('a load into MariaDB', { skip: noMysql }, () => {
  let fixture: MysqlFixture;
  let own: EngineDatabase;
  let client: Connection;

  before(async () => {
    fixture = mysqlFixture();
    own = newDatabase();
    await fixture.engine.provision(own, SECRET);
    client = await connectMysql(fixture.engine, own, SECRET);
  });
  after(async () => {
    client?.destroy();
    await fixture?.close();
  });

  async function load(dump: string, { isStrict = false } = {}): Promise<LeftOut> {
    const leftOut = new LeftOut();
    client.destroy();
    const how = isStrict ? { signal } : { signal, leftOut };
    await fixture.engine.load(own, Readable.from([Buffer.from(dump)]), how).finally(async () => {
      client = await connectMysql(fixture.engine, own, SECRET);
    });
    return leftOut;
  }
  const rows = async (sql: string) => (await client.query(sql))[0] as Record<string, unknown>[];

  test('leaves out views and programs that MariaDB refuses, and keeps the others', async () => {
    const dump = `${HEAD}CREATE TABLE \`t\` (\`id\` int PRIMARY KEY, \`j\` json);
INSERT INTO \`t\` VALUES (1,'{"a": "ä"}');
${view('a', 'select `g`.`n` AS `n` from `g`')}${view('g', 'select grouping(`t`.`id`) AS `n` from `t` group by `t`.`id` with rollup')}
CREATE VIEW z AS SELECT id FROM absent;
DELIMITER ;;
CREATE DEFINER=\`root\`@\`%\` PROCEDURE \`p\`()
BEGIN
  SELECT j->>'$.a' AS a, 'ä' AS b FROM shop.t;
END ;;
CREATE DEFINER=\`root\`@\`%\` PROCEDURE \`q\`()
BEGIN
  INSERT INTO t VALUES (1, 'é') AS new ON DUPLICATE KEY UPDATE j = new.j;
END ;;
/*!50003 CREATE*/ /*!50017 DEFINER=\`me\`@\`%\`*/ /*!50003 TRIGGER \`tr\` BEFORE INSERT ON \`t\` FOR EACH ROW
IF NEW.id MEMBER OF (NEW.j) THEN SET NEW.id = 0; END IF */;;
DELIMITER ;
`;
    const { notes } = await load(dump + END);
    const lines = dump.split('\n');
    const at = (text: string) => lines.findIndex((line) => line.includes(text)) + 1;
    const told = notes.map(({ line, reason }) => [line, reason.slice(0, 40)]);
    assert.deepEqual(told, [
      [at('PROCEDURE `p`'), 'the server has no such operator; its fun'],
      [at('VIEW `a`') - 2, "the server refuses it: Table 'g' doesn't"],
      [at('VIEW `g`') - 2, 'the server refuses it: FUNCTION grouping'],
      [at('VIEW z'), "the server refuses it: Table 'absent' do"],
      [at('PROCEDURE `q`'), 'MariaDB does not have this syntax, near '],
      [at('TRIGGER `tr`'), 'MariaDB does not have this syntax, near '],
    ]);
    const [[found]] = (await client.query('CALL p()')) as unknown as [[Record<string, unknown>[]]];
    assert.deepEqual(found, [{ a: 'ä', b: 'ä' }]);
    assert.equal((await rows('SHOW TABLES')).length, 1);
    // An error after them has its line in the file.
    const wrong = `${dump}INSERT INTO nothing VALUES (1);\n`;
    await assert.rejects(load(wrong + END), new RegExp(`at line ${lines.length}: .*nothing`));
    await assert.rejects(load(dump + END, { isStrict: true }), /1146|1305|1064/);
  });

  test('tells of views that lost what they need by a later statement', async () => {
    const stand = 'CREATE VIEW g AS SELECT 1 AS n;\nCREATE VIEW a AS SELECT n FROM g;\nDROP VIEW g;\n';
    const { notes } = await load(`${HEAD}CREATE TABLE t (id int);\n${stand}${END}`);
    assert.deepEqual(
      notes.map(({ text }) => text),
      ['VIEW a'],
    );
  });

  test('keeps what follows a view on its line, and what it cannot wrap', async () => {
    const dump = `${HEAD}CREATE TABLE t (id int);
CREATE VIEW a AS SELECT id FROM absent; INSERT INTO t VALUES (1);
`;
    await assert.rejects(load(dump + END), /absent/);
    const { notes } = await load(
      `${HEAD}CREATE TABLE t (id int);
CREATE VIEW a AS SELECT id, ';' AS b FROM t; INSERT INTO t VALUES (1);
SET sql_mode='ORACLE';
DELIMITER ;;
CREATE PROCEDURE p AS BEGIN SELECT id FROM a; END ;;
DELIMITER ;
SET sql_mode='';
CREATE VIEW b AS SELECT id, ';' AS b FROM absent;
${END}`,
    );
    assert.deepEqual(
      notes.map(({ line }) => line),
      [14],
    );
    assert.deepEqual(await rows('SELECT id, b FROM a'), [{ id: 1, b: ';' }]);
    assert.equal((await rows("SHOW PROCEDURE STATUS WHERE Name = 'p'")).length, 1);
  });

  test("runs nothing of the tenant's with the rights of others while it tries", async () => {
    const { notes } = await load(`${HEAD}CREATE TABLE seen (who text);
DELIMITER ;;
CREATE FUNCTION spy() RETURNS int DETERMINISTIC SQL SECURITY INVOKER
BEGIN
  IF CURRENT_USER() NOT RLIKE '^[utw]_' THEN SIGNAL SQLSTATE '45000'; END IF;
  INSERT INTO seen VALUES (CURRENT_USER());
  RETURN 1;
END ;;
DELIMITER ;
CREATE SQL SECURITY INVOKER VIEW v AS SELECT round(1.234, spy()) AS a;
CREATE VIEW g AS SELECT round(1.234, spy()) AS a, absent FROM seen;
CREATE VIEW h AS SELECT round(1.234, spy()) AS a FROM v;
CREATE OR REPLACE SQL SECURITY INVOKER VIEW v AS SELECT 1 AS b;
${END}`);
    assert.deepEqual(
      notes.map(({ line, text }) => [line, text.slice(0, 13)]),
      [[17, 'CREATE VIEW g']],
    );
    const users = (await rows('SELECT DISTINCT who FROM seen')).map(({ who }) => String(who));
    const rest = own.database.slice(2);
    assert.ok(users.length > 0);
    for (const who of users) assert.match(who, new RegExp(`^(?:[uw]_${rest}|t_\\w+)@`));
  });

  test('takes names of the database before other names, without CREATE DATABASE and USE', async () => {
    const { notes } = await load(`create table shop.t
(
    id int primary key,
    s varchar(20) null
);
create index t_s
    on shop.t (s);
insert into shop.t (id, s) values (1, 'shop.t');
CREATE VIEW shop.v AS SELECT shop.t.id FROM shop.t;
UPDATE shop.t SET id = 2 WHERE shop.t.id = 1;
`);
    assert.deepEqual(
      notes.map(({ line, text }) => [line, text]),
      [[1, 'shop.']],
    );
    assert.deepEqual(await rows('SELECT v.id, s FROM v JOIN t ON t.id = v.id'), [{ id: 2, s: 'shop.t' }]);
    await assert.rejects(load('CREATE TABLE a.t (i int);\nCREATE TABLE b.t (i int);\n'), /a and b/);
  });

  test('leaves out databases of the server, as --all-databases has them', async () => {
    const long = `(${Array.from({ length: 40_000 }, (_, at) => at).join('),(')})`;
    const { notes } = await load(`${HEAD}CREATE DATABASE \`mysql\`;
USE \`mysql\`;
CREATE TABLE \`help\` (
  \`a\` int
);
INSERT INTO \`help\` VALUES ${long};
CREATE DATABASE shop;
USE shop;
CREATE TABLE \`t\` (
  \`a\` int
) /*!50100 TABLESPACE \`innodb_system\` */ ENGINE=InnoDB;
INSERT INTO \`t\` VALUES ${long};
${END}`);
    assert.equal((await rows('SELECT count(*) AS n FROM t'))[0]?.n, 40_000);
    assert.equal((await rows('SHOW TABLES')).length, 1);
    assert.deepEqual(
      notes.map(({ line }) => line),
      [7, 8, 9, 12, 13, 14, 17],
    );
  });
});
