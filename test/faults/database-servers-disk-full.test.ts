/**
 * PostgreSQL and MariaDB on a disk that fills up: writes end before it is full, and continue with free space.
 */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
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
/** Space left for the writer. */
const LEFT_BYTES = 192 * MIB;
/** Less than must stay free, and more than half of it. */
const LOW_BYTES = 48 * MIB;
/** Less than half of what must stay free. */
const OUT_BYTES = 20 * MIB;
/** The driver's error for a statement that may not write, or for a session that ended because of it. */
const WAITS = /read.only|terminat|57P01|25006|1290|denied|CONNECTION_LOST/i;
const INSERT = `INSERT INTO t VALUES (repeat(md5(random()::text), ${MIB / 128}))`;

/** Handlers that convert a promise to whether it was fulfilled. */
const BOTH = [() => true, () => false] as const;

/** Runs one statement in its own session. */
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
    truncate: 'BEGIN READ WRITE; TRUNCATE t; SELECT pg_sleep(1); COMMIT',
    skip: isThere('postgresql') ? noLoopDisk() : NO_POSTGRESQL,
  },
  {
    engine: 'mysql',
    run: asMysql,
    table: 'CREATE TABLE t (x LONGTEXT)',
    insert: `INSERT INTO t VALUES (repeat(md5(rand()), ${MIB / 128}))`,
    truncate: 'TRUNCATE TABLE t',
    skip: isThere('mariadb') ? noLoopDisk() : NO_MARIADB,
  },
] as const;

type Kind = (typeof KINDS)[number];

/** A cloud on its own disk, with a free account; `make` creates a database with a table. */
async function opened(t: TestContext, { engine, run, table }: Kind) {
  const disk = new LoopDisk(DISK_BYTES);
  const dataDir = join(disk.mountPoint, 'data');
  const cloud = await CloudProcess.start({ dataDir });
  t.after(async () => {
    await cloud.stop();
    await eventually('nobody holds the disk', () => isRemoved(disk));
  });
  const anyone = await CheckedClient.open(cloud.api);
  const make = async () => {
    const user = anyone.as((await anyone.register()).api_key);
    const json = { name: 'shop', engine, size_limit_mb: 900 };
    const { database_id, connection } = await user.expect(201, DATABASES, { json });
    const path = `${DATABASES}/${database_id}`;
    await eventually('its server is there', async () => (await user.expect(200, path)).state === 'ready');
    await run(connection.uri, table);
    return { user, path, uri: connection.uri };
  };
  /** Leaves this many bytes of the disk. */
  const fill = (leftBytes: number, name = 'filler') => {
    const { bavail, bsize } = statfsSync(disk.mountPoint);
    writeFileSync(join(disk.mountPoint, name), Buffer.alloc(bavail * bsize - leftBytes));
  };
  const clear = (name = 'filler') => rmSync(join(disk.mountPoint, name));
  const free = () => {
    const { bavail, bsize } = statfsSync(disk.mountPoint);
    return bavail * bsize;
  };
  return { cloud, dataDir, make, fill, clear, free };
}

for (const kind of KINDS) {
  const { engine, run, insert, truncate, skip } = kind;
  const how = { skip };
  test(
    `${engine} takes no writes before the disk is full, and goes on when there is space`,
    how,
    async (t) => {
      const { cloud, dataDir, make, fill, clear, free } = await opened(t, kind);
      const { user, path, uri } = await make();
      fill(LEFT_BYTES);

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
      assert.match(refusal, WAITS);
      assert.ok(existsSync(join(dataDir, 'reserve')), 'the reserve was touched');
      // Readers continue, and no acknowledged row is missing.
      const count = 'SELECT count(*) AS n FROM t';
      const [[there] = []] = await rowsOf(user, path, count);
      // Its session may have ended between the commit and the answer.
      assert.ok(there === acknowledged || there === acknowledged + 1, `${there} of ${acknowledged}`);
      acknowledged = there;

      clear();
      await eventually('space', async () => (await write()) === null);
      await cloud.crash();
      await cloud.start();
      const again = (await CheckedClient.open(cloud.api)).as(user.key);
      const [[rows] = []] = await rowsOf(again, path, count);
      assert.equal(rows, acknowledged);
      // No space for a last dump: this is reported, and without one its space is released.
      fill(4 * MIB);
      const remove = { method: 'DELETE' };
      await again.expect(201, '/api/buckets', { json: { name: 'low' } });
      await eventually('the disk is low', async () => (await again.upload('low', 'x', 'x')).status === 507);
      const { hint } = await again.refused(507, 'out_of_space', [path, remove]);
      assert.match(hint, /keep=false/);
      assert.equal((await again.expect(200, `${path}?keep=false`, remove)).deletes_at, null);
      await eventually('its space is back', () => free() > (acknowledged / 8) * MIB);
      const log = globSync(join(dataDir, `databases/${engine}/accounts/*/keeper/log*`));
      for (const file of log) assert.doesNotMatch(readFileSync(file, 'latin1'), /PANIC|\[ERROR\].*InnoDB/);
    },
  );

  test(
    `${engine}: who fills the disk waits first and is told why, a neighbour waits last, and both can delete`,
    how,
    async (t) => {
      const { make, fill, clear, free } = await opened(t, kind);
      const [grower, neighbour] = [await make(), await make()];
      const ask = ({ user, path }: typeof grower, statement: string) =>
        user.call(`${path}/query`, { json: { statement, read_only: false } });
      const stateOf = async ({ user, path }: typeof grower) => {
        const { state, state_reason } = await user.expect(200, path);
        return `${state} ${state_reason?.code ?? ''}`.trim();
      };
      const isWaiting = async (who: typeof grower) => {
        const { status, body } = await ask(who, insert);
        return status === 503 && body.code === 'host_disk_full';
      };
      fill(LEFT_BYTES);
      const grow = () => run(grower.uri, insert).then(() => null, String);
      let refusal: string | null = null;
      while (refusal === null) refusal = await grow();
      assert.match(refusal, WAITS);
      await eventually('who fills it waits', () => isWaiting(grower));
      assert.equal(await stateOf(grower), 'read_only host_disk_full');
      await run(neighbour.uri, insert);
      assert.equal(await stateOf(neighbour), 'ready');

      for (const [level, left] of [
        ['low', LOW_BYTES],
        ['out', OUT_BYTES],
      ] as const) {
        fill(left, level);
        await eventually('the neighbour waits', () => isWaiting(neighbour));
        for (const each of [grower, neighbour]) {
          assert.equal(await stateOf(each), 'read_only host_disk_full');
          // A session that started earlier may be ended.
          for (const statement of ['DELETE FROM t WHERE 1 = 0', "DELETE FROM t WHERE x < '8'"])
            await eventually(
              `${level}: ${statement}`,
              async () => (await ask(each, statement)).status === 200,
            );
          assert.ok(await isWaiting(each), 'it may grow');
        }
      }
      await eventually('the neighbour frees space', () => run(neighbour.uri, truncate).then(...BOTH));
      const before = free();
      assert.equal((await ask(grower, 'TRUNCATE TABLE t')).status, 200);
      await eventually('its space is back', () => free() > before + 16 * MIB);
      for (const name of ['low', 'out', 'filler']) clear(name);
      await eventually('there is space', async () => (await grow()) === null);
      for (const each of [grower, neighbour]) {
        await eventually('it is ready', async () => (await stateOf(each)) === 'ready');
        assert.equal((await ask(each, insert)).status, 200);
      }
    },
  );
}

function isRemoved(disk: LoopDisk): boolean {
  try {
    disk.remove();
    return true;
  } catch {
    return false;
  }
}
