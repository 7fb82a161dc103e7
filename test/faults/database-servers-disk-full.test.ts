/** PostgreSQL and MariaDB on a disk that fills up: writes end before it is full, and go on with space. */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createConnection } from 'mysql2/promise';
import { Client as Postgresql } from 'pg';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import { DATABASES, rowsOf } from '../acceptance/databases-kit.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { LoopDisk, noLoopDisk } from './loop-disk.ts';

const MIB = 2 ** 20;
const DISK_BYTES = 1024 * MIB;
/** What is left for the writer. */
const LEFT_BYTES = 192 * MIB;
const INSERT = `INSERT INTO t VALUES (repeat(md5(random()::text), ${MIB / 128}))`;

/** Runs one statement in a session of its own. */
type Run = (uri: string, sql: string) => Promise<unknown>;

const asPostgresql: Run = async (uri, sql) => {
  const driver = new Postgresql(uri);
  driver.on('error', () => {});
  await driver.connect();
  return driver.query(sql).finally(() => driver.end().catch(() => {}));
};
const asMysql: Run = async (uri, sql) => {
  const driver = await createConnection(uri);
  driver.on('error', () => {});
  return driver.query(sql).finally(() => driver.destroy());
};

const isThere = (name: string) => globSync(`build/programs/${name}-*/usr`).length > 0;
const KINDS = [
  {
    engine: 'postgresql',
    run: asPostgresql,
    table: 'CREATE TABLE t (x text); ALTER TABLE t ALTER x SET STORAGE EXTERNAL',
    insert: INSERT,
    skip: isThere('postgresql') ? noLoopDisk() : NO_POSTGRESQL,
  },
  {
    engine: 'mysql',
    run: asMysql,
    table: 'CREATE TABLE t (x LONGTEXT)',
    insert: `INSERT INTO t VALUES (repeat(md5(rand()), ${MIB / 128}))`,
    skip: isThere('mariadb') ? noLoopDisk() : NO_MARIADB,
  },
] as const;

for (const { engine, run, table, insert, skip } of KINDS)
  test(`${engine} takes no writes before the disk is full, and goes on when there is space`, {
    skip,
  }, async (t) => {
    const disk = new LoopDisk(DISK_BYTES);
    const dataDir = join(disk.mountPoint, 'data');
    const cloud = await CloudProcess.start({ dataDir });
    t.after(async () => {
      await cloud.stop();
      await eventually('nobody holds the disk', () => isRemoved(disk));
    });
    const anyone = await CheckedClient.open(cloud.api);
    const user = anyone.as((await anyone.register()).api_key);
    const made = await user.expect(201, DATABASES, { json: { name: 'shop', engine, size_limit_mb: 900 } });
    const path = `${DATABASES}/${made.database_id}`;
    const { uri } = made.connection;
    await run(uri, table);
    const filler = join(disk.mountPoint, 'filler');
    const { bavail, bsize } = statfsSync(disk.mountPoint);
    writeFileSync(filler, Buffer.alloc(bavail * bsize - LEFT_BYTES));

    let acknowledged = 0;
    const write = () =>
      run(uri, insert).then(
        () => {
          acknowledged++;
          return null;
        },
        (error) => `${error.code} ${error.message}`,
      );
    let refusal: string | null = null;
    while (refusal === null) refusal = await write();
    assert.ok(acknowledged * 0.25 * MIB < LEFT_BYTES, 'all was written');
    assert.match(refusal, /read.only|terminat|57P01|25006|1290/i);
    assert.ok(existsSync(join(dataDir, 'reserve')), 'the reserve was touched');
    // Whoever reads goes on, and nothing that was acknowledged is missing.
    const count = 'SELECT count(*) AS n FROM t';
    assert.deepEqual(await rowsOf(user, path, count), [[acknowledged]]);

    rmSync(filler);
    await eventually('space', async () => (await write()) === null);
    await cloud.crash();
    await cloud.start();
    const again = (await CheckedClient.open(cloud.api)).as(user.key);
    const [[rows] = []] = await rowsOf(again, path, count);
    assert.equal(rows, acknowledged);
    // No space for a last dump: that is said, and without one its space comes back.
    const { bavail: now } = statfsSync(disk.mountPoint);
    writeFileSync(filler, Buffer.alloc(now * bsize - 4 * MIB));
    const remove = { method: 'DELETE' };
    await again.expect(201, '/api/buckets', { json: { name: 'low' } });
    await eventually('the disk is low', async () => (await again.upload('low', 'x', 'x')).status === 507);
    const { hint } = await again.refused(507, 'out_of_space', [path, remove]);
    assert.match(hint, /keep=false/);
    assert.equal((await again.expect(200, `${path}?keep=false`, remove)).deletes_at, null);
    await eventually('its space is back', () => {
      const { bavail: free } = statfsSync(disk.mountPoint);
      return free * bsize > (acknowledged / 8) * MIB;
    });
    const log = globSync(join(dataDir, `databases/${engine}/accounts/*/keeper/log*`));
    for (const file of log) assert.doesNotMatch(readFileSync(file, 'latin1'), /PANIC|\[ERROR\].*InnoDB/);
  });

function isRemoved(disk: LoopDisk): boolean {
  try {
    disk.remove();
    return true;
  } catch {
    return false;
  }
}
