/** Files that are loaded and dumped: made by strangers, too large, or on a full disk. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { after, describe, test } from 'node:test';
import { notInstalled } from '../../../../scripts/installed.ts';
import { LoadFailed } from '../../../databases/engine.ts';
import { isAppError } from '../../../platform/errors.ts';
import { openSqlite, type SqliteFixture } from '../../../testing/sqlite-fixture.ts';

const NOBODY_LEAVES = new AbortController().signal;

function fixture(): SqliteFixture {
  const opened = openSqlite();
  after(() => opened.close());
  return opened;
}

describe('a file that a stranger made', () => {
  test('is used or refused, whatever is in it, and the one that is there stays until it is good', async () => {
    const { engine, make, run } = fixture();
    const [source, target] = [await make(), await make()];
    await run(source, 'CREATE TABLE a (b PRIMARY KEY, c)');
    await run(
      source,
      `INSERT INTO a SELECT n, hex(randomblob(100)) FROM
      (WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 300) SELECT n FROM c)`,
    );
    await run(target, 'CREATE TABLE here (x)');
    const whole = await buffer((await engine.dump(source, 'sqlite', { signal: NOBODY_LEAVES })).stream);
    let refused = 0;
    for (const at of [16, 28, 44, 52, 100, 103, 4096, 4099, 5000, 8192, 8200, 20_000]) {
      const crafted = Buffer.from(whole);
      crafted.fill(0xff, at, at + 8);
      const loaded = await engine.load(target, Readable.from([crafted]), { signal: NOBODY_LEAVES }).then(
        () => true,
        (error) => {
          assert.ok(error instanceof LoadFailed, String(error));
          return false;
        },
      );
      if (!loaded) refused++;
      await run(target, 'SELECT * FROM sqlite_schema');
    }
    assert.ok(refused > 5, `${refused} were refused`);
  });

  test('of a damaged database is refused, however it says so, and one that only has the word is not', async () => {
    const { engine, make, run } = fixture();
    const database = await make();
    await run(database, 'CREATE TABLE here (x)');
    const load = (text: string) =>
      engine.load(database, Readable.from([Buffer.from(text)]), { signal: NOBODY_LEAVES });
    const begin =
      'PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\nCREATE TABLE a(b);\nINSERT INTO a VALUES(1);\n';
    const long = `/*${'*'.repeat(1_000_000)}*/`;
    for (const [end, line] of [
      ['/**** ERROR: (11) database disk image is malformed *****/\nROLLBACK; -- due to errors\n', 6],
      ['ROLLBACK; -- due to errors\n', 5],
      ['ROLLBACK; -- due to errors', 5],
      [
        '/****** CORRUPTION ERROR *******/\n/****** database disk image is malformed ******/\nROLLBACK; -- due',
        7,
      ],
      ['-- a comment with /*\n/* one with -- */ Rollback', 6],
      [`${long}rollback transaction;\nCREATE TABLE c(d);\n`, 5],
      [';;/**/;ROLLBACK;COMMIT;\n', 5],
    ] as const) {
      await assert.rejects(load(`${begin}${end}`), (error: Error) => {
        assert.ok(error instanceof LoadFailed, String(error));
        assert.match(
          error.message,
          new RegExp(`^line ${line}: the dump contains ROLLBACK, .*rows may be missing.*\\.recover`),
        );
        return true;
      });
    }
    assert.deepEqual(await run(database, 'SELECT name FROM sqlite_schema'), [['here']]);
    const good = `${long}\n${begin}INSERT INTO a VALUES('ROLLBACK;'); -- ROLLBACK;\n/* ROLLBACK; */ COMMIT; -- ROLLBACK;`;
    await load(good);
    assert.deepEqual(await run(database, 'SELECT count(*) FROM a'), [[2]]);
  });

  test('may have rows of tables that SQLite makes itself, and statements about its file', async () => {
    const { engine, make, run } = fixture();
    const database = await make();
    const load = (text: string) =>
      engine.load(database, Readable.from([Buffer.from(text)]), { signal: NOBODY_LEAVES });
    const own = [
      'PRAGMA defer_foreign_keys=TRUE;',
      'CREATE TABLE sqlite_stat1(tbl,idx,stat);',
      "INSERT INTO sqlite_stat1 VALUES('a',NULL,'1');",
      'DELETE FROM sqlite_sequence;',
      "INSERT INTO sqlite_sequence VALUES('a',7);",
      'PRAGMA wal_checkpoint(TRUNCATE);',
      'VACUUM;',
    ];
    await load(['CREATE TABLE a (b INTEGER PRIMARY KEY);', 'INSERT INTO a VALUES (1);', ...own].join('\n'));
    assert.deepEqual(await run(database, 'SELECT b FROM a'), [[1]]);
    await load(['CREATE TABLE a (b INTEGER PRIMARY KEY AUTOINCREMENT);', ...own].join('\n'));
    await run(database, 'INSERT INTO a DEFAULT VALUES');
    assert.deepEqual(await run(database, 'SELECT b FROM a'), [[8]]);
    await assert.rejects(
      load('CREATE TABLE a (b);\nINSERT INTO sqlite_other VALUES (1);'),
      /line 2: .*sqlite_other/,
    );
  });

  test('larger than the database may be is not taken in', async () => {
    const { engine, make, run } = fixture();
    const [source, target] = [await make(), await make({ sizeLimitBytes: 100_000 })];
    await run(source, 'CREATE TABLE a AS SELECT zeroblob(200000) AS b');
    await run(target, 'CREATE TABLE here (x)');
    const { stream } = await engine.dump(source, 'sqlite', { signal: NOBODY_LEAVES });
    await assert.rejects(engine.load(target, stream, { signal: NOBODY_LEAVES }), LoadFailed);
    assert.deepEqual(await run(target, 'SELECT name FROM sqlite_schema'), [['here']]);
  });
});

test('a full disk is reported as that, tears nothing, and does no harm when there is space again', async (context) => {
  const reason = process.getuid?.() === 0 ? notInstalled('mount', 'umount') : 'needs root';
  if (reason !== false) return context.skip(reason);
  const disk = fs.mkdtempSync(join(tmpdir(), 'cloudlet-full-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=12m', 'none', disk]);
  const { engine, folder, make, run, close } = openSqlite({ folder: join(disk, 'sqlite') });
  try {
    const database = await make({ sizeLimitBytes: 2 ** 30 });
    await run(database, 'CREATE TABLE a (b)');
    await run(database, 'INSERT INTO a VALUES (zeroblob(4000000))');
    const isDiskFull = (error: unknown) => isAppError(error, 'host_disk_full');
    const other = await make();
    const filler = join(disk, 'filler');
    const { bavail, bsize } = fs.statfsSync(disk);
    fs.writeFileSync(filler, Buffer.alloc(Math.max(0, bavail * bsize - 2 * 2 ** 20)));
    await assert.rejects(
      engine.dump(database, 'sqlite', { signal: NOBODY_LEAVES }),
      isDiskFull,
      'some is left, too little',
    );
    fs.rmSync(filler);
    const dump = await buffer((await engine.dump(database, 'sqlite', { signal: NOBODY_LEAVES })).stream);
    await assert.rejects(run(database, 'INSERT INTO a VALUES (zeroblob(9000000))'), isDiskFull);
    await run(database, 'INSERT INTO a VALUES (zeroblob(2000000))');
    await assert.rejects(engine.dump(database, 'sqlite', { signal: NOBODY_LEAVES }), isDiskFull);
    await assert.rejects(
      engine.load(other, Readable.from([dump, dump]), { signal: NOBODY_LEAVES }),
      isDiskFull,
    );
    assert.deepEqual(
      fs.readdirSync(join(folder, database.database)).filter((name) => /copy/.test(name)),
      [],
    );
    assert.deepEqual(
      fs.readdirSync(folder).filter((name) => /load/.test(name)),
      [],
    );
    await run(database, 'DELETE FROM a');
    await run(database, 'INSERT INTO a VALUES (1)');
    assert.deepEqual(await run(database, 'SELECT b FROM a'), [[1]]);
    assert.deepEqual(await run(database, 'PRAGMA integrity_check'), [['ok']]);
  } finally {
    await close();
    execFileSync('umount', [disk]);
    fs.rmdirSync(disk);
  }
});
