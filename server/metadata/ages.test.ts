import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../platform/clock.ts';
import { AGELESS, Ages, MAX_AGE_MS, Remembered, SharedReads } from './ages.ts';

/** A node of a cluster; `beat.isCurrent` false: its heartbeats are not accepted. */
function node() {
  const clock = new FakeClock();
  const beat = { isCurrent: true };
  const membership = { isShared: true, isCurrent: () => beat.isCurrent };
  return { clock, beat, ages: new Ages({ membership, clock }) };
}

/** Answers arrive when they are released. */
function gated() {
  const answers: ((value: number) => void)[] = [];
  const read = () => new Promise<number>((resolve) => void answers.push(resolve));
  return { read, answers };
}

test('what is 2 s old is not trusted, whatever the wall clock says', () => {
  const { clock, ages } = node();
  const mark = ages.mark();
  clock.advance(MAX_AGE_MS - 1);
  clock.jump(-3_600_000);
  assert.equal(ages.isTrusted(mark), true);
  clock.advance(1);
  assert.equal(ages.isTrusted(mark), false);
});

test('while the beats of the node are not taken, nothing is trusted', () => {
  const { beat, ages } = node();
  const mark = ages.mark();
  beat.isCurrent = false;
  assert.equal(ages.isTrusted(mark), false);
  assert.equal(ages.isYoung(mark), true, 'a read under way still serves all who ask');
  beat.isCurrent = true;
  assert.equal(ages.isTrusted(mark), true);
});

test('in one process nothing grows old, and what is known is no promise', async () => {
  let reads = 0;
  const things = new Remembered<string, number>({ ages: AGELESS, read: async () => ++reads });
  assert.equal(await things.get('a'), 1);
  assert.equal(things.get('a'), 1);
  things.forget('b');
  assert.equal(things.get('a'), 1);
  things.forget('a');
  assert.equal(await things.get('a'), 2);
  assert.equal(await things.get('b'), 3);
  things.forget();
  assert.equal(await things.get('a'), 4);
  assert.equal(AGELESS.rereads, 0);
});

test('a burst reads once, when a thing is new and each time it has grown old', async () => {
  const { clock, ages } = node();
  let reads = 0;
  const things = new Remembered<string, number>({ ages, read: async () => ++reads });
  const burst = () => Promise.all(Array.from({ length: 50 }, () => things.get('a')));
  assert.deepEqual(new Set(await burst()), new Set([1]));
  clock.advance(MAX_AGE_MS - 1);
  assert.equal(things.get('a'), 1);
  clock.advance(1);
  assert.deepEqual(new Set(await burst()), new Set([2]));
  assert.ok(ages.rereads > 0);
});

test('age counts from the beginning of the read', async () => {
  const { clock, ages } = node();
  const { read, answers } = gated();
  const things = new Remembered<string, number>({ ages, read });
  const slow = things.get('a');
  clock.advance(1500);
  answers[0]?.(1);
  assert.equal(await slow, 1);
  clock.advance(500);
  const next = things.get('a');
  assert.equal(answers.length, 2);
  answers[1]?.(2);
  assert.equal(await next, 2);
});

test('nobody joins a read that began 2 s ago', async () => {
  const { clock, ages } = node();
  const { read, answers } = gated();
  const reads = new SharedReads<string, number>(ages);
  const kept: number[] = [];
  const ask = () => reads.run('a', read, (value) => void kept.push(value));
  const [first, joined] = [ask(), ask()];
  assert.equal(answers.length, 1);
  clock.advance(MAX_AGE_MS);
  const later = ask();
  assert.equal(answers.length, 2);
  answers[1]?.(2);
  answers[0]?.(1);
  assert.deepEqual(await Promise.all([first, joined, later]), [1, 1, 2]);
  assert.deepEqual(kept, [2], 'the older answer is not kept');
});

test('what was read before it was forgotten is answered, but not kept', async () => {
  for (const key of ['a', undefined]) {
    const { read, answers } = gated();
    const things = new Remembered<string, number>({ ages: AGELESS, read });
    const before = things.get('a');
    things.forget(key);
    const after = things.get('a');
    assert.equal(answers.length, 2);
    answers[1]?.(2);
    answers[0]?.(1);
    assert.deepEqual([await before, await after], [1, 2]);
    assert.equal(things.get('a'), 2);
  }
});

test('a failure is not remembered, also one that is thrown at once', async () => {
  let fails = true;
  const read = () => {
    if (fails) throw new Error('the disk');
    return 1;
  };
  const things = new Remembered<string, number>({ ages: AGELESS, read });
  await assert.rejects(async () => things.get('a'), /the disk/);
  fails = false;
  assert.equal(await things.get('a'), 1);
});

test('of too many the oldest go', async () => {
  let reads = 0;
  const things = new Remembered<number, number>({ ages: AGELESS, most: 2, read: () => ++reads });
  for (const key of [1, 2, 3]) await things.get(key);
  assert.equal(things.get(3), 3);
  assert.equal(things.get(2), 2);
  assert.equal(await things.get(1), 4);
});
