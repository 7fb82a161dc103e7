// A process of its own: it starts servers.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { Readable } from 'node:stream';
import { after, before, beforeEach, describe, test } from 'node:test';
import { promisify } from 'node:util';
import type { Connection } from 'mysql2/promise';
import { type EngineDatabase, LoadFailed } from '../../../../databases/engine.ts';
import { LeftOut } from '../../../../databases/left-out.ts';
import { connectMysql, type MysqlFixture, mysqlFixture, noMysql } from '../../../../testing/mysql-fixture.ts';
import { newDatabase } from '../../../../testing/new-database.ts';
import { findPrograms } from '../mysql-programs.ts';
import { withoutTables } from './data-only.ts';

const run = promisify(execFile);
const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const { signal } = new AbortController();

test('data alone is known by its first statement of content, however long', async () => {
  const isData = async (text: string) => {
    const all = Buffer.from(text);
    const found = await withoutTables(Readable.from([all.subarray(0, 30), all.subarray(30)]));
    assert.ok(Buffer.concat(await Array.fromAsync(found.pieces)).equals(all));
    return found.isDataOnly;
  };
  const start = `\ufeffmysqldump: [Warning] Using a password can be insecure.
-- MySQL dump 10.13

/*M!999999\\- enable the sandbox mode */
/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5,
4e11fa47-71ca-11e1-9e33-c80aa9429562:1-7';
CREATE DATABASE /*!32312 IF NOT EXISTS*/ \`shop\`;
USE \`shop\`;
`;
  for (const text of [
    `${start}INSERT INTO \`a\` VALUES (1)${', (1)'.repeat(50_000)};\n`,
    `${start}LOCK TABLES \`a\` WRITE;\nUNLOCK TABLES;\n`,
    `${start}/*!40000 ALTER TABLE \`a\` DISABLE KEYS */;\n`,
    `${start}REPLACE INTO \`a\` VALUES (1);\n`,
    'TRUNCATE a;\nINSERT INTO a VALUES (1);',
    'INSERT INTO a VALUES (1)',
  ])
    assert.equal(await isData(text), true, text.slice(-200));
  for (const text of [
    '',
    start,
    `${start}CREATE TABLE a (x int);\nINSERT INTO a VALUES (1);`,
    'DROP TABLE IF EXISTS `a`;\nINSERT INTO a VALUES (1);',
    '/*!50001 DROP VIEW IF EXISTS `v`*/;\nINSERT INTO a VALUES (1);',
  ])
    assert.equal(await isData(text), false, text.slice(-200));
});

describe('data alone into MariaDB', { skip: noMysql }, () => {
  let fixture: MysqlFixture;
  let own: EngineDatabase;
  let client: Connection;

  before(async () => {
    fixture = mysqlFixture();
    own = newDatabase();
    await fixture.engine.provision(own, SECRET);
    client = await connectMysql(fixture.engine, own, SECRET);
    await client.query(
      'CREATE TABLE goods (id int PRIMARY KEY AUTO_INCREMENT, name varchar(60)) ENGINE=InnoDB',
    );
    await client.query(
      'CREATE TRIGGER low BEFORE INSERT ON goods FOR EACH ROW SET NEW.name = lower(NEW.name)',
    );
  });
  beforeEach(async () => {
    await client.query('DELETE FROM goods');
    await client.query("INSERT INTO goods VALUES (1, 'a;\\nCOMMIT;'), (2, 'b')");
  });
  after(async () => {
    client?.destroy();
    await fixture?.close();
  });

  let added = 0;
  async function load(dump: string | Buffer, isStrict = false): Promise<LeftOut> {
    const leftOut = new LeftOut();
    added = 0;
    const adding = () => {
      added++;
    };
    const how = isStrict ? { signal, adding } : { signal, adding, leftOut };
    await fixture.engine.load(own, Readable.from([Buffer.from(dump)]), how);
    return leftOut;
  }
  const rows = async () => (await client.query('SELECT id, name FROM goods ORDER BY id'))[0];
  const GOODS = [
    { id: 1, name: 'a;\ncommit;' },
    { id: 2, name: 'b' },
  ];

  test('of mariadb-dump goes into the tables that are there', async () => {
    const programs = await findPrograms(null);
    assert.ok('dump' in programs);
    const url = new URL((await fixture.engine.endpoint(own)).uri(SECRET));
    const to = [`-h${url.hostname}`, `-P${url.port}`, `-u${url.username}`, `-p${SECRET}`, '--skip-ssl'];
    const dumped = async (...args: string[]) => {
      const all = [...to, '--no-create-info', '--skip-lock-tables', ...args, url.pathname.slice(1)];
      return (await run(programs.dump, all, { encoding: 'buffer' })).stdout;
    };
    for (const args of [
      [],
      ['--skip-extended-insert'],
      ['--no-autocommit'],
      ['--replace'],
      ['--insert-ignore'],
    ]) {
      const dump = await dumped(...args);
      await client.query('DELETE FROM goods WHERE id = 1');
      await client.query("UPDATE goods SET name = 'kept' WHERE id = 2");
      const mends = args.includes('--replace') || args.includes('--insert-ignore');
      if (!mends) {
        await assert.rejects(load(dump), /ERROR 1062 .*Duplicate entry '2'/);
        assert.deepEqual(await rows(), [{ id: 2, name: 'kept' }]);
        await client.query('DELETE FROM goods');
      }
      const { count, notes } = await load(dump);
      assert.equal(added, 1);
      const kept = args.includes('--insert-ignore') ? [GOODS[0], { id: 2, name: 'kept' }] : GOODS;
      assert.deepEqual(await rows(), kept, args.join());
      assert.deepEqual([count, notes[0]?.text.includes('TRIGGER')], [1, true]);
      await client.query('DELETE FROM goods');
      await assert.rejects(load(dump, true), /line \d+: rows are added in one transaction/);
      await load(await dumped('--skip-triggers'), true);
      assert.deepEqual(await rows(), []);
      await client.query("INSERT INTO goods VALUES (1, 'a;\\nCOMMIT;'), (2, 'b')");
    }
  });

  test('adds all rows or none, whatever the text says of transactions', async () => {
    const one = "INSERT INTO goods VALUES (3, 'c');\n";
    await load(
      `LOCK TABLES goods WRITE;\n${one}UNLOCK TABLES;\ncommit;\nSTART TRANSACTION;\nTRUNCATE goods;\n${one}`,
    );
    assert.deepEqual(await rows(), [{ id: 3, name: 'c' }]);
    const again = "INSERT INTO goods VALUES (4, 'd');\n";
    for (const [end, reason] of [
      ['COMMIT;\nINSERT INTO nothing VALUES (1);', /at line 3: .*nothing/],
      ['ROLLBACK;', /^line 2: .*contains ROLLBACK/],
      ["INSERT INTO goods VALUES (5, 'cut", /cut off: its last statement/],
      ['INSERT INTO goods VALUES (5', /cut off: its last statement/],
      [`INSERT INTO goods VALUES (5, '${'cut '.repeat(100_000)}`, /cut off: its last statement/],
    ] as const) {
      await assert.rejects(load(again + end), (error: Error) => {
        assert.ok(error instanceof LoadFailed);
        assert.match(error.message, reason);
        return true;
      });
      assert.equal(added, 1);
      assert.deepEqual(await rows(), [{ id: 3, name: 'c' }], end);
    }
    await assert.rejects(load(`-- MySQL dump 10.13\n${again}`), /cut off: .*Dump completed/);
    assert.deepEqual(await rows(), [{ id: 3, name: 'c' }]);
  });
});
