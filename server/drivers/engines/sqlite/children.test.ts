/**
 * The processes of databases: their number, their end, their view of the host, and which requests they delay.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { getPriority } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EngineDatabase } from '../../../databases/engine.ts';
import { isAppError } from '../../../platform/errors.ts';
import { eventually } from '../../../testing/eventually.ts';
import { allowedProcessors, slicesNs } from '../../../testing/processors.ts';
import { openSqlite, type SqliteFixture } from '../../../testing/sqlite-fixture.ts';
import { ChildSlots } from '../../engine-children/child-slots.ts';
import { isThere } from '../../host-process/process-identity.ts';
import { withoutFirst } from '../../host-process/processor-order.ts';
import { AT } from '../../host-process/view-script.ts';

const NOBODY_LEAVES = new AbortController().signal;
const ENDLESS = 'WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c';
const HUGE = `WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 100000)
  SELECT count(DISTINCT randomblob(1000000)) FROM c`;
/** For statements that are slow on a busy host, where they run last. */
const PATIENT = { connections: 20, statementMs: 120_000 };
/** The time slice for processes that answer quickly. */
const SHORT_NS = 100_000;
const WHOLE = { maxRows: 10, maxBytes: 1000, timeoutMs: 20_000, signal: NOBODY_LEAVES } as const;

function fixture(options: Parameters<typeof openSqlite>[0] = {}): SqliteFixture {
  const opened = openSqlite(options);
  after(() => opened.close());
  return opened;
}

describe('how many there are', () => {
  test('more databases than processes are used at the same time', async () => {
    const { engine, make, run } = fixture({ slots: new ChildSlots(2) });
    const databases = await Promise.all(Array.from({ length: 5 }, () => make()));
    for (let round = 0; round < 2; round++) {
      const answers = await Promise.all(databases.map((database) => run(database, 'SELECT 1')));
      assert.deepEqual(answers, Array(5).fill([[1]]));
    }
    assert.ok(databases.filter((database) => engine.processOf(database) !== null).length <= 2);
  });

  test('a call is not lost when its process is ended for another database', async () => {
    // Six databases of one account share a slot: on a busy host they wait long.
    const { make, run } = fixture({ slots: new ChildSlots(2, 300_000) });
    const databases = await Promise.all(Array.from({ length: 6 }, () => make()));
    const use = async (database: EngineDatabase) => {
      for (let time = 0; time < 15; time++) assert.deepEqual(await run(database, 'SELECT 1'), [[1]]);
    };
    await Promise.all(databases.map(use));
  });

  test('one that is not used ends, with all written back, and is there again when it is', async () => {
    const { engine, folder, make, run } = fixture({ idleMs: 300 });
    const database = await make();
    await run(database, 'CREATE TABLE a (b)');
    await run(database, 'INSERT INTO a VALUES (1)');
    await eventually(() => engine.processOf(database) === null);
    assert.ok(!fs.existsSync(join(folder, database.database, 'db.sqlite-wal')));
    assert.deepEqual(await run(database, 'SELECT b FROM a'), [[1]]);
  });

  test('what is deleted is given back to the disk while nobody is there', async () => {
    const { engine, make, run } = fixture();
    const database = await make();
    await run(database, 'CREATE TABLE a AS SELECT zeroblob(10000000) AS b');
    await eventually(async () => (await engine.measure(database)).sizeBytes > 10_000_000);
    await run(database, 'DELETE FROM a');
    await eventually(async () => (await engine.measure(database)).sizeBytes < 3_000_000);
  });

  test('what was counted stays when one ends', async () => {
    const { engine, make, run } = fixture();
    const database = await make();
    await run(database, 'CREATE TABLE a (b)');
    await run(database, 'INSERT INTO a VALUES (1), (2)');
    await engine.call(database, {
      kind: 'size_limit',
      sizeLimitBytes: 2 ** 20,
      mayGrow: true,
      limits: database.limits,
    });
    await eventually(async () => (await engine.measure(database)).rowsWritten === 2);
    await engine.rotate(database, 'next');
    await run(database, 'INSERT INTO a VALUES (3)');
    await eventually(async () => (await engine.measure(database)).rowsWritten === 3);
  });
});

