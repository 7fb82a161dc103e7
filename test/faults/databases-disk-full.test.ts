/** A database on a full disk: writers get an error, and no write is partial. */
import assert from 'node:assert/strict';
import { existsSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createClient as libsql } from '@libsql/client';
import { MongoClient } from 'mongodb';
import { DATABASES, newDatabase, rowsOf, run } from '../acceptance/databases-kit.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { LoopDisk, noLoopDisk } from './loop-disk.ts';

const MIB = 2 ** 20;

test('writes, dumps and copies are refused by name, and work when there is space', {
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
  const copy = { json: { name: 'copy', from: { database_id: path.slice(DATABASES.length + 1) } } };
  // The engine finds the disk full, or the cloud has noticed by then, which takes at most half a second.
  const refuse = async (...call: Parameters<typeof user.call>) => {
    const { status, body } = await user.call(...call);
    const answer = `${status} ${body.code}`;
    assert.ok(['503 host_disk_full', '507 out_of_space'].includes(answer), answer);
    return answer;
  };
  await refuse(`${path}/dump`);
  await eventually('the cloud has seen it', async () => (await refuse(DATABASES, copy)).startsWith('507'));
  const statement =
    'WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 30) INSERT INTO t SELECT zeroblob(1e6) FROM n';
  const write = { json: { statement, read_only: false } };
  await user.refused(503, 'host_disk_full', [`${path}/query`, write]);
  assert.deepEqual(await rowsOf(user, path, 'SELECT count(*) FROM t'), [[1]]);
  rmSync(filler);
  // The free space is checked periodically.
  await eventually('there is space', async () => (await user.call(DATABASES, copy)).status === 201);
  await run(user, path, statement);
  assert.deepEqual(await rowsOf(user, path, 'SELECT count(*) FROM t'), [[31]]);
  assert.deepEqual(await rowsOf(user, path, 'PRAGMA integrity_check'), [['ok']]);
});

const SAYS_HOST = /host's disk is full/;

/** A program that writes as much as possible. */
interface Filler {
  /** Writes one more MiB; returns the code of the refusal, or null. */
  write(): Promise<{ readonly code: unknown; readonly message: string } | null>;
  /** As much as the disk has, in one step. */
  writeAll(): Promise<unknown>;
  clear(): Promise<unknown>;
  close(): unknown;
}

const asError = (error: { code?: unknown; message: string }) => ({
  code: error.code,
  message: error.message,
});

function sqliteFiller({ uri }: { uri: string }): Filler {
  const client = libsql({ url: uri });
  return {
    write: () => client.execute('INSERT INTO t VALUES (zeroblob(1048576))').then(() => null, asError),
    writeAll: () =>
      client.execute(
        `WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200)
         INSERT INTO t SELECT zeroblob(1048576) FROM n`,
      ),
    clear: () => client.execute('DELETE FROM t'),
    close: () => client.close(),
  };
}

function mongodbFiller({ uri }: { uri: string }): Filler {
  const client = new MongoClient(uri);
  const t = client.db().collection('t');
  const document = () => ({ x: Buffer.alloc(MIB) });
  return {
    write: () => t.insertOne(document()).then(() => null, asError),
    writeAll: async () => {
      for (;;) await t.insertMany(Array.from({ length: 40 }, document));
    },
    clear: () => t.deleteMany({}),
    close: () => client.close(),
  };
}

for (const [engine, open] of [
  ['sqlite', sqliteFiller],
  ['mongodb', mongodbFiller],
] as const)
  test(`${engine} leaves what the host keeps free, and a bystander can delete`, {
    skip: noLoopDisk(),
  }, async (t) => {
    const disk = new LoopDisk(256 * MIB);
    const cloud = await CloudProcess.start({ dataDir: join(disk.mountPoint, 'data') });
    t.after(async () => {
      await cloud.stop();
      await eventually('nobody holds the disk', () => isRemoved(disk));
    });
    const freeBytes = () => {
      const { bavail, bsize } = statfsSync(disk.mountPoint);
      return bavail * bsize;
    };
    const anyone = await CheckedClient.open(cloud.api);
    const user = anyone.as((await anyone.register()).api_key);
    const make = async (name: string, engine: string) => {
      const json = { name, engine, size_limit_mb: 1000 };
      return (await user.expect(201, DATABASES, { json })) as {
        database_id: string;
        connection: { uri: string };
      };
    };
    const bystander = new MongoClient((await make('few', 'mongodb')).connection.uri);
    const few = bystander.db().collection('few');
    await few.insertMany(Array.from({ length: 8 }, (_, n) => ({ n })));
    const made = await make('much', engine);
    const path = `${DATABASES}/${made.database_id}`;
    if (engine === 'sqlite') await run(user, path, 'CREATE TABLE t (x)');
    const filler = open(made.connection);
    t.after(() => Promise.all([filler.close(), bystander.close()]));

    let refusal: Awaited<ReturnType<Filler['write']>> = null;
    while (refusal === null) refusal = await filler.write();
    assert.match(refusal.message, SAYS_HOST);
    assert.equal(refusal.code, engine === 'sqlite' ? 'SQLITE_FULL' : 14031);
    await assert.rejects(filler.writeAll(), SAYS_HOST);
    assert.ok(freeBytes() > 12 * MIB, `only ${freeBytes()} bytes are left`);
    assert.ok(existsSync(join(disk.mountPoint, 'data', 'reserve')), 'the reserve was touched');
    // Others fill the remaining space, and a little of the reserve.
    writeFileSync(join(disk.mountPoint, 'filler'), Buffer.alloc(freeBytes() - 10 * MIB));
    const statement =
      engine === 'sqlite'
        ? { statement: 'INSERT INTO t VALUES (zeroblob(1000000))' }
        : { command: { insert: 't', documents: [{ x: 'x'.repeat(MIB) }] } };
    const json = { ...statement, read_only: false };
    await user.refused(503, 'host_disk_full', [`${path}/query`, { json }]);

    await assert.rejects(few.insertOne({ x: Buffer.alloc(MIB) }), SAYS_HOST);
    assert.equal((await few.deleteMany({ n: { $lt: 4 } })).deletedCount, 4);
    assert.equal(await few.countDocuments(), 4);
    await user.expect(201, '/api/buckets', { json: { name: 'low' } });
    await eventually('uploads end', async () => (await user.upload('low', 'x', 'x')).status === 507);
    const { components } = await user.expect(200, '/api/system/status');
    assert.equal(components.databases.status, 'degraded');
    assert.match(components.databases.problem, /database growth/);
    assert.match(components.databases.fix, /databases/);

    const before = freeBytes();
    await filler.clear();
    await eventually('what was deleted is free', () => freeBytes() > before + 100 * MIB);
    assert.equal(await filler.write(), null);
    await eventually('uploads go on', async () => (await user.upload('low', 'x', 'x')).status === 200);
  });

function isRemoved(disk: LoopDisk): boolean {
  try {
    disk.remove();
    return true;
  } catch {
    return false;
  }
}
