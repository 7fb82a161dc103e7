/** The number of processes of all engines together, and of one account. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { EngineDatabase } from '../../databases/engine.ts';
import type { AppError } from '../../platform/errors.ts';
import { eventually } from '../../testing/eventually.ts';
import { openMongodb } from '../../testing/mongodb-fixture.ts';
import { openSqlite } from '../../testing/sqlite-fixture.ts';
import { ChildSlots } from './child-slots.ts';

const ENDLESS = 'WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c';

test('engines share the slots: the one that was used longest ago ends, of whichever engine', async () => {
  const slots = new ChildSlots(3);
  const [sqlite, mongodb] = [openSqlite({ slots }), openMongodb({ slots, firstPort: 28_300 })];
  after(() => Promise.all([sqlite.close(), mongodb.close()]));
  const files: EngineDatabase[] = [];
  for (const accountId of [1, 2]) files.push(await sqlite.make({ accountId }));
  const made = [await mongodb.make({ accountId: 3 }), await mongodb.make({ accountId: 4 })];
  for (let round = 0; round < 2; round++) {
    for (const database of files) assert.deepEqual(await sqlite.run(database, 'SELECT 1'), [[1]]);
    for (const { database } of made) await mongodb.engine.tables(database, new AbortController().signal);
  }
  const open = [
    ...files.map((database) => sqlite.engine.processOf(database)),
    ...made.map(({ database }) => mongodb.engine.processOf(database)),
  ];
  assert.deepEqual(
    open.map((pid) => pid !== null),
    [false, true, true, true],
  );
});

test('an account whose databases are all at work leaves slots for the others', async () => {
  const { engine, make, run, close } = openSqlite({ slots: new ChildSlots(4) });
  let isDone = false;
  try {
    const limits = { connections: 5, statementMs: 60_000 };
    const greedy = await Promise.all(Array.from({ length: 6 }, () => make({ accountId: 1, limits })));
    const neighbours = [await make({ accountId: 2 }), await make({ accountId: 3 })];
    const query = { statement: ENDLESS, params: [], readOnly: true, maxRows: 1, maxBytes: 1000 };
    const end = new AbortController();
    const { signal } = end;
    const atWork = greedy.map((database) =>
      engine.query(database, { ...query, timeoutMs: 60_000, signal }).catch(() => {
        isDone = true;
      }),
    );
    for (let round = 0; round < 3; round++)
      for (const neighbour of neighbours) assert.deepEqual(await run(neighbour, 'SELECT 1'), [[1]]);
    assert.equal(isDone, false);
    assert.equal(greedy.filter((database) => engine.processOf(database) !== null).length, 3);
    end.abort();
    await Promise.all(atWork);
  } finally {
    await close();
  }
});

test('an account that has its share ends one of its own, and leaves those of others alone', async () => {
  const { engine, make, run, close } = openSqlite({ slots: new ChildSlots(4) });
  try {
    const neighbour = await make({ accountId: 2 });
    await run(neighbour, 'SELECT 1');
    const own = await Promise.all(Array.from({ length: 6 }, () => make({ accountId: 1 })));
    for (const database of own) assert.deepEqual(await run(database, 'SELECT 1'), [[1]]);
    assert.notEqual(engine.processOf(neighbour), null);
  } finally {
    await close();
  }
});

/**
 * Endless statements, each in its own database, sent again when cancelled; the reasons why they were
 * cancelled.
 */
async function attack({ engine, make }: ReturnType<typeof openSqlite>, accountId: number, databases: number) {
  const end = new AbortController();
  const { signal } = end;
  const told: unknown[] = [];
  const limits = { connections: 5, statementMs: 60_000 };
  const query = { statement: ENDLESS, params: [], readOnly: true, maxRows: 1, maxBytes: 1000, signal };
  const made = await Promise.all(Array.from({ length: databases }, () => make({ accountId, limits })));
  const running = made.map(async (database) => {
    while (!signal.aborted)
      await engine.query(database, { ...query, timeoutMs: 60_000 }).catch((error) => told.push(error));
  });
  const stop = async () => {
    end.abort(new Error('the attack is over'));
    await Promise.all(running);
  };
  return { made, told, stop };
}

