/** A mongod managed by Cloudlet: its life cycle, and when there is one. With a stand-in for the program. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { MongoClient } from 'mongodb';
import { systemClock } from '../../../../platform/clock.ts';
import { eventually } from '../../../../testing/eventually.ts';
import { newDatabase } from '../../../../testing/new-database.ts';
import { noUsers, testUidBase } from '../../../../testing/own-ground.ts';
import { HostProcesses } from '../../../host-process/host-processes.ts';
import { chooseMongodb } from './choice.ts';
import type { MongodbDeployment } from './deployment.ts';
import { hostDeployment } from './host-deployment.ts';
import { findMongod, type Mongod } from './mongod-program.ts';
import { mongodWords } from './mongod-server.ts';
import { ServerMongodb } from './server-engine.ts';

const CODE = join(import.meta.dirname, '../../../../..');
const STAND_IN = join(import.meta.dirname, '../../../../testing/mongod-stand-in.ts');
const FIRST_PORT = 27_917;

/** An executable file; its folder is removed with the test. */
function program(t: TestContext, script: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-mongod-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  chmodSync(folder, 0o755);
  const path = join(folder, 'mongod');
  writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return path;
}

function cloud(t: TestContext) {
  const ground = mkdtempSync(join(tmpdir(), 'cloudlet-mongodb-'));
  const folder = join(ground, 'databases', 'mongodb');
  mkdirSync(folder, { recursive: true, mode: 0o711 });
  const command = program(t, `exec ${process.execPath} --no-warnings ${STAND_IN} "$@"`);
  const readOnly = [dirname(command), dirname(process.execPath), CODE];
  const mongod: Mongod = { version: '7.0.14', series: '7.0', command, readOnly };
  const uidBase = noUsers === null ? testUidBase() : null;
  const hasUsers = uidBase !== null;
  const alarms = new Map<string, string>();
  const ended: ServerMongodb[] = [];
  t.after(async () => {
    await Promise.all(ended.map((engine) => engine.close()));
    rmSync(ground, { recursive: true, force: true });
  });
  const start = () => {
    const deployment = hostDeployment({
      folder,
      processes: new HostProcesses({ clock: systemClock, group: 'cloudlet-servers', hasUsers, ground }),
      uidBase,
      firstPort: FIRST_PORT,
      alarms: { raise: (code, detail) => alarms.set(code, detail), clear: (code) => alarms.delete(code) },
      warn: () => {},
      find: async () => mongod,
    });
    const engine = new ServerMongodb({ folder, deployment });
    ended.push(engine);
    return { engine, deployment };
  };
  return { folder, alarms, start };
}

function pidOf({ server }: MongodbDeployment): number {
  assert.ok(server.pid !== null);
  return server.pid;
}

async function notesIn(t: TestContext, uri: string) {
  const client = new MongoClient(uri, { serverSelectionTimeoutMS: 20_000 });
  t.after(() => client.close(true));
  return client.db().collection<{ _id: number }>('notes');
}

test('it is started with the first database, comes back when it dies, and keeps its port', async (t) => {
  const { folder, start } = cloud(t);
  const { engine, deployment } = start();
  engine.wake();
  assert.deepEqual(await engine.list(), []);
  assert.equal(deployment.server.pid, null, 'nobody has asked for a database');
  const { available, source, version } = await engine.readiness();
  assert.deepEqual([available, source, version], [true, 'managed', '7.0.14']);
  const database = newDatabase();
  await engine.provision(database, 'secret');
  const { uri, port } = await engine.endpoint(database);
  assert.match(uri('secret'), /[?&]journal=true/);
  const notes = await notesIn(t, uri('secret'));
  await notes.insertOne({ _id: 1 });
  const before = pidOf(deployment);
  process.kill(before, 'SIGKILL');
  await eventually(() => deployment.server.isUp && deployment.server.pid !== before);
  await eventually(() => notes.findOne({ _id: 1 }).catch(() => null));
  assert.equal((await engine.endpoint(database)).port, port);
  const pid = pidOf(deployment);
  const { engine: next, deployment: nextDeployment } = start();
  await next.prepare();
  assert.equal(pidOf(nextDeployment), pid, 'the next Cloudlet takes the one that runs');
  assert.deepEqual(await next.list(), [database.database]);
  await Promise.all([engine.close(), next.close()]);
  assert.throws(() => process.kill(pid, 0), 'an orderly stop ends it');
  assert.equal(readFileSync(join(folder, 'server/keeper/series'), 'utf8'), '7.0\n');
});

