/** A process started before its database: which database gets it, its sandbox, and when it ends. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { systemClock } from '../../../platform/clock.ts';
import { eventually } from '../../../testing/eventually.ts';
import { openMongodb } from '../../../testing/mongodb-fixture.ts';
import { noUsers, testUidBase } from '../../../testing/own-ground.ts';
import { openSqlite } from '../../../testing/sqlite-fixture.ts';
import { socketPair } from '../../dialed.ts';
import { findIsolation } from '../../host-process/isolation.ts';
import { canMoveViews } from '../../host-process/moved-view.ts';
import { identify, isThere } from '../../host-process/process-identity.ts';
import { AT } from '../../host-process/view-script.ts';
import type { LaunchedChild } from '../child-host.ts';
import { ChildSlots } from '../child-slots.ts';
import { SpareChild, type SpareOptions } from './spare-child.ts';
import { SpareUsers } from './spare-users.ts';

const RANGE = noUsers === null ? { first: testUidBase() + 200_000, count: 50 } : null;
const skip = !canMoveViews(await findIsolation(noUsers === null)) && 'this host moves no views';
const PLENTY = 2 ** 40;

function spareOptions(more: Partial<SpareOptions> = {}): SpareOptions {
  const users = new SpareUsers(RANGE);
  return { users, restMs: 0, keptMs: 3_600_000, availableBytes: () => PLENTY, ...more };
}

function fixture(options: Parameters<typeof openSqlite>[0] = {}) {
  const opened = openSqlite({ spares: spareOptions(), ...options });
  after(() => opened.close());
  return opened;
}

const statusOf = (pid: number | null, name: string) =>
  new RegExp(`^${name}:[ \t]*(.*)$`, 'm').exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];

/** The isolation of a process from everything else. */
function wallsOf(pid: number | null) {
  const names = ['CapEff', 'CapPrm', 'CapInh', 'CapBnd', 'CapAmb', 'NoNewPrivs', 'Seccomp', 'Groups'];
  return {
    ...Object.fromEntries(names.map((name) => [name, statusOf(pid, name)])),
    limits: fs.readFileSync(`/proc/${pid}/limits`, 'utf8'),
    mounts: fs.readFileSync(`/proc/${pid}/mountinfo`, 'utf8').split('\n').length,
    isApart: ['mnt', 'net', 'pid'].map(
      (space) => fs.readlinkSync(`/proc/${pid}/ns/${space}`) !== fs.readlinkSync(`/proc/self/ns/${space}`),
    ),
  };
}

test('the next database gets the process that is ready, behind the walls of one that was started for it', {
  skip,
}, async () => {
  const { engine, folder, make, run } = fixture();
  const before = await make();
  await run(before, 'CREATE TABLE a AS SELECT 1 AS b');
  await eventually(() => engine.hasSpare);
  const database = await make();
  assert.deepEqual(await run(database, 'SELECT 1'), [[1]]);
  assert.equal(engine.hasSpare, false);
  const [first, given] = [engine.processOf(before), engine.processOf(database)];
  const isolation = (await engine.readiness()).reason;
  const [expected, found] = [wallsOf(first), wallsOf(given)];
  // Its folder hides the empty one in which it started.
  if (isolation === null) assert.equal(found.mounts, expected.mounts + 1);
  assert.deepEqual({ ...found, mounts: 0 }, { ...expected, mounts: 0 });
  const owner = fs.statSync(join(folder, database.database)).uid;
  assert.equal(statusOf(given, 'Uid'), Array(4).fill(owner).join('\t'));
  assert.equal(statusOf(given, 'Gid'), Array(4).fill(owner).join('\t'));
  assert.notEqual(statusOf(first, 'Uid'), RANGE === null ? null : statusOf(given, 'Uid'));
  if (isolation === null) {
    const root = `/proc/${given}/root`;
    assert.ok(fs.existsSync(join(root, AT, 'db.sqlite')));
    assert.deepEqual(fs.readdirSync(join(root, folder)), ['.code']);
    assert.equal(fs.readlinkSync(`/proc/${given}/cwd`).endsWith(AT), true);
  }
});

test('a database that sleeps wakes in it; afterwards its folder is its own user’s, and all is there', {
  skip,
}, async () => {
  const { engine, folder, make, run } = fixture({ idleMs: 300 });
  const database = await make();
  const ownerOf = () => fs.statSync(join(folder, database.database)).uid;
  const own = ownerOf();
  await run(database, 'CREATE TABLE a (b)');
  await eventually(() => engine.hasSpare && engine.processOf(database) === null);
  await run(database, 'INSERT INTO a VALUES (1)');
  if (RANGE !== null) assert.ok(ownerOf() >= RANGE.first);
  await eventually(() => engine.processOf(database) === null && ownerOf() === own);
  assert.deepEqual(await run(database, 'SELECT b FROM a'), [[1]]);
});

