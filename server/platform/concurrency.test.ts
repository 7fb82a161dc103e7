import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { cases } from '../testing/cases.ts';
import { Counts, endOfTick, KeyedMutex, ScanTurns } from './concurrency.ts';

test('work on one key runs one after the other in order, work on others at the same time', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.array(fc.record({ key: fc.constantFrom('a', 'b', 'c'), fails: fc.boolean() }), { maxLength: 12 }),
      async (scheduler, tasks) => {
        const locks = new KeyedMutex();
        const busy = new Set<string>();
        const done = new Map<string, number[]>();
        const runs = tasks.map(({ key, fails }, index) =>
          locks.run(key, async () => {
            assert.ok(!busy.has(key), 'two at once');
            busy.add(key);
            await scheduler.schedule(Promise.resolve(), `${key}${index}`);
            busy.delete(key);
            done.set(key, [...(done.get(key) ?? []), index]);
            if (fails) throw new Error(`task ${index}`);
            return index;
          }),
        );
        const settled = Promise.allSettled(runs);
        await scheduler.waitFor(settled);
        for (const [index, result] of (await settled).entries()) {
          if (tasks[index]?.fails) assert.equal(result.status, 'rejected');
          else assert.deepEqual(result, { status: 'fulfilled', value: index });
        }
        for (const [key, order] of done) {
          const asked = tasks.flatMap((task, index) => (task.key === key ? [index] : []));
          assert.deepEqual(order, asked);
        }
      },
    ),
    { numRuns: cases(100) },
  );
});

test('another key is not waited for', async () => {
  const locks = new KeyedMutex();
  let release = () => {};
  const held = locks.run('a', () => new Promise<void>((resolve) => (release = resolve)));
  assert.equal(await locks.run('b', async () => 'through'), 'through');
  release();
  await held;
});

test('it is idle once the last work has ended, also work that began or failed meanwhile', async () => {
  const locks = new KeyedMutex();
  const done: string[] = [];
  const first = locks.run('a', async () => {
    await setImmediate();
    done.push('first');
    void locks.run('b', async () => void done.push('second'));
    throw new Error('no');
  });
  const failed = assert.rejects(first, /no/);
  assert.deepEqual([locks.isBusy('a'), locks.isBusy('b')], [true, false]);
  await locks.idle();
  assert.deepEqual(done, ['first', 'second']);
  assert.deepEqual([locks.isBusy('a'), locks.isBusy('b')], [false, false]);
  await failed;
});

test('what was added to a count is taken away once, by whoever added it', () => {
  const counts = new Counts<string>();
  const [first, second] = [counts.add('a'), counts.add('a')];
  assert.deepEqual([counts.of('a'), counts.of('b')], [2, 0]);
  first();
  first();
  assert.equal(counts.of('a'), 1);
  second();
  assert.equal(counts.of('a'), 0);
});

test('who waits for the end of one turn goes on in step with the others', async () => {
  const steps: string[] = [];
  const walk = async (who: string) => {
    await endOfTick();
    for (const step of [1, 2, 3]) {
      steps.push(`${who}${step}`);
      await undefined;
    }
  };
  const nextTick = new Promise<void>((resolve) => {
    process.nextTick(() => resolve(walk('b')));
  });
  await Promise.all([walk('a'), nextTick]);
  assert.deepEqual(steps, ['a1', 'b1', 'a2', 'b2', 'a3', 'b3']);
});

test('who asks again after the end of a turn waits for the next one', async () => {
  const first = endOfTick();
  assert.equal(endOfTick(), first);
  await first;
  const second = endOfTick();
  assert.notEqual(second, first);
  let hasCome = false;
  void second.then(() => {
    hasCome = true;
  });
  await Promise.resolve();
  assert.equal(hasCome, false, 'other events get their turn first');
  await second;
});

test('of the walks of many accounts one reads in a turn of the event loop, and one of each goes on', async () => {
  const turns = new ScanTurns();
  const [inOneTurn, walking] = [{ reads: 0, most: 0 }, new Set<number>()];
  const read = () => {
    inOneTurn.reads++;
    inOneTurn.most = Math.max(inOneTurn.most, inOneTurn.reads);
    void setImmediate().then(() => inOneTurn.reads--);
  };
  const walk = (accountId: number) =>
    turns.walk({ accountId, kind: 'find' }, undefined, async (inTurn) => {
      assert.ok(!walking.has(accountId), 'two walks of one account');
      walking.add(accountId);
      for (let i = 0; i < 10; i++) await inTurn(read);
      walking.delete(accountId);
    });
  await Promise.all([1, 2, 3, 1, 2, 3].map(walk));
  assert.equal(inOneTurn.most, 1);
});

test('a walk whose caller has left reads no more, and lets the next go on', async () => {
  const turns = new ScanTurns();
  const left = new AbortController();
  let reads = 0;
  const walk = (signal?: AbortSignal) =>
    turns.walk({ accountId: 1, kind: 'find' }, signal, async (inTurn) => {
      for (let i = 0; i < 5; i++) {
        await inTurn(() => reads++);
        if (signal !== undefined) left.abort(new Error('left'));
      }
      return 'whole';
    });
  const [first, second, third] = await Promise.allSettled([walk(left.signal), walk(left.signal), walk()]);
  assert.deepEqual([first?.status, second?.status], ['rejected', 'rejected']);
  assert.deepEqual(third, { status: 'fulfilled', value: 'whole' });
  assert.equal(reads, 1 + 5);
});

test('a read that lasts holds up no other account, and the account itself in each of its walks', async () => {
  const turns = new ScanTurns();
  const slow = Promise.withResolvers<string>();
  let begun = 0;
  const readSlowly = () => {
    begun++;
    return slow.promise;
  };
  const search = (accountId: number) =>
    turns.walk({ accountId, kind: 'find' }, undefined, (inTurn) => inTurn(readSlowly));
  const searches = [search(1), search(2)];
  const sorted = turns.walk({ accountId: 1, kind: 'sort' }, undefined, (inTurn) => inTurn(readSlowly));
  const small = turns.walk({ accountId: 3, kind: 'find' }, undefined, async (inTurn) => {
    for (let i = 0; i < 5; i++) await inTurn(() => i);
    return 'small';
  });
  const late = setTimeout(() => slow.reject(new Error('the small account waited')), 10_000);
  assert.equal(await Promise.race([small, ...searches]), 'small');
  clearTimeout(late);
  assert.equal(begun, 2, 'one read of each account');
  slow.resolve('large');
  assert.deepEqual(await Promise.all([...searches, sorted]), ['large', 'large', 'large']);
  assert.equal(begun, 3);
});

test('however many accounts walk, three of them read at once', async () => {
  const turns = new ScanTurns();
  let [reading, most] = [0, 0];
  const read = async () => {
    most = Math.max(most, ++reading);
    await new Promise((resolve) => setTimeout(resolve, 20));
    reading--;
  };
  const walk = (accountId: number) =>
    turns.walk({ accountId, kind: 'find' }, undefined, async (inTurn) => {
      for (let i = 0; i < 3; i++) await inTurn(read);
    });
  await Promise.all([1, 2, 3, 4, 5, 6].map(walk));
  assert.equal(most, 3);
});