test('over data that are gone it is not started', async (t) => {
  const { folder, start } = cloud(t);
  const first = start();
  await first.engine.provision(newDatabase(), 'secret');
  await first.engine.close();
  rmSync(join(folder, 'server/home/data/WiredTiger'));
  await assert.rejects(start().engine.prepare(), /the MongoDB data directory/);
});

test('who made an administrator before us is gone with its data', async (t) => {
  const { folder, start } = cloud(t);
  const data = join(folder, 'server/home/data');
  mkdirSync(data, { recursive: true });
  writeFileSync(join(data, 'strange'), '');
  const { engine } = start();
  await engine.provision(newDatabase(), 'secret');
  assert.ok(!existsSync(join(data, 'strange')));
});

test('it listens on loopback alone, for users that log in', () => {
  const words = mongodWords('/own/data', 27_117).join(' ');
  assert.match(words, /--bind_ip 127\.0\.0\.1 --nounixsocket --auth --noscripting/);
  assert.match(words, /--dbpath \/own\/data --port 27117/);
  assert.match(words, /--wiredTigerCacheSizeGB 0\.25/);
});

describe('the program', () => {
  const says = (t: TestContext, version: string) => program(t, `echo "db version v${version}"`);

  test('is told by what it says of itself', async (t) => {
    const found = await findMongod(null, says(t, '7.0.14-8'));
    assert.deepEqual('version' in found && [found.version, found.series], ['7.0.14', '7.0']);
    for (const [path, reason] of [
      [says(t, '4.4.29'), /4\.4\.29, older than 5\.0/],
      [program(t, 'echo hello'), /does not report its version/],
      [program(t, 'exit 1'), /does not report its version/],
      [null, /mongod is not installed/],
    ] as const) {
      const none = await findMongod(null, path);
      assert.match('reason' in none ? none.reason : '', reason);
    }
  });

  test('of another series is not started on the data there are', async (t) => {
    const other = await findMongod('7.0', says(t, '8.0.4'));
    assert.match('reason' in other ? other.reason : '', /data directory is MongoDB 7\.0/);
    const same = await findMongod('7.0', says(t, '7.0.99'));
    assert.ok('version' in same);
  });
});

test('a server by URL comes first, then one that has databases, then the engine that has, then a mongod', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-choice-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const settings = { mongodbUrl: '', mongodbServer: 'host', databaseHost: '' } as const;
  const choose = (more: object = {}, mongod: string | null = '/usr/bin/mongod') => {
    const choice = chooseMongodb({ ...settings, ...more }, folder, mongod);
    return choice.kind === 'built-in' ? choice.why : choice.kind;
  };
  assert.equal(choose({ mongodbUrl: 'mongodb://a:b@127.0.0.1/' }), 'url');
  assert.equal(choose(), 'host');
  assert.equal(choose({}, null), null);
  assert.match(`${choose({ mongodbServer: 'built-in' })}`, /mongod is not used: CLOUDLET_MONGODB_SERVER/);
  assert.match(`${choose({ databaseHost: 'db.example' })}`, /CLOUDLET_DATABASE_HOST/);
  mkdirSync(join(folder, 'd_0123456789abcdef'));
  assert.match(`${choose()}`, /already has databases in Cloudlet's own engine/);
  mkdirSync(join(folder, 'server/keeper'), { recursive: true });
  writeFileSync(join(folder, 'server/keeper/port'), '27117\n');
  assert.match(`${choose()}`, /own engine/, 'a server that never answered has none');
  writeFileSync(join(folder, 'server/keeper/series'), '7.0\n');
  assert.equal(choose({}, null), 'host', 'its databases stay when the program goes');
  assert.equal(choose({ mongodbServer: 'built-in' }), 'host');
});
