/**
 * Dumps made by programs elsewhere: statements that this server or tenant cannot run are skipped and
 * reported.
 */
// Its own process: it starts servers.
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import type { Connection } from 'mysql2/promise';
import { type EngineDatabase, LoadFailed } from '../../../../databases/engine.ts';
import { LeftOut } from '../../../../databases/left-out.ts';
import { connectMysql, type MysqlFixture, mysqlFixture, noMysql } from '../../../../testing/mysql-fixture.ts';
import { newDatabase } from '../../../../testing/new-database.ts';

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const { signal } = new AbortController();

/** Lines of mysqldump 8.0.36 with --databases, --routines and --set-gtid-purged, and the reported ones. */
const FOREIGN = `mysqldump: [Warning] Using a password on the command line interface can be insecure.
-- MySQL dump 10.13  Distrib 8.0.36, for Linux (x86_64)
--
-- Host: localhost    Database: shop
-- ------------------------------------------------------
-- Server version	8.0.36

/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!50503 SET NAMES utf8mb4 */;
/*!40103 SET TIME_ZONE='+00:00' */;
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
SET @MYSQLDUMP_TEMP_LOG_BIN = @@SESSION.SQL_LOG_BIN;
SET @@SESSION.SQL_LOG_BIN= 0;

--
-- GTID state at the beginning of the backup
--

SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5,
4e11fa47-71ca-11e1-9e33-c80aa9429562:1-7';

/*!40000 DROP DATABASE IF EXISTS \`shop\`*/;

CREATE DATABASE /*!32312 IF NOT EXISTS*/ \`shop\` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci */ /*!80016 DEFAULT ENCRYPTION='N' */;

USE \`shop\`;

DROP TABLE IF EXISTS \`goods\`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE \`goods\` (
  \`id\` int NOT NULL AUTO_INCREMENT,
  \`name\` varchar(50) COLLATE utf8mb4_de_pb_0900_as_cs DEFAULT NULL COMMENT 'was utf8mb4_0900_ai_ci; /*!80023 INVISIBLE */',
  \`code\` varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin DEFAULT NULL,
  \`low\` varchar(50) GENERATED ALWAYS AS (lower(\`name\`)) STORED NOT NULL,
  \`hidden\` int DEFAULT '7' /*!80023 INVISIBLE */,
  PRIMARY KEY (\`id\`),
  KEY \`by_name\` (\`name\`) /*!80000 INVISIBLE */
) ENGINE=InnoDB AUTO_INCREMENT=3 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES \`goods\` WRITE;
/*!40000 ALTER TABLE \`goods\` DISABLE KEYS */;
INSERT INTO \`goods\` (\`id\`, \`name\`, \`code\`) VALUES (1,'utf8mb4_0900_ai_ci /*!80023 INVISIBLE */','a;\\nUSE x;'),(2,'GRANT','b');
/*!40000 ALTER TABLE \`goods\` ENABLE KEYS */;
UNLOCK TABLES;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET collation_connection  = utf8mb4_0900_ai_ci */ ;
ALTER DATABASE \`shop\` CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci ;
DELIMITER ;;
CREATE DEFINER=\`root\`@\`%\` PROCEDURE \`p\`()
BEGIN
  SELECT COUNT(*) AS n FROM goods WHERE name = 'x' COLLATE utf8mb4_0900_ai_ci;
END ;;
DELIMITER ;
CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='binlog.000002', SOURCE_LOG_POS=157;
GRANT SELECT ON shop.* TO 'reader'@'%';
FLUSH PRIVILEGES;
SET @@SESSION.SQL_LOG_BIN = @MYSQLDUMP_TEMP_LOG_BIN;
/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;

-- Dump completed on 2026-11-29 10:00:00
`;
const TOLD = [
  'mysqldump: [Warning]',
  'SET @@SESSION.SQL_LOG_BIN= 0',
  'SET @@GLOBAL.GTID_PURGED',
  '/*!40000 DROP DATABASE',
  'CREATE DATABASE',
  'USE `shop`',
  'utf8mb4_de_pb_0900_as_cs',
  'utf8mb4_0900_bin',
  'NOT NULL',
  'utf8mb4_0900_ai_ci',
];

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

  async function load(dump: string | Buffer, { isStrict = false, pieceBytes = 1000 } = {}): Promise<LeftOut> {
    const all = Buffer.from(dump);
    const leftOut = new LeftOut();
    const pieces = Array.from({ length: Math.ceil(all.length / pieceBytes) }, (_, at) =>
      all.subarray(at * pieceBytes, (at + 1) * pieceBytes),
    );
    client.destroy();
    const loading = fixture.engine.load(
      own,
      Readable.from(pieces),
      isStrict ? { signal } : { signal, leftOut },
    );
    await loading.finally(async () => {
      client = await connectMysql(fixture.engine, own, SECRET);
    });
    return leftOut;
  }

  const rows = async (sql: string) => (await client.query(sql))[0] as Record<string, unknown>[];
  const GOODS = [
    {
      id: 1,
      name: 'utf8mb4_0900_ai_ci /*!80023 INVISIBLE */',
      code: 'a;\nUSE x;',
      low: 'utf8mb4_0900_ai_ci /*!80023 invisible */',
    },
    { id: 2, name: 'GRANT', code: 'b', low: 'grant' },
  ];

  test('of MySQL 8 leaves out and tells what is not here, and nothing else', async () => {
    const { count, notes } = await load(FOREIGN, { pieceBytes: 50 });
    const lines = FOREIGN.split('\n');
    for (const [at, text] of TOLD.entries()) {
      const note = notes[at];
      assert.ok(note?.text.startsWith(text), `${text}: ${JSON.stringify(note)}`);
      assert.ok(lines[(note?.line ?? 0) - 1]?.includes(text), JSON.stringify(note));
    }
    assert.equal(count, TOLD.length + 5);
    assert.deepEqual(await rows('SELECT * FROM goods ORDER BY id'), GOODS);
    assert.equal((await rows('SELECT hidden FROM goods'))[0]?.hidden, 7);
    const [made] = await rows('SHOW CREATE TABLE goods');
    const sql = String(made?.['Create Table']);
    assert.match(sql, /utf8mb4_uca1400_german2_nopad_as_cs.*COMMENT 'was utf8mb4_0900_ai_ci; /);
    assert.match(sql, /COLLATE=utf8mb4_uca1400_nopad_ai_ci/);
    assert.match(sql, /KEY `by_name` \(`name`\) IGNORED/);
    await client.query('CALL p()');
  });

  test('takes one long line without its end, and no file without content', async () => {
    await load(`CREATE TABLE t (a int) AS SELECT 1 AS a${' UNION ALL SELECT 1'.repeat(20_000)}`);
    assert.deepEqual(await rows('SELECT sum(a) AS n FROM t'), [{ n: '20001' }]);
    for (const text of ['\n-- nothing\n# more\n/* at all */\n', ' '.repeat(300_000), '/* never ended'])
      await assert.rejects(load(text), /empty: it has no statement/);
    await assert.rejects(load(Buffer.alloc(5000)), /not SQL: it contains NUL bytes/);
    await assert.rejects(load(Buffer.alloc(500_000), { pieceBytes: 400_000 }), /not SQL/);
    assert.deepEqual(await rows('SELECT sum(a) AS n FROM t'), [{ n: '20001' }]);
  });

  test('of MySQL 8 leaves out indexes of expressions and compression, wherever they stand', async () => {
    const begin = '-- MySQL dump 10.13  Distrib 8.4.3, for Linux (x86_64)\n';
    const keys = {
      // As SHOW CREATE TABLE of MySQL 8.4 writes them.
      lower: '  KEY `lower` ((lower(`a`)))',
      mixed: '  UNIQUE KEY `mi``xed` (`id`,`a`(3) DESC,(cast(`m` as unsigned array)))',
      plain: '  KEY `plain` (`a`(3),`id`)',
    };
    const all = [keys.lower, keys.mixed, keys.plain];
    for (const list of [all, all.toReversed(), [keys.lower, keys.plain, keys.mixed], [keys.lower]]) {
      const elements = ["  `id` int DEFAULT '1'", "  `a` varchar(20) COMMENT 'KEY `x` ((a)),'", '  `m` json'];
      const table = `CREATE TABLE \`t\` (\n${[...elements, ...list].join(',\n')}\n) ENGINE=InnoDB COMPRESSION='zlib' COMMENT='a COMPRESSION=b';\n`;
      const data = 'INSERT INTO `t` (`id`) VALUES (7),\n(8);\n-- Dump completed on 2026-11-29 10:00:00\n';
      for (const text of [begin + table + data, (begin + table + data).replaceAll('\n', '\r\n')]) {
        const { notes } = await load(text);
        const gone = list.filter((key) => key !== keys.plain).map((key) => key.trim());
        assert.deepEqual(
          notes.map((note) => note.text),
          [...gone, "COMPRESSION='zlib'"],
        );
        for (const note of notes) assert.ok(text.split('\n')[(note.line ?? 0) - 1]?.includes(note.text));
        const [made] = await rows('SHOW CREATE TABLE t');
        const sql = String(made?.['Create Table']);
        assert.match(sql, /COMMENT='a COMPRESSION=b'/);
        assert.equal(sql.includes('KEY `plain`'), list.includes(keys.plain));
        assert.deepEqual(await rows('SELECT id FROM t ORDER BY id'), [{ id: 7 }, { id: 8 }]);
      }
    }
    await load(FOREIGN);
  });

  test('of MySQL 8 has other functions and options where MariaDB has none of its own', async () => {
    const table = `CREATE TABLE \`t\` (
  \`id\` binary(16) NOT NULL DEFAULT (uuid_to_bin(uuid(),1)) COMMENT 'bin_to_uuid(\`id\`)',
  \`shown\` varchar(36) GENERATED ALWAYS AS (bin_to_uuid(\`id\`)) VIRTUAL,
  \`swapped\` varchar(36) GENERATED ALWAYS AS (bin_to_uuid(\`id\`,true)) STORED,
  \`n\` int NOT NULL /*!80023 INVISIBLE */,
  \`gb\` varchar(20) CHARACTER SET gb18030 COLLATE gb18030_chinese_ci DEFAULT NULL,
  \`ja\` text CHARACTER SET utf8mb4 COLLATE utf8mb4_ja_0900_as_cs_ks,
  FULLTEXT KEY \`ft\` (\`ja\`) /*!50100 WITH PARSER \`ngram\` */ ,
  CONSTRAINT \`small\` CHECK ((\`n\` < 3)) /*!80016 NOT ENFORCED */
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 /*!80021 AUTOEXTEND_SIZE=4M */ SECONDARY_ENGINE=RAPID;
INSERT INTO \`t\` (\`id\`,\`n\`) VALUES (0x00112233445566778899AABBCCDDEEFF,7);
/*!50001 CREATE ALGORITHM=UNDEFINED */
/*!50013 DEFINER=\`root\`@\`localhost\` SQL SECURITY DEFINER */
/*!50001 VIEW \`v\` AS select bin_to_uuid(\`t\`.\`id\`) AS \`bin_to_uuid(t.id)\` from \`t\` */;
ANALYZE TABLE \`t\` UPDATE HISTOGRAM ON \`n\` WITH 100 BUCKETS;
`;
    // With its header, and as \`--compact\` begins.
    for (const begin of [
      FOREIGN.slice(0, FOREIGN.indexOf('SET @MYSQLDUMP')),
      '/*!50503 SET NAMES utf8mb4 */;\n',
    ]) {
      const end = begin.length > 100 ? '-- Dump completed on 2026-11-29 10:00:00\n' : '';
      const { count } = await load(begin + table + end, { pieceBytes: 70 });
      assert.equal(count, begin.length > 100 ? 13 : 12);
      const [row] = await rows('SELECT shown, swapped, n FROM t');
      assert.deepEqual(row, {
        shown: '00112233-4455-6677-8899-aabbccddeeff',
        swapped: '44556677-2233-0011-8899-aabbccddeeff',
        n: 7,
      });
      assert.deepEqual(await rows('SELECT * FROM v'), [{ 'bin_to_uuid(t.id)': row?.shown }]);
      await client.query('INSERT INTO t (n) VALUES (1)');
      const [made] = await rows('SHOW CREATE TABLE t');
      assert.match(String(made?.['Create Table']), /COMMENT 'bin_to_uuid\(`id`\)'/);
    }
    await load(FOREIGN);
  });

  test('has other functions for regexp_like of MySQL 8 and uuid_v7 of MariaDB 11.7', async () => {
    const dump = `CREATE TABLE \`t\` (
  \`id\` uuid NOT NULL DEFAULT uuid_v7() COMMENT 'uuid_v7()',
  \`a\` varchar(20) DEFAULT NULL,
  \`is_x\` int GENERATED ALWAYS AS (regexp_like(\`a\`,_utf8mb4'^x(y|z)')) VIRTUAL,
  CONSTRAINT \`low\` CHECK ((not(regexp_like(\`a\`,_utf8mb4'[0-9]'))))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
/*!50001 VIEW \`v\` AS select regexp_like(\`t\`.\`a\`,'z$') AS \`ends\` from \`t\` */;
`.replace('/*!50001 VIEW', '/*!50001 CREATE */\n/*!50001 VIEW');
    const { notes } = await load(dump);
    assert.deepEqual(
      notes.map(({ line, text }) => [line, text]),
      [
        [2, 'uuid_v7()'],
        [4, "regexp_like(`a`,_utf8mb4'^x(y|z)')"],
        [5, "regexp_like(`a`,_utf8mb4'[0-9]')"],
        [8, "regexp_like(`t`.`a`,'z$')"],
      ],
    );
    await client.query("INSERT INTO t (a) VALUES ('xz')");
    assert.deepEqual(await rows('SELECT length(id) AS n, is_x, ends FROM t, v'), [
      { n: 36, is_x: 1, ends: 1 },
    ]);
    await assert.rejects(client.query("INSERT INTO t (a) VALUES ('x1')"), /low/);
    await load(FOREIGN);
  });

  test('of programs that write the name of the database before each name', async () => {
    const name = '`shop`';
    const dump = `CREATE SCHEMA IF NOT EXISTS ${name} DEFAULT CHARACTER SET utf8 ;
USE ${name} ;
CREATE TABLE IF NOT EXISTS ${name}.\`t\` (
  \`id\` INT NOT NULL,
  \`name\` VARCHAR(45) NULL COMMENT '${name}.\`x\`',
  PRIMARY KEY (\`id\`),
  UNIQUE INDEX \`u\` (\`name\` ASC) INVISIBLE)
ENGINE = InnoDB;
CREATE TABLE ${name}.\`kids\` (\`of\` INT NOT NULL, FOREIGN KEY (\`of\`) REFERENCES ${name}.\`t\` (\`id\`));
INSERT INTO ${name}.\`t\` VALUES (1,"${name}.\`t\`"),
(2,'b');
`;
    const long = Array.from({ length: 20_000 }, (_, at) => `(${at + 9},'${name}.\`t\` ${at}')`).join();
    await load(`${dump}INSERT INTO ${name}.\`t\` VALUES ${long};\n`);
    assert.deepEqual(await rows('SELECT name FROM t WHERE id < 10 ORDER BY id'), [
      { name: '`shop`.`t`' },
      { name: 'b' },
      { name: '`shop`.`t` 0' },
    ]);
    assert.equal((await rows('SELECT count(*) AS n FROM t'))[0]?.n, 20_002);
    const [made] = await rows('SHOW CREATE TABLE t');
    assert.match(String(made?.['Create Table']), /COMMENT '`shop`\.`x`'[\s\S]* IGNORED/);
    // The client passes over a file that makes nothing without a word.
    for (const text of ['/*'.repeat(100), '/*'.repeat(300_000), '/*\n nothing\n*/\n', 'DELIMITER //\n'])
      await assert.rejects(load(text), /creates no table|has no statement/);
    assert.equal((await rows('SELECT count(*) AS n FROM t'))[0]?.n, 20_002);
    await load(FOREIGN);
  });

  test('of HeidiSQL has its quoted collations, and texts stay as they are', async () => {
    const { count, notes } = await load(`CREATE TABLE \`goods\` (
  \`id\` INT(10) NOT NULL,
  \`name\` VARCHAR(50) NULL DEFAULT 'COLLATE' COMMENT 'COLLATE ''utf8mb4_0900_ai_ci''' COLLATE 'utf8mb4_0900_ai_ci'
)
COLLATE='utf8mb4_0900_ai_ci'
ENGINE=InnoDB;
INSERT INTO \`goods\` (\`id\`) VALUES (1);
`);
    assert.deepEqual([count, notes[0]?.text, notes[0]?.line], [1, 'utf8mb4_0900_ai_ci', 3]);
    assert.deepEqual(await rows('SELECT * FROM goods'), [{ id: 1, name: 'COLLATE' }]);
    const comment =
      "SELECT COLUMN_COMMENT AS c FROM information_schema.COLUMNS WHERE COLUMN_NAME = 'name' AND TABLE_SCHEMA = DATABASE()";
    assert.deepEqual(await rows(comment), [{ c: "COLLATE 'utf8mb4_0900_ai_ci'" }]);
  });

  test('leaves out indexes of expressions, in any form, and of vectors', async () => {
    const reason = /MariaDB has no indexes of expressions/;
    for (const [head, text, keys] of [
      [
        '-- phpMyAdmin SQL Dump\n',
        'CREATE TABLE `t` (\n  `id` int NOT NULL,\n  `s` varchar(9) DEFAULT NULL\n) ENGINE=InnoDB;\n' +
          'ALTER TABLE `t`\n  ADD PRIMARY KEY (`id`),\n  ADD UNIQUE KEY `low` ((lower(`s`))),\n  ADD KEY `s` (`s`(3),`id`);\n' +
          'ALTER TABLE `t`\n  ADD KEY `up` (`id`,(upper(`s`)));\n',
        ['PRIMARY', 's'],
      ],
      [
        '',
        "CREATE TABLE t (id int, s varchar(9) DEFAULT 'KEY (', INDEX a ((lower(s))), UNIQUE INDEX b(id, (upper(s))), KEY c (s));\n",
        ['c'],
      ],
    ] as const) {
      const { notes } = await load(head + text);
      assert.equal(notes.length, 2);
      for (const note of notes) assert.match(note.reason, reason);
      const found = await rows('SHOW INDEX FROM t WHERE Seq_in_index = 1');
      assert.deepEqual(found.map((index) => index.Key_name).sort(), keys);
    }
    const { notes } = await load(
      '-- MariaDB dump 10.19-11.8.2-MariaDB, for debian-linux-gnu (x86_64)\n' +
        'CREATE TABLE `t` (\n  `id` int(11) NOT NULL,\n  `v` vector(1) NOT NULL,\n  PRIMARY KEY (`id`),\n' +
        '  VECTOR KEY `v` (`v`) `m`=6 `distance`=euclidean\n) ENGINE=InnoDB;\n-- Dump completed\n',
    );
    assert.deepEqual(
      notes.map(({ line, reason }) => [line, reason]),
      [
        [4, 'the server has no vector type; the column stores their bytes'],
        [6, 'the server has no indexes of vectors'],
      ],
    );
  });

  test('of MySQL 9 has bytes of vectors, and other forms where MariaDB has none', async () => {
    const { notes } = await load(`-- MySQL dump 10.13  Distrib 9.1.0, for Linux (x86_64)
CREATE TABLE \`goods\` (
  \`id\` int NOT NULL,
  \`v\` vector(2) DEFAULT NULL,
  \`j\` json NOT NULL DEFAULT (cast(_utf8mb4'[]' as json)),
  \`t\` text COMMENT 'ENGINE=MyISAM any_value(x)',
  PRIMARY KEY (\`id\`)
) ENGINE=MyISAM AUTO_INCREMENT=2 DEFAULT CHARSET=utf8mb4 AUTOEXTEND_SIZE=4194304;
INSERT INTO \`goods\` (\`id\`, \`v\`, \`t\`) VALUES (1,0x0000803F00000040,') ENGINE=MyISAM');
/*!50001 CREATE ALGORITHM=UNDEFINED */
/*!50013 DEFINER=\`root\`@\`%\` SQL SECURITY DEFINER */
/*!50001 VIEW \`v\` AS select any_value(\`goods\`.\`t\`) AS \`t\` from \`goods\` group by \`goods\`.\`id\` */;
-- Dump completed on 2026-11-29 10:00:00
`);
    assert.deepEqual(
      notes.map(({ line, text }) => [line, text]),
      [
        [4, 'vector(2)'],
        [5, "cast(_utf8mb4'[]' as json)"],
        [8, 'ENGINE=MyISAM'],
        [8, 'AUTOEXTEND_SIZE=4194304'],
        [12, 'any_value(`goods`.`t`)'],
      ],
    );
    assert.deepEqual(await rows('SELECT hex(v) AS v, j FROM goods'), [{ v: '0000803F00000040', j: [] }]);
    assert.deepEqual(await rows('SELECT t FROM v'), [{ t: ') ENGINE=MyISAM' }]);
    const { count } = await load(
      'CREATE TABLE a (b int)\nENGINE = MyISAM;\nCREATE TABLE c (d int) ENGINE=InnoDB;\n',
    );
    assert.equal(count, 1);
  });

  test('of a later part of a dump leaves out settings whose value is in the first part', async () => {
    const part = `CREATE TABLE \`more\` (\`a\` int);
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
/*!40101 SET character_set_client = @saved_cs_client */;
/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */;
SET SQL_NOTES = @OLD_SQL_NOTES;
-- Dump completed on 2026-11-29 10:00:00
`;
    const { notes } = await load(part);
    assert.deepEqual(
      notes.map(({ line, text }) => [line, text.match(/@\w+/)?.[0]]),
      [
        [5, '@OLD_SQL_MODE'],
        [6, '@OLD_FOREIGN_KEY_CHECKS'],
        [7, '@OLD_SQL_NOTES'],
      ],
    );
    assert.match(notes[0]?.reason ?? '', /the line that sets @OLD_SQL_MODE is missing/);
    assert.deepEqual(await rows('SELECT count(*) AS n FROM more'), [{ n: 0 }]);
  });

  test('takes a byte order mark and CRLF', async () => {
    assert.ok((await load(`\ufeff${FOREIGN.replaceAll('\n', '\r\n')}`, { pieceBytes: 7 })).count > 10);
    assert.deepEqual(await rows('SELECT * FROM goods ORDER BY id'), GOODS);
  });

  test('keeps NUL in texts, and says what to do with one that is cut off', async () => {
    const nul = "INSERT INTO goods (id, name) VALUES (9, 'a\0b');";
    await load(FOREIGN.replace('UNLOCK TABLES;', `UNLOCK TABLES;\n${nul}`));
    assert.equal((await rows('SELECT name FROM goods WHERE id = 9'))[0]?.name, 'a\0b');
    const cut = load(FOREIGN.slice(0, -30));
    await assert.rejects(cut, /cut off: .*`-- Dump completed`.*Make it again.*add that/);
    const unclosed = load("CREATE TABLE q (a text);\nINSERT INTO q VALUES ('a");
    await assert.rejects(unclosed, /line 2: .*ends within a/);
    await load(FOREIGN);
  });

  test('says of a true error its line in the file, and no data; a second database is refused', async () => {
    const long = `INSERT INTO nothing VALUES ('${'secret '.repeat(2000)}');`;
    const wrong = FOREIGN.replace('UNLOCK TABLES;', `UNLOCK TABLES;\n${long}`);
    const line = wrong.split('\n').indexOf(long) + 1;
    await assert.rejects(load(wrong), ({ message }: Error) => {
      assert.match(message, new RegExp(`^ERROR 1146 \\(42S02\\) at line ${line}: Table .*nothing`));
      assert.doesNotMatch(message, /secret/);
      return true;
    });
    const two = load(FOREIGN.replace('FLUSH PRIVILEGES', 'USE `blog`'));
    await assert.rejects(two, /more than one database, shop and blog/);
    await assert.rejects(load(FOREIGN, { isStrict: true }), LoadFailed);
    assert.deepEqual(await rows('SELECT * FROM goods ORDER BY id'), GOODS);
  });
});