test('after a kill the next start knows whose the folders are, and gives those ids to nobody else', {
  skip,
}, async (t) => {
  if (RANGE === null) return t.skip('processes have no users of their own');
  const { engine, folder, make, run } = fixture();
  const database = await make();
  await eventually(() => engine.hasSpare);
  await engine.restart(database);
  await run(database, 'CREATE TABLE a AS SELECT 1 AS b');
  const { uid } = fs.statSync(join(folder, database.database));
  assert.equal(uid, RANGE.first);
  const spares = spareOptions();
  const next = fixture({ folder, spares });
  await engine.close();
  fs.chownSync(join(folder, database.database), uid, uid);
  await next.engine.prepare();
  assert.equal(spares.users.take(), RANGE.first + 1);
  assert.deepEqual(await next.run(database, 'SELECT b FROM a'), [[1]]);
});

test('of MongoDB, too', { skip }, async () => {
  const { engine, make, close } = openMongodb({ firstPort: 28_330, spares: spareOptions() });
  after(close);
  await make();
  await eventually(() => engine.hasSpare);
  const { database } = await make();
  assert.deepEqual((await engine.tables(database, new AbortController().signal)).toJSON(), []);
  assert.equal(engine.hasSpare, false);
});

test('none is made without memory, and one ends when there is little, or nobody opens a database', {
  skip,
}, async () => {
  let available = 0;
  const { engine, make } = fixture({ spares: spareOptions({ availableBytes: () => available }) });
  await make();
  await sleep(2500);
  assert.equal(engine.hasSpare, false);
  available = PLENTY;
  await eventually(() => engine.hasSpare);
  available = 2 ** 20;
  await eventually(() => !engine.hasSpare);
  const seldom = fixture({ spares: spareOptions({ keptMs: 10_000 }) });
  await seldom.make();
  await eventually(() => seldom.engine.hasSpare);
  await eventually(() => !seldom.engine.hasSpare);
});

test('one that is ready only when nobody wants it any more ends, too', async () => {
  const [own, other] = await socketPair();
  other.once('data', () => other.write('ready'));
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const { promise: isWaited, resolve: wait } = Promise.withResolvers<void>();
  const launched = { socket: own, ended, kill: resolve, said: () => '' } as unknown as LaunchedChild;
  const spare = new SpareChild({
    ...spareOptions({ keptMs: 4000 }),
    clock: systemClock,
    log: pino({ level: 'silent' }),
    slots: new ChildSlots(6),
    launch: async () => {
      wait();
      await sleep(7000);
      return launched;
    },
  });
  after(() => [own, other].forEach((socket) => void socket.destroy()));
  spare.wanted();
  await isWaited;
  await ended;
  await spare.close();
});

test('it takes a slot, and gives it up to whoever needs one', { skip }, async () => {
  const slots = new ChildSlots(5);
  const { engine, make, run } = fixture({ slots });
  const databases = [await make({ accountId: 1 }), await make({ accountId: 2 })];
  await eventually(() => engine.hasSpare);
  assert.equal(slots.free, 2);
  for (const accountId of [3, 4, 5]) databases.push(await make({ accountId }));
  for (const database of databases) assert.deepEqual(await run(database, 'SELECT 1'), [[1]]);
  assert.equal(slots.free, 0);
  assert.ok(databases.every((database) => engine.processOf(database) !== null));
});

test('one that ended meanwhile is nobody’s', { skip }, async () => {
  const { engine, make, run } = fixture();
  const first = await make();
  await eventually(() => engine.hasSpare);
  const others = childrenOf(process.pid).filter((pid) => pid !== engine.processOf(first));
  assert.notEqual(others.length, 0);
  others.forEach(kill);
  const second = await make();
  for (const database of [first, second]) assert.deepEqual(await run(database, 'SELECT 1'), [[1]]);
});

test('it ends with Cloudlet, however that ends', { skip }, async () => {
  const { folder } = fixture();
  const module = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
  const script = `
    import { openSqlite } from ${module('../../../testing/sqlite-fixture.ts')};
    import { eventually } from ${module('../../../testing/eventually.ts')};
    import { SpareUsers } from ${module('./spare-users.ts')};
    const users = new SpareUsers(${JSON.stringify(RANGE)});
    const spares = { users, restMs: 0, keptMs: 1e9, availableBytes: () => 2 ** 40 };
    const { engine, make } = openSqlite({ folder: ${JSON.stringify(folder)}, spares });
    await make();
    await eventually(() => engine.hasSpare);
    console.log('ready');`;
  const cloud = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  after(() => cloud.kill('SIGKILL'));
  await once(cloud.stdout, 'data');
  const children = childrenOf(cloud.pid ?? 0).flatMap((pid) => identify(pid) ?? []);
  assert.ok(children.length >= 2);
  cloud.kill('SIGKILL');
  await eventually(() => children.every(({ pid }) => !isThere(pid)));
});

/** Node processes below one process. */
function childrenOf(parent: number): number[] {
  const all = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const parentOf = (pid: number): number => {
    try {
      return Number(statusOf(pid, 'PPid'));
    } catch {
      return 0;
    }
  };
  const isBelow = (pid: number): boolean => {
    const above = parentOf(pid);
    return above === parent || (above > 1 && isBelow(above));
  };
  return all.map(Number).filter((pid) => isBelow(pid) && isNode(pid));
}

function isNode(pid: number): boolean {
  try {
    // Preceded by the path of its root.
    return fs.readlinkSync(`/proc/${pid}/exe`).endsWith(process.execPath);
  } catch {
    return false;
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It ended by itself.
  }
}
