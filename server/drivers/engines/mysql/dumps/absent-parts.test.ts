/** Dumps with views of other databases, and with functions that this server does not have. */
// A process of its own: it starts servers.
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import type { EngineDatabase } from '../../../../databases/engine.ts';
import { LeftOut } from '../../../../databases/left-out.ts';
import { connectMysql, type MysqlFixture, mysqlFixture, noMysql } from '../../../../testing/mysql-fixture.ts';
import { newDatabase } from '../../../../testing/new-database.ts';
import { AbsentParts } from './absent-parts.ts';
import { usedNames } from './names/sql-parts.ts';

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const MYSQL = `-- MySQL dump 10.13  Distrib 8.0.36, for Linux (x86_64)
--
-- Host: localhost    Database: shop
/*!50503 SET NAMES utf8mb4 */;
`;
const END = '-- Dump completed on 2026-11-29 10:00:00\n';
/** Views of mysqldump: first with their columns alone, for views that need others. */
const standIn = (name: string) => `/*!50001 CREATE VIEW \`${name}\` AS SELECT \n 1 AS \`id\`*/;\n`;
const finalView = (name: string, query: string) => `/*!50001 DROP VIEW IF EXISTS \`${name}\`*/;
/*!50001 CREATE ALGORITHM=UNDEFINED */
/*!50013 DEFINER=\`root\`@\`localhost\` SQL SECURITY DEFINER */
/*!50001 VIEW \`${name}\` AS ${query} */;
`;

test('names of a query are found where they name tables, databases and routines', () => {
  for (const [query, databases, tables] of [
    ['AS select `o`.`x`.`id` AS `id` from `o`.`x`', ['o'], []],
    [
      'as select t.a from t join (o.x y join z) on t.a = y.b, p.q where t.a in (select k.m from k)',
      ['o', 'p'],
      ['t', 'z', 'k'],
    ],
    ["as select extract(day from t.at), trim('x' from t.a), 'from o.x' from t -- from o.x", [], ['t']],
    ['as select `far`.`f`(`t`.`a`), 1.5, t.a from (`t`)', ['far'], ['t']],
    ['as select 1 from t where exists(select 1 from `o`.`x`) union select a, b.c from b', ['o'], ['t', 'b']],
    ['as select t.a, s.b from t, s left join `a.b` on t.a = s.b order by t.a, s.b', [], ['t', 's', 'a.b']],
  ] as const) {
    const used = usedNames(query);
    assert.deepEqual([[...used.databases], [...used.tables]], [databases, tables], query);
  }
});

test('a view may call a function of the dump that has the name of one of MySQL', () => {
  const leftOut = new LeftOut();
  const parts = new AbsentParts({
    leftOut,
    absentFunctions: new Set(['is_uuid', 'st_geohash']),
    databases: new Set(),
  });
  const at = { line: 1, isFirst: true, isLast: true, delimiter: ';' };
  parts.take('CREATE FUNCTION `is_uuid`(a text) RETURNS int RETURN 5;\n', at);
  const view = (name: string) => `CREATE VIEW v AS SELECT ${name}(id) AS five FROM t;\n`;
  assert.deepEqual([parts.take(view('is_uuid'), at), leftOut.count], [view('is_uuid'), 0]);
  assert.deepEqual([parts.take(view('st_geohash'), at), leftOut.count], ['\n', 1]);
});

