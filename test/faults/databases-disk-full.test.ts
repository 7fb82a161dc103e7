/** A database on a disk that is full: whoever wants room hears so, and nothing of it is torn. */
import assert from 'node:assert/strict';
import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { DATABASES, newDatabase, rowsOf, run } from '../acceptance/databases-kit.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { LoopDisk, noLoopDisk } from './loop-disk.ts';

const MIB = 2 ** 20;

test('writes, dumps and copies are refused with 507, and work when there is room', {
  skip: noLoopDisk(),
}, async (t) => {
  const disk = new LoopDisk(128 * MIB);
  const cloud = await CloudProcess.start({ dataDir: join(disk.mountPoint, 'data') });
  t.after(async () => {
    await cloud.stop();
    await eventually('nobody holds the disk', () => isRemoved(disk));
  });
  const anyone = await CheckedClient.open(cloud.api);
  const user = anyone.as((await anyone.register()).api_key);
  const path = await newDatabase(user, 'CREATE TABLE t (x)', 'INSERT INTO t VALUES (zeroblob(8000000))');
  const filler = join(disk.mountPoint, 'filler');
  const { bavail, bsize } = statfsSync(disk.mountPoint);
  writeFileSync(filler, Buffer.alloc(bavail * bsize - 3 * MIB));
  const full = 'out_of_space';
  const copy = { json: { name: 'copy', from: { database_id: path.slice(DATABASES.length + 1) } } };
  await user.refused(507, full, [`${path}/dump`]);
  await user.refused(507, full, [DATABASES, copy]);
  const statement =
    'WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 30) INSERT INTO t SELECT zeroblob(1e6) FROM n';
  await user.refused(507, full, [`${path}/query`, { json: { statement, read_only: false } }]);
  assert.deepEqual(await rowsOf(user, path, 'SELECT count(*) FROM t'), [[1]]);
  rmSync(filler);
  // Room is looked at from time to time.
  await eventually('there is room', async () => (await user.call(DATABASES, copy)).status === 201);
  await run(user, path, statement);
  assert.deepEqual(await rowsOf(user, path, 'SELECT count(*) FROM t'), [[31]]);
  assert.deepEqual(await rowsOf(user, path, 'PRAGMA integrity_check'), [['ok']]);
});

function isRemoved(disk: LoopDisk): boolean {
  try {
    disk.remove();
    return true;
  } catch {
    return false;
  }
}
