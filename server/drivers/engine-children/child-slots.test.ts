/** How many processes there are of all engines together, and of one account. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { EngineDatabase } from '../../databases/engine.ts';
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