describe('a load into MariaDB', { skip: noMysql }, () => {
  let fixture: MysqlFixture;
  let own: EngineDatabase;

  before(async () => {
    fixture = mysqlFixture();
    own = newDatabase();
    await fixture.engine.provision(own, SECRET);
  });
  after(() => fixture?.close());

  /** Lines, texts and reasons of what was left out. */
  async function load(dump: string, isStrict = false): Promise<(readonly [number | null, string, string])[]> {
    const leftOut = new LeftOut();
    const { signal } = new AbortController();
    const how = isStrict ? { signal } : { signal, leftOut };
    await fixture.engine.load(own, Readable.from([Buffer.from(dump)]), how);
    return leftOut.notes.map(({ line, text, reason }) => [line, text, reason]);
  }

  async function rows(sql: string): Promise<Record<string, unknown>[]> {
    const client = await connectMysql(fixture.engine, own, SECRET);
    try {
      return (await client.query(sql))[0] as Record<string, unknown>[];
    } finally {
      client.destroy();
    }
  }

  const namesOf = async (kind: string) =>
    (
      await rows(
        `SELECT table_name AS n FROM information_schema.tables WHERE table_schema = DATABASE() AND table_type = '${kind}' ORDER BY 1`,
      )
    ).map(({ n }) => n);

  test('leaves out views that read other databases, and those that need them, wherever they stand', async () => {
    const table = 'CREATE TABLE `t` (\n  `id` int NOT NULL\n) ENGINE=InnoDB;\nINSERT INTO `t` VALUES (7);\n';
    const views = ['a', 'far', 'kept', 'needs_a'];
    const dump =
      MYSQL +
      table +
      views.map(standIn).join('') +
      finalView('a', 'select `far`.`id` AS `id` from `far`') +
      finalView(
        'far',
        'select `o`.`x`.`id` AS `id` from `other`.`x` `o`'.replace('`o`.`x`.`id`', '`o`.`id`'),
      ) +
      finalView('kept', "select `t`.`id` AS `id`,'from `other`.`x`' AS `said` from `t`") +
      finalView('needs_a', 'select `t`.`id` AS `id` from (`t` join `a` on((`t`.`id` = `a`.`id`)))') +
      END;
    const lines = dump.split('\n');
    const lineOf = (name: string) =>
      lines.findIndex((line) => line.includes(`VIEW \`${name}\` AS select`)) - 1;
    for (const text of [dump, dump.replaceAll('\n', '\r\n')]) {
      const notes = await load(text);
      assert.deepEqual(
        notes.map(([line, , reason]) => [line, reason]),
        [
          [lineOf('far'), 'the database other is not in the file'],
          [lineOf('a'), 'it needs the view far, which is left out'],
          [lineOf('needs_a'), 'it needs the view a, which is left out'],
        ],
      );
      assert.deepEqual(await namesOf('VIEW'), ['kept']);
      assert.deepEqual(await rows('SELECT * FROM kept'), [{ id: 7, said: 'from `other`.`x`' }]);
    }
    await assert.rejects(load(dump, true), /ERROR \d+ .*at line/);
    assert.deepEqual(await namesOf('VIEW'), ['kept']);
  });

  test('keeps views that read test databases, which the account has on its server', async () => {
    await rows('CREATE DATABASE IF NOT EXISTS test_far');
    await rows('CREATE TABLE test_far.x (id int)');
    await load(
      'CREATE TABLE t (id int);\nCREATE VIEW v AS SELECT x.id FROM test_far.x JOIN t ON t.id = x.id;\n',
    );
    const { signal } = new AbortController();
    const dump = await fixture.engine.dump(own, 'sql', { signal });
    const text = await buffer(dump.stream as Readable);
    assert.deepEqual(await load(text.toString()), []);
    assert.deepEqual(await namesOf('VIEW'), ['v']);
    const gone = await load(text.toString().replaceAll('test_far', 'test_gone'));
    assert.deepEqual(
      gone.map(([, , reason]) => reason),
      ['the database test_gone is not in the file'],
    );
  });

  test('takes views of phpMyAdmin and of people, over several lines', async () => {
    const notes = await load(`-- phpMyAdmin SQL Dump
-- Database: \`shop\`
CREATE TABLE \`t\` (\`id\` int(11) NOT NULL, \`at\` datetime DEFAULT NULL) ENGINE=InnoDB;
CREATE TABLE \`far\` (
\`id\` int(11)
);
DROP TABLE IF EXISTS \`far\`;
CREATE ALGORITHM=UNDEFINED DEFINER=\`root\`@\`localhost\` SQL SECURITY DEFINER VIEW \`far\`  AS SELECT
  x.id
FROM t
  JOIN crm.people x ON x.id = t.id ;
create view days as
select extract(day from t.at) as day, table_name from t, information_schema.tables
where table_name = 'TABLES';
CREATE OR REPLACE VIEW uuids AS SELECT is_uuid(t.at) AS is_one FROM t;
`);
    assert.deepEqual(
      notes.map(([line, , reason]) => [line, reason]),
      [
        [8, 'the database crm is not in the file'],
        [15, 'the server does not have the function is_uuid()'],
      ],
    );
    assert.match(notes[0]?.[1] ?? '', /^CREATE .*VIEW `far` AS SELECT x\.id FROM t/);
    assert.deepEqual(await namesOf('VIEW'), ['days']);
    assert.deepEqual(await namesOf('BASE TABLE'), ['t']);
  });

  test('leaves out constraints, expressions and defaults with functions of MySQL, and tells', async () => {
    const table = `CREATE TABLE \`t\` (
  \`id\` int NOT NULL,
  \`doc\` json DEFAULT NULL CHECK (json_schema_valid('{"type":"object"}',\`doc\`)) COMMENT 'is_uuid(x), (',
  \`size\` int GENERATED ALWAYS AS (json_storage_size(\`doc\`)) STORED NOT NULL,
  \`twice\` int GENERATED ALWAYS AS ((\`id\` * 2)) VIRTUAL,
  \`hash\` varchar(20) DEFAULT (st_geohash(1,2,3)),
  PRIMARY KEY (\`id\`),
  KEY \`by_size\` (\`size\`),
  CONSTRAINT \`small\` CHECK (\`id\` < 100),
  CONSTRAINT \`valid\` CHECK (
    json_schema_valid('{"required":["a"]}', \`doc\`)
  )
) ENGINE=InnoDB;
ALTER TABLE \`t\` ADD CONSTRAINT \`one\` CHECK (is_uuid(\`hash\`));
INSERT INTO \`t\` (\`id\`, \`doc\`) VALUES (1,'{"is_uuid(":1}');
`;
    const NOT = 'the server does not have the function';
    const wanted = [
      [4, 'NOT NULL', 'generated columns cannot be NOT NULL on this server'],
      [3, 'CHECK (json_schema_valid(\'{"type":"object"}\',`doc`))', `${NOT} json_schema_valid()`],
      [
        4,
        'GENERATED ALWAYS AS (json_storage_size(`doc`)) STORED',
        `${NOT} json_storage_size(); the column stays, without values`,
      ],
      [6, 'DEFAULT (st_geohash(1,2,3))', `${NOT} st_geohash()`],
      [
        10,
        'CONSTRAINT `valid` CHECK ( json_schema_valid(\'{"required":["a"]}\', `doc`) )',
        `${NOT} json_schema_valid()`,
      ],
      [14, 'ALTER TABLE `t` ADD CONSTRAINT `one` CHECK (is_uuid(`hash`));', `${NOT} is_uuid()`],
    ];
    for (const text of [table, table.replaceAll('\n', '\r\n')]) {
      assert.deepEqual(await load(text), wanted);
      assert.deepEqual(await rows('SELECT id, size, twice, hash FROM t'), [
        { id: 1, size: null, twice: 2, hash: null },
      ]);
      const [made] = await rows('SHOW CREATE TABLE t');
      assert.match(
        String(made?.['Create Table']),
        /COMMENT 'is_uuid\(x\), \('[\s\S]*KEY `by_size`[\s\S]*`small` CHECK/,
      );
    }
    await assert.rejects(load(table, true), /json_schema_valid/);
    const wrong = table.replace('`id` < 100', '`id` <');
    await assert.rejects(load(wrong), /ERROR 1064 \(42000\) at line 1: /);
  });

  test('takes lines and statements that are too long to be looked at', async () => {
    const long = `CREATE TABLE t (a varchar(9) DEFAULT 'x' COMMENT 'c',\n${' '.repeat(300_000)}b int);\n`;
    await load(long);
    const many = Array.from({ length: 900 }, (_, at) => `  c${at} int${' '.repeat(300)}`);
    await load(`CREATE TABLE t (\n${many.join(',\n')}\n);\nINSERT INTO t (c1) VALUES (5);\n`);
    assert.equal((await rows('SELECT c1 FROM t'))[0]?.c1, 5);
    await load('CREATE TABLE t (a int);\nCREATE VIEW v AS SELECT a FROM t');
    assert.deepEqual(await namesOf('VIEW'), ['v']);
  });
});