test('endless statements of two accounts give way to a third, and their owners are told why', async () => {
  const fixture = openSqlite({ slots: new ChildSlots(4) });
  const { engine, make, run, close } = fixture;
  const victims = [await make({ accountId: 3 }), await make({ accountId: 3 })];
  const attackers = await Promise.all([1, 2].map((accountId) => attack(fixture, accountId, 4)));
  try {
    const isFull = () =>
      attackers.flatMap(({ made }) => made).filter((each) => engine.processOf(each) !== null).length === 4;
    await eventually(isFull);
    for (let round = 0; round < 3; round++)
      for (const victim of victims) assert.deepEqual(await run(victim, 'SELECT 1'), [[1]]);
    const told = attackers.flatMap(({ told }) => told) as AppError[];
    for (const { code, retryAfterSeconds } of told) {
      assert.equal(code, 'engine_unavailable');
      assert.ok(retryAfterSeconds);
    }
    // On a busy host some statements may have waited in vain.
    const ended = told.filter(({ message }) => !/^The statement was not run/.test(message));
    assert.ok(ended.length > 0);
    for (const { message, hint } of ended) {
      assert.match(
        message,
        /^The statement was ended after \d+ s: another account waited for one of the 4 slots/,
      );
      assert.match(hint ?? '', /shorter statements/);
    }
  } finally {
    await Promise.all(attackers.map(({ stop }) => stop()));
    await close();
  }
});

test('files of two accounts that take long to check give way to a third, and their databases stay', async () => {
  const slots = new ChildSlots(4);
  const { engine, make, run, close } = openSqlite({ slots });
  const owners = [1, 1, 1, 2];
  const [victim, ...loaded] = await Promise.all([3, ...owners].map((accountId) => make({ accountId })));
  assert.ok(victim);
  const end = new AbortController();
  const { signal } = end;
  const file = `CREATE TABLE t (n);\nINSERT INTO t ${ENDLESS};\n`;
  try {
    for (const database of loaded) await run(database, 'CREATE TABLE kept (n)');
    const loads = loaded.map((database) =>
      engine.load(database, Readable.from([Buffer.from(file)]), { signal }),
    );
    const first = Promise.race(loads).catch((error: AppError) => error);
    // The loads hold all slots by then: the idle processes of the databases have made room.
    const hasNone = (database: EngineDatabase) => engine.processOf(database) === null;
    await eventually(() => slots.free === 0 && [victim, ...loaded].every(hasNone));
    assert.deepEqual(await run(victim, 'SELECT 1'), [[1]]);
    const { code, message, hint } = (await first) as AppError;
    assert.equal(code, 'engine_unavailable');
    assert.match(message, /^The load was ended after \d+ s: another account waited for one of the 4 slots/);
    assert.match(hint ?? '', /Load the file again later/);
    end.abort(new Error('the attack is over'));
    await Promise.allSettled(loads);
    for (const database of loaded) assert.deepEqual(await run(database, 'SELECT count(*) FROM kept'), [[0]]);
  } finally {
    end.abort();
    await close();
  }
});

test('who waits for a slot gets it in turn, and who has a quarter of them after who has less', async () => {
  const slots = new ChildSlots(8);
  const leave: (() => void)[] = [];
  for (const accountId of [1, 1, 1, 1, 1, 2, 2, 2]) leave.push(await slots.take(accountId));
  const got: number[] = [];
  const left = new AbortController();
  const waiting = [1, 2, 3, 1, 3, 3].map((accountId) =>
    slots.take(accountId).then((give) => {
      got.push(accountId);
      return give;
    }),
  );
  const gone = slots.take(4, left.signal);
  left.abort(new Error('gone'));
  await assert.rejects(gone, /gone/);
  assert.equal(slots.isFree(5), false);
  for (const give of leave) {
    give();
    give();
    await setImmediate();
  }
  for (const each of waiting) (await each)();
  assert.deepEqual(got, [3, 3, 1, 2, 1, 3]);
  assert.equal(slots.isFree(5), true);
});

test('the time in the queue is not the time of the statement: one that never ran says so', async () => {
  const fixture = openSqlite({ slots: new ChildSlots(1, 2000) });
  const { engine, make, close } = fixture;
  const late = await make({ accountId: 1 });
  const attacker = await attack(fixture, 1, 1);
  try {
    await eventually(() => engine.processOf(attacker.made[0] as EngineDatabase) !== null);
    const { signal } = new AbortController();
    const query = { statement: 'SELECT 1', params: [], readOnly: true, maxRows: 1, maxBytes: 1000, signal };
    await assert.rejects(engine.query(late, { ...query, timeoutMs: 500 }), {
      code: 'engine_unavailable',
      message: /^The statement was not run: it waited (?:[2-9]|\d\d+) s for a slot/,
      retryAfterSeconds: 5,
    });
  } finally {
    await attacker.stop();
    await close();
  }
});