describe('whom one holds up', () => {
  test('a statement that does not end is killed at its limit', { timeout: 60_000 }, async () => {
    const { engine, make, run } = fixture();
    const [slow, neighbour] = [await make({ limits: { connections: 5, statementMs: 1000 } }), await make()];
    await run(slow, 'CREATE TABLE a (b)');
    await run(slow, 'INSERT INTO a VALUES (1)');
    const endless = { ...WHOLE, statement: ENDLESS, params: [], readOnly: true, timeoutMs: 600_000 };
    const killed = engine.query(slow, endless).then(
      () => false,
      (error) => isAppError(error, 'query_timeout'),
    );
    for (let i = 0; i < 20; i++) assert.deepEqual(await run(neighbour, 'SELECT 1'), [[1]]);
    assert.equal(await killed, true);
    assert.deepEqual(await run(slow, 'SELECT b FROM a'), [[1]]);
  });

  test('one that computes for long yields the processor to others, until it has answered', async (t) => {
    const { engine, make, run } = fixture();
    const [slow, neighbour] = [await make({ limits: PATIENT }), await make()];
    for (const database of [slow, neighbour]) await run(database, 'SELECT 1');
    const niceOf = (database: EngineDatabase) => getPriority(engine.processOf(database) ?? 0);
    const processorsOf = (database: EngineDatabase) => allowedProcessors(engine.processOf(database));
    const usual = niceOf(neighbour);
    // Control groups divide the processor time; without the permission no process could be raised again.
    if (usual === 0 || process.getuid?.() !== 0) return t.skip('processes are not told apart by nice values');
    const running = run(slow, ENDLESS.replace('FROM c)', 'FROM c LIMIT 20000000)'));
    await eventually(() => niceOf(slow) === 19);
    const all = allowedProcessors('self');
    await eventually(() => processorsOf(slow) === (withoutFirst(all) ?? all));
    assert.deepEqual(await run(neighbour, 'SELECT 1'), [[1]]);
    assert.equal(niceOf(neighbour), usual);
    assert.equal(processorsOf(neighbour), all);
    assert.deepEqual(await running, [[20_000_000]]);
    await eventually(() => niceOf(slow) === usual && processorsOf(slow) === all);
  });

  test('one that computes in short pieces without a rest leaves a processor free, until it rests', async (t) => {
    const { engine, make, run } = fixture();
    const busy = await make({ limits: PATIENT });
    await run(busy, 'SELECT 1');
    const processors = () => allowedProcessors(engine.processOf(busy));
    const all = allowedProcessors('self');
    const others = withoutFirst(all);
    if (others === null) return t.skip('there is one processor');
    const isOver = new AbortController();
    const work = (async () => {
      while (!isOver.signal.aborted) await run(busy, ENDLESS.replace('FROM c)', 'FROM c LIMIT 100000)'));
    })();
    await eventually(() => processors() === others);
    isOver.abort();
    await work;
    await eventually(() => processors() === all);
  });

  test('one that answers quickly wants short slices of a processor, one that computes for long does not', async (t) => {
    const { engine, make, run } = fixture();
    const [slow, quick] = [await make({ limits: PATIENT }), await make()];
    for (const database of [slow, quick]) await run(database, 'SELECT 1');
    const slicesOf = (database: EngineDatabase) => slicesNs(engine.processOf(database) ?? 0);
    if (slicesNs('self').length === 0) return t.skip('this kernel tells nobody the slices, or has none');
    assert.deepEqual([...new Set(slicesOf(quick))], [SHORT_NS]);
    const running = run(slow, ENDLESS.replace('FROM c)', 'FROM c LIMIT 20000000)'));
    await eventually(() => !slicesOf(slow).includes(SHORT_NS));
    assert.deepEqual(await running, [[20_000_000]]);
    await eventually(() => [...new Set(slicesOf(slow))].join() === String(SHORT_NS));
    assert.deepEqual([...new Set(slicesOf(quick))], [SHORT_NS]);
  });

  test('one that waits, but does not compute, yields to nobody', async (t) => {
    const { engine, make, run } = fixture();
    const database = await make();
    await run(database, 'SELECT 1');
    const pid = engine.processOf(database) ?? 0;
    const usual = getPriority(pid);
    if (usual === 0 || process.getuid?.() !== 0) return t.skip('processes are not told apart by nice values');
    process.kill(pid, 'SIGSTOP');
    const running = run(database, 'SELECT 1');
    await sleep(1500);
    assert.equal(getPriority(pid), usual);
    process.kill(pid, 'SIGCONT');
    assert.deepEqual(await running, [[1]]);
  });

  test('what a busy one has not read is bounded, also when nobody waits for it', async () => {
    const { engine, make, run } = fixture();
    const database = await make({ limits: { connections: 5, statementMs: 2000 } });
    const endless = { ...WHOLE, statement: ENDLESS, params: [], readOnly: true, timeoutMs: 600_000 };
    const busy = engine.query(database, endless).catch(() => {});
    const body = Buffer.alloc(8 * 2 ** 20);
    const giveUpSoon = async () => {
      const signal = AbortSignal.timeout(10);
      await engine.call(database, { kind: 'hrana', path: 'v3/pipeline' }, { body, signal }).catch((error) => {
        if (isAppError(error, 'overloaded')) throw error;
      });
    };
    const sendMany = async () => {
      for (let i = 0; i < 20; i++) await giveUpSoon();
    };
    await assert.rejects(sendMany(), (error) => isAppError(error, 'overloaded'));
    await busy;
    assert.deepEqual(await run(database, 'SELECT 1'), [[1]]);
  });

  test('one that wants all the memory fails alone', async () => {
    const { make, run } = fixture();
    const [hungry, neighbour] = [await make({ limits: PATIENT }), await make()];
    await assert.rejects(run(hungry, HUGE), { name: 'QueryFailed', engineCode: 'SQLITE_NOMEM' });
    assert.deepEqual(await run(neighbour, 'SELECT 1'), [[1]]);
    assert.deepEqual(await run(hungry, 'SELECT 1'), [[1]]);
  });

  test('a second process waits until the first has let go of the file', async () => {
    const first = fixture();
    const database = await first.make();
    await first.run(database, 'CREATE TABLE a (b)');
    const second = fixture({ folder: first.folder });
    const waiting = second.run(database, 'INSERT INTO a VALUES (1) RETURNING b');
    await first.run(database, 'INSERT INTO a VALUES (0)');
    await first.engine.close();
    assert.deepEqual(await waiting, [[1]]);
    assert.deepEqual(await second.run(database, 'SELECT b FROM a'), [[0], [1]]);
  });

  test('all end with Cloudlet, also in the middle of a statement', async () => {
    const { folder } = fixture();
    const module = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
    const script = `
      import { openSqlite } from ${module('../../../testing/sqlite-fixture.ts')};
      const { engine, make, run } = openSqlite({ folder: ${JSON.stringify(folder)} });
      const database = await make();
      await run(database, 'SELECT 1');
      console.log(engine.processOf(database));
      await run(database, ${JSON.stringify(ENDLESS)});`;
    const cloud = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [said] = (await once(cloud.stdout, 'data')) as [Buffer];
    const child = Number(said.toString());
    assert.ok(isThere(child));
    cloud.kill('SIGKILL');
    await eventually(() => !isThere(child));
  });
});

