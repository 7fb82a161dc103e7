/** Dumps of old servers, of other storage engines and of tools for people, and what is caught with them. */
// A process of its own: it starts servers.
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import type { EngineDatabase } from '../../../../databases/engine.ts';
import { LeftOut } from '../../../../databases/left-out.ts';
import { connectMysql, type MysqlFixture, mysqlFixture, noMysql } from '../../../../testing/mysql-fixture.ts';
import { newDatabase } from '../../../../testing/new-database.ts';

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const MYSQL = '-- MySQL dump 10.13  Distrib 8.0.36, for Linux (x86_64)\n/*!50503 SET NAMES utf8mb4 */;\n';
const END = '-- Dump completed on 2026-11-29 10:00:00\n';
const tableOf = (options: string, more = '') =>
  `CREATE TABLE \`t\` (\n  \`a\` int NOT NULL,\n  \`b\` varchar(40) DEFAULT NULL${more}\n) ${options};\n`;
const ROW = "INSERT INTO `t` (`a`,`b`) VALUES (1,') ENGINE=Aria PAGE_CHECKSUM=1');\n";

describe('a load into MariaDB', { skip: noMysql }, () => {
  let fixture: MysqlFixture;
  let own: EngineDatabase;

  before(async () => {
    fixture = mysqlFixture();
    own = newDatabase();
    await fixture.engine.provision(own, SECRET);
  });
  after(() => fixture?.close());

  /** Lines and texts of what was left out. */
  async function load(dump: string): Promise<(readonly [number | null, string])[]> {
    const leftOut = new LeftOut();
    const { signal } = new AbortController();
    await fixture.engine.load(own, Readable.from([Buffer.from(dump)]), { signal, leftOut });
    assert.equal(leftOut.count, leftOut.notes.length);
    return leftOut.notes.map(({ line, text }) => [line, text]);
  }

  async function rows(sql: string): Promise<Record<string, unknown>[]> {
    const client = await connectMysql(fixture.engine, own, SECRET);
    try {
      return (await client.query(sql))[0] as Record<string, unknown>[];
    } finally {
      client.destroy();
    }
  }

  async function assertRow(): Promise<void> {
    assert.deepEqual(await rows('SELECT a, b FROM t'), [{ a: 1, b: ') ENGINE=Aria PAGE_CHECKSUM=1' }]);
  }

  test('leaves out options of other storage engines and encryption, and tells', async () => {
    for (const [options, told] of [
      ["ENGINE=InnoDB `ENCRYPTED`=YES `ENCRYPTION_KEY_ID`=4 COMMENT='`ENCRYPTED`=YES'", 2],
      ["ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 ENCRYPTION='Y'", 1],
      ["ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 /*!80016 ENCRYPTION='Y' */", 0],
      ["ENGINE=TokuDB DEFAULT CHARSET=utf8mb4 `compression`='tokudb_zlib' ROW_FORMAT=TOKUDB_ZLIB", 3],
      ['ENGINE=Aria DEFAULT CHARSET=utf8mb3 PAGE_CHECKSUM=1 TRANSACTIONAL=1 ROW_FORMAT=PAGE', 4],
      ['ENGINE=MyISAM ROW_FORMAT=FIXED', 2],
    ] as const) {
      const notes = await load(tableOf(options) + ROW);
      assert.equal(notes.length, told, options);
      for (const [line, text] of notes) {
        assert.equal(line, 4);
        assert.ok(options.includes(text), text);
      }
      await assertRow();
    }
    const [made] = await rows("SHOW TABLE STATUS LIKE 't'");
    assert.equal(made?.Engine, 'InnoDB');
  });

  test('takes partitions with an engine of each, and tables and times of MySQL 4', async () => {
    const parts = [
      '/*!50100 PARTITION BY RANGE (`a`)',
      '(PARTITION p0 VALUES LESS THAN (10) ENGINE = MyISAM,',
      " PARTITION p1 VALUES LESS THAN MAXVALUE COMMENT = ') ENGINE = MyISAM' ENGINE = MyISAM) */;\n",
    ].join('\n');
    const table = tableOf('ENGINE=MyISAM').replace(';\n', `\n${parts}`);
    assert.deepEqual(await load(MYSQL + table + ROW + END), [[6, 'ENGINE=MyISAM']]);
    await assertRow();
    const old = `# phpMyAdmin MySQL-Dump
CREATE TABLE t (
  a int(11) NOT NULL auto_increment,
  b varchar(40) default 'timestamp(14)',
  c timestamp(14) NOT NULL,
  PRIMARY KEY  (a)
) TYPE=MyISAM;
${ROW.replace('(`a`,`b`) VALUES', 'VALUES').replace(');', ',20040506101112);')}`;
    assert.deepEqual(await load(old), [
      [5, 'timestamp(14)'],
      [7, 'ENGINE=MyISAM'],
    ]);
    await assertRow();
    assert.equal((await rows('SELECT year(c) AS y FROM t'))[0]?.y, 2004);
  });

  test('leaves out keys to other databases, settings of MySQL 8, and notes of phpMyAdmin', async () => {
    const key = ',\n  KEY `k` (`a`),\n  CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `other`.`x` (`id`)';
    const check = ",\n  CONSTRAINT `c` CHECK (json_schema_valid(_utf8mb4'{}',`b`))";
    for (const [head, more, told] of [
      [MYSQL, key + check, 2],
      ['-- MariaDB dump 10.19  Distrib 11.4.2-MariaDB, for debian-linux-gnu (x86_64)\n', key, 1],
    ] as const) {
      assert.equal((await load(head + tableOf('ENGINE=InnoDB', more) + ROW + END)).length, told);
      await assertRow();
    }
    const settings = [
      'SET sql_require_primary_key=0;',
      "SET SESSION binlog_format = 'ROW';",
      'SET @@session.pseudo_thread_id=5;',
      'SET SESSION information_schema_stats_expiry=0;',
    ];
    const text = `${settings.join('\n')}\n${tableOf('ENGINE=InnoDB')}${ROW}`;
    assert.deepEqual(
      await load(text),
      settings.map((setting, at) => [at + 1, setting]),
    );
    await assertRow();
    const notes = `USE \`phpmyadmin\`;
-- Metadata for table t
INSERT INTO \`pma__column_info\` (\`db_name\`) VALUES
('shop');
`;
    const all = `USE \`shop\`;\n${tableOf('ENGINE=InnoDB')}${ROW}${notes}USE \`shop\`;\nINSERT INTO \`t\` VALUES (2,'x');\n`;
    const told = await load(all);
    assert.deepEqual(
      told.map(([line]) => line),
      [1, 7, 9, 11],
    );
    assert.equal((await rows('SELECT count(*) AS n FROM t'))[0]?.n, 2);
    await assert.rejects(load(all.replace('`phpmyadmin`', '`blog`')), /more than one database/);
  });

  test('takes messages of programs before the dump', async () => {
    const said = [
      'Enter password: ',
      "/usr/bin/mysqldump: Deprecated program name. It will be removed, use '/usr/bin/mariadb-dump' instead",
      'Warning: Using a password on the command line interface can be insecure.',
      "mysqldump: Error: 'Access denied; you need the PROCESS privilege' when trying to dump tablespaces",
    ];
    const dump = `${said.join('\n')}\n${MYSQL}${tableOf('ENGINE=InnoDB')}${ROW}${END}`;
    for (const text of [dump, dump.replaceAll('\n', '\r\n')]) {
      assert.deepEqual(
        await load(text),
        said.map((each, at) => [at + 1, each.trim()]),
      );
      await assertRow();
    }
  });
});