describe('what one sees', () => {
  test('is its folder and no other', async (context) => {
    const { engine, folder, make, run } = fixture();
    const reason = (await engine.readiness()).reason;
    if (reason !== null) return context.skip(reason);
    const [mine, other] = [await make(), await make()];
    await run(mine, 'SELECT 1');
    const root = `/proc/${engine.processOf(mine)}/root`;
    assert.ok(!fs.existsSync(join(root, folder, other.database)));
    assert.ok(!fs.existsSync(join(root, folder, mine.database)));
    assert.deepEqual(fs.readdirSync(join(root, folder)), ['.code']);
    assert.ok(fs.existsSync(join(root, AT, 'db.sqlite')));
  });

  test('is not what a planted link names', async (context) => {
    const { engine, folder, make, run } = fixture();
    const reason = (await engine.readiness()).reason;
    if (reason !== null) return context.skip(reason);
    const [mine, other] = [await make(), await make()];
    for (const database of [mine, other]) await run(database, 'CREATE TABLE a (b)');
    await run(other, "INSERT INTO a VALUES ('secret')");
    await engine.rotate(mine, 'next');
    const [file, secret] = [mine, other].map(({ database }) => join(folder, database, 'db.sqlite')) as [
      string,
      string,
    ];
    const before = fs.readFileSync(secret);
    fs.symlinkSync(secret, join(folder, mine.database, 'copy'));
    const { stream } = await engine.dump(mine, 'sqlite', { signal: NOBODY_LEAVES });
    assert.ok(!(await buffer(stream)).includes('secret'));
    await engine.rotate(mine, 'next');
    fs.rmSync(file);
    fs.symlinkSync(secret, file);
    await assert.rejects(run(mine, 'SELECT * FROM a'), (error) => isAppError(error, 'engine_unavailable'));
    await assert.rejects(engine.dump(mine, 'sqlite', { signal: NOBODY_LEAVES }));
    assert.deepEqual(fs.readFileSync(secret), before);
    await engine.drop(mine.database);
    assert.deepEqual(await run(other, 'SELECT b FROM a'), [['secret']]);
  });
});
